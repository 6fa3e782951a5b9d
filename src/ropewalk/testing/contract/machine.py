"""The differential test: random sequences of calls, sent to a store and to the in-memory model (Hypothesis, stateful).

Every rule makes the same call on both stores and compares the answers. After every step all records, histories, queues
and workers are compared, too, and what must always hold is checked. The sequences are the same in every run, unless
the environment variable ROPEWALK_EXAMPLES names a number of examples.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from msgspec import structs

from ropewalk.domain.jobs.operations import RetryRequest, UpdateRequest
from ropewalk.domain.jobs.outcome import Outcome
from ropewalk.domain.jobs.record import JobRecord, NewJob, Progress
from ropewalk.domain.jobs.retry import resolve
from ropewalk.domain.jobs.states import Status
from ropewalk.domain.jobs.transition import AttemptTiming, Settlement, decide
from ropewalk.domain.limits.fleet_limit import FlowLimit
from ropewalk.domain.limits.quota import Quota
from ropewalk.domain.retention import Retention
from ropewalk.domain.search import Filter, Order
from ropewalk.domain.statistics.aggregation import StatsQuery
from ropewalk.domain.time import DAY, SECOND
from ropewalk.errors import RopewalkError
from ropewalk.ports.store.claims import ClaimRequest
from ropewalk.ports.store.leases import Note, Renewal
from ropewalk.ports.store.submission import SkipQueue, Submission
from ropewalk.testing.contract import strategies
from ropewalk.testing.contract.backend import Backend
from ropewalk.testing.contract.bench import holder
from ropewalk.testing.contract.builders import LEASE, claim_request
from ropewalk.testing.contract.comparable import (
    cancelled,
    claimed,
    ordered_consequences,
    purged,
    renewed,
    settled,
    submitted,
)
from ropewalk.testing.contract.lockstep import MANY, Lockstep
from ropewalk.testing.contract.machine_schedules import ScheduleRules
from ropewalk.testing.contract.machine_workflows import WorkflowRules, pick, picks

Ending: TypeAlias = "tuple[Outcome, AttemptTiming | None]"

EXAMPLES: Final = os.environ.get("ROPEWALK_EXAMPLES")
SETTINGS: Final = settings(
    max_examples=30 if EXAMPLES is None else int(EXAMPLES),
    derandomize=EXAMPLES is None,
    stateful_step_count=40,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def differential(make_backend: Callable[[], Backend]) -> type:
    """Return a test class that checks that the backend answers like the in-memory model, whatever happens."""

    class Machine(StoreMachine):
        def new_backend(self) -> Backend:
            return make_backend()

    class Differential:
        def test_the_store_answers_like_the_model(self) -> None:
            """B1, safe-1 to safe-16 as far as one store can break them."""
            run_state_machine_as_test(Machine, settings=SETTINGS)

    return Differential


class StoreMachine(WorkflowRules, ScheduleRules):
    """The state machine: its rules are calls of the store, and its state is what earlier calls returned."""

    def new_backend(self) -> Backend:
        raise NotImplementedError("`differential` makes machines that know their backend")

    def __init__(self) -> None:
        super().__init__()
        self.stores = Lockstep(self.new_backend())
        self.leases: list[JobRecord] = []
        """Every lease that any call has given out, current or not."""
        self.tickets: dict[str, int] = dict.fromkeys(strategies.OWNERS, 1)
        """The next ticket of each worker."""

    def teardown(self) -> None:
        self.stores.close()

    @invariant()
    def nothing_differs(self) -> None:
        self.stores.check()

    # ── submission

    @initialize(batch=st.lists(strategies.new_jobs, min_size=8, max_size=12))
    def begin(self, batch: list[NewJob]) -> None:
        self.submit_all([Submission(jobs=[new]) for new in batch])

    @rule(batches=st.lists(st.lists(strategies.new_jobs, max_size=4), min_size=2, max_size=5))
    def submit(self, batches: list[list[NewJob]]) -> None:
        self.submit_all([Submission(jobs=batch) for batch in batches])

    @precondition(WorkflowRules.some_lease)
    @rule(which=pick, new=strategies.new_jobs, key=st.sampled_from(("s1", "s2")))
    def spawn(self, which: int, new: NewJob, key: str) -> None:
        lease = self._lease(which)
        child = structs.replace(new, tenant=lease.tenant, parent_id=lease.id, spawn_key=key)
        self.submit_all([Submission(jobs=[child], under=holder(lease))])

    @rule(new=strategies.new_jobs, owner=strategies.owners)
    def submit_leased(self, new: NewJob, owner: str) -> None:
        skip = SkipQueue(owner=owner, ticket=self._next_tickets(owner, 1), lease_us=LEASE)
        self.submit_all([Submission(jobs=[new], skip_queue=skip)])

    @precondition(WorkflowRules.some_job)
    @rule(which=picks, force=st.booleans())
    def cancel(self, *, which: list[int], force: bool) -> None:
        tenant, ids = self._names(which)
        self.stores.ask(lambda store: store.cancel(tenant, ids, reason="r", force=force), compared=cancelled)

    @precondition(WorkflowRules.some_job)
    @rule(which=picks, request=strategies.retry_requests)
    def retry(self, which: list[int], request: RetryRequest) -> None:
        tenant, ids = self._names(which)
        self.stores.ask(lambda store: store.retry(tenant, ids, request))

    @precondition(WorkflowRules.some_job)
    @rule(which=pick, request=strategies.update_requests, wait_us=st.none() | strategies.spans)
    def update(self, which: int, request: UpdateRequest, wait_us: int | None) -> None:
        tenant, [job_id] = self._names([which])
        run_at = None if wait_us is None else self.stores.runtime.now() + wait_us
        asked = structs.replace(request, run_at=run_at)
        self.stores.ask(lambda store: store.update(tenant, job_id, asked))

    @precondition(WorkflowRules.some_job)
    @rule(which=picks)
    def delete(self, which: list[int]) -> None:
        tenant, ids = self._names(which)
        self.stores.ask(lambda store: store.delete(tenant, ids))

    @precondition(WorkflowRules.some_job)
    @rule(which=picks, together=st.booleans())
    def purge(self, *, which: list[int], together: bool) -> None:
        tenant, ids = self._names(which)
        self.stores.ask(lambda store: store.purge(tenant, ids, together=together), compared=purged)

    # ── leasing

    @rule(owner=strategies.owners, gone=strategies.seldom)
    def register_or_unregister(self, *, owner: str, gone: bool) -> None:
        if gone:
            self.stores.ask(lambda store: store.unregister(owner))
        else:
            self.stores.ask(lambda store: store.register(strategies.cards(owner)))

    @rule(request=strategies.claim_requests, started=st.integers(0, 8))
    def claim(self, request: ClaimRequest, started: int) -> None:
        self._claim(request, started)

    @rule(owner=strategies.owners)
    def claim_whatever_is_ready(self, owner: str) -> None:
        self._claim(claim_request(owner=owner, types=strategies.TYPES, limit=4), started=4)

    @rule(owner=strategies.owners)
    def lose_leases_and_claim_again(self, owner: str) -> None:
        """Let every lease expire before the claim, so that old leases exist beside new ones."""
        self.stores.advance(LEASE / SECOND)
        self._claim(claim_request(owner=owner, types=strategies.TYPES, limit=4), started=4)

    @precondition(WorkflowRules.some_lease)
    @rule(owner=strategies.owners, which=st.lists(st.tuples(pick, strategies.progress), max_size=4))
    def renew(self, owner: str, which: list[tuple[int, Progress | None]]) -> None:
        leases = [(self._lease(number), progress) for number, progress in which]
        renewals = [
            Renewal(seq=job.seq, fence=job.fence, lease_us=LEASE, progress=progress) for job, progress in leases
        ]
        self.stores.ask(lambda store: store.renew(owner, renewals), compared=renewed)

    @rule(owner=strategies.owners, ends=st.lists(strategies.endings, min_size=3, max_size=8))
    def settle_what_is_held(self, owner: str, ends: list[Ending]) -> None:
        held = [job for job in self.stores.jobs if job.status is Status.RUNNING and job.owner == owner]
        asked = [_settlement(job, ending) for job, ending in zip(held, ends, strict=False)]
        self.stores.ask(lambda store: store.settle(owner, asked), compared=settled)

    @precondition(WorkflowRules.some_lease)
    @rule(ends=st.lists(st.tuples(pick, strategies.endings), min_size=1, max_size=4))
    def settle_any_lease(self, ends: list[tuple[int, Ending]]) -> None:
        """Settle current and old leases as the owner of the first, for whom the leases of others are stale."""
        owner = holder(self._lease(ends[0][0])).owner
        asked = [_settlement(self._lease(number), ending) for number, ending in ends]
        self.stores.ask(lambda store: store.settle(owner, asked), compared=settled)

    @precondition(WorkflowRules.some_lease)
    @rule(which=pick, checkpoint=st.none() | st.just(b"[1]"), progress=strategies.progress)
    def note(self, which: int, checkpoint: bytes | None, progress: Progress | None) -> None:
        note = Note(holder=holder(self._lease(which)), checkpoint=checkpoint, progress=progress)
        self.stores.ask(lambda store: store.note(note))

    # ── maintenance

    @rule(seconds=strategies.seconds_passing, swept=st.booleans())
    def time_passes(self, *, seconds: float, swept: bool) -> None:
        self.stores.advance(seconds)
        if swept:
            self.stores.ask(lambda store: store.sweep(MANY), compared=ordered_consequences)

    @rule(retention=strategies.retentions)
    def prune(self, retention: Retention) -> None:
        self.stores.ask(lambda store: store.prune(retention, MANY))

    @rule(tenant=strategies.tenants, ttl_us=strategies.spans)
    def once(self, tenant: str, ttl_us: int) -> None:
        self.stores.ask(lambda store: store.once(tenant, "key", ttl_us))

    @rule(tenant=strategies.tenants, queue=strategies.queues, paused=strategies.seldom)
    def pause(self, *, tenant: str, queue: str, paused: bool) -> None:
        self.stores.ask(lambda store: store.pause(tenant, queue, paused=paused))

    @rule(owner=strategies.owners)
    def drain(self, owner: str) -> None:
        self.stores.ask(lambda store: store.drain(owner))

    # ── counting

    @rule(days=strategies.days_passing)
    def fold_counters(self, days: int) -> None:
        """How many rows there are to fold differs between stores; their sums are compared after every step."""
        self.stores.advance(days * DAY / SECOND)
        self.stores.ask(lambda store: store.fold_counters(7 * DAY, MANY), compared=lambda _: None)

    @rule(tenant=strategies.tenants, asked=strategies.stats_queries, ago_us=st.none() | st.integers(0, 3 * DAY))
    def stats(self, tenant: str, asked: StatsQuery, ago_us: int | None) -> None:
        until = None if ago_us is None else self.stores.runtime.now() - ago_us
        self.stores.ask(lambda store: store.stats(tenant, structs.replace(asked, until=until)))

    # ── limiting

    @rule(limit=strategies.flow_limits, gone=strategies.seldom)
    def limit(self, *, limit: FlowLimit, gone: bool) -> None:
        if gone:
            self.stores.ask(lambda store: store.remove_limit(limit.tenant, limit.kind, limit.name))
        else:
            self.stores.ask(lambda store: store.put_limit(limit))
        self.stores.ask(lambda store: store.limits(limit.tenant))

    @rule(
        quota=strategies.quotas,
        batches=st.lists(st.lists(strategies.new_jobs, min_size=1, max_size=3), min_size=2, max_size=5),
        stays=strategies.seldom,
    )
    def submit_under_a_quota(self, *, quota: Quota, batches: list[list[NewJob]], stays: bool) -> None:
        """The quota is usually removed again, because most later submissions would be refused."""
        self.stores.ask(lambda store: store.put_quota(quota))
        self.submit_all([Submission(jobs=batch) for batch in batches])
        self.stores.ask(lambda store: store.quotas())
        for tenant in strategies.TENANTS:
            self._quota_use(tenant)
        if not stays:
            self.stores.ask(lambda store: store.remove_quota(quota.tenant))

    # ── reading

    @rule(tenant=strategies.tenants, wanted=strategies.filters, order=st.sampled_from(Order), limit=st.integers(1, 4))
    def search(self, tenant: str, wanted: Filter, order: Order, limit: int) -> None:
        cursor = self.stores.page(tenant, wanted, order=order, limit=limit).next_cursor
        if cursor is not None:
            self.stores.page(tenant, wanted, order=order, limit=limit, cursor=cursor)
        self.stores.ask(lambda store: store.count(tenant, wanted))
        self.stores.ask(lambda store: store.count(tenant, wanted, limit=limit))

    @precondition(WorkflowRules.some_job)
    @rule(which=picks)
    def get_and_ahead_of(self, which: list[int]) -> None:
        tenant, ids = self._names(which)
        for job in self.stores.ask(lambda store: store.get(tenant, ids)).jobs.values():
            self._ahead_of(job)
            self._held_by(job)

    # ── helpers

    def submit_all(self, submissions: Sequence[Submission]) -> None:
        answers = self.stores.ask(lambda store: store.submit(submissions), compared=submitted)
        accepted = [each for answer in answers if not isinstance(answer, RopewalkError) for each in answer]
        self.leases += [each.leased for each in accepted if each.leased is not None]

    def _claim(self, request: ClaimRequest, started: int) -> None:
        first = self._next_tickets(request.owner, request.limit)
        started_upto = first - 1 + min(started, request.limit)
        numbered = structs.replace(request, first_ticket=first, started_upto=started_upto)
        self.leases += self.stores.ask(lambda store: store.claim(numbered), compared=claimed).jobs

    def _ahead_of(self, job: JobRecord) -> None:
        self.stores.ask(lambda store: store.ahead_of(job))

    def _quota_use(self, tenant: str) -> None:
        self.stores.ask(lambda store: store.quota_use(tenant))

    def _held_by(self, job: JobRecord) -> None:
        self.stores.ask(lambda store: store.full_limits_for(job))

    def _lease(self, number: int) -> JobRecord:
        return self.leases[-1 - number % len(self.leases)]

    def _names(self, which: Sequence[int]) -> tuple[str, list[str]]:
        """Return the tenant of the first of these jobs and the ids of all; some may belong to another tenant."""
        jobs = [self.stores.jobs[-1 - number % len(self.stores.jobs)] for number in which]
        return jobs[0].tenant, [job.id for job in jobs]

    def _next_tickets(self, owner: str, number: int) -> int:
        first = self.tickets[owner]
        self.tickets[owner] += number
        return first


def _settlement(job: JobRecord, ending: Ending) -> Settlement:
    outcome, timing = ending
    return decide(job, outcome, resolve(job.backoff), 0.0, timing)
