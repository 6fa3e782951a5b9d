"""Random lives of a whole store, beside the in-memory model (hypothesis, stateful).

Every rule asks both stores the same and compares the answers; after every step all records, histories, queues and
workers are compared too, and what must always hold is checked. Deterministic unless ROPEWALK_EXAMPLES asks for a
number of examples of its own.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    MultipleResults,
    RuleBasedStateMachine,
    initialize,
    invariant,
    multiple,
    rule,
    run_state_machine_as_test,
)
from msgspec import structs

from ropewalk.domain.job import JobRecord, NewJob, Progress
from ropewalk.domain.operator import Amendment, Revival
from ropewalk.domain.outcome import Outcome
from ropewalk.domain.retention import Retention
from ropewalk.domain.retry import resolve
from ropewalk.domain.search import Filter, Order
from ropewalk.domain.transition import decide
from ropewalk.errors import LeaseLost, RopewalkError
from ropewalk.ports.store import (
    Claimed,
    ClaimRequest,
    Moved,
    Note,
    Renewal,
    Renewed,
    SkipQueue,
    Submission,
    SubmitAnswer,
)
from ropewalk.testing.contract import draws
from ropewalk.testing.contract.backend import Backend
from ropewalk.testing.contract.bench import holder
from ropewalk.testing.contract.build import LEASE, claim_request
from ropewalk.testing.contract.lockstep import MANY, Lockstep

JobName: TypeAlias = tuple[str, str]
"""(tenant, id)"""

EXAMPLES: Final = os.environ.get("ROPEWALK_EXAMPLES")
SETTINGS: Final = settings(
    max_examples=60 if EXAMPLES is None else int(EXAMPLES),
    derandomize=EXAMPLES is None,
    stateful_step_count=40,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def differential(make_backend: Callable[[], Backend]) -> type:
    """A test class: the backend answers like the model, whatever happens."""

    class Differential:
        def test_the_store_answers_like_the_model(self) -> None:
            """B1, safe-1 to safe-16 as far as one store can break them."""
            run_state_machine_as_test(lambda: StoreMachine(make_backend()), settings=SETTINGS)

    return Differential


class StoreMachine(RuleBasedStateMachine):
    jobs = Bundle("jobs")
    leases = Bundle("leases")

    def __init__(self, backend: Backend) -> None:
        super().__init__()
        self.stores = Lockstep(backend)
        self.tickets: dict[str, int] = dict.fromkeys(draws.OWNERS, 1)

    def teardown(self) -> None:
        self.stores.close()

    @invariant()
    def nothing_differs(self) -> None:
        self.stores.check()

    # ── intake

    @initialize(target=jobs, batch=st.lists(draws.new_jobs, min_size=1, max_size=6))
    def begin(self, batch: list[NewJob]) -> MultipleResults[JobName]:
        return self._submit([Submission(jobs=batch)])

    @rule(target=jobs, batches=st.lists(st.lists(draws.new_jobs, max_size=4), min_size=1, max_size=3))
    def submit(self, batches: list[list[NewJob]]) -> MultipleResults[JobName]:
        return self._submit([Submission(jobs=batch) for batch in batches])

    @rule(target=jobs, lease=leases, new=draws.new_jobs, key=st.sampled_from(("s1", "s2")))
    def spawn(self, lease: JobRecord, new: NewJob, key: str) -> MultipleResults[JobName]:
        child = structs.replace(new, tenant=lease.tenant, parent_id=lease.id, spawn_key=key)
        return self._submit([Submission(jobs=[child], under=holder(lease))])

    @rule(target=leases, new=draws.new_jobs, owner=draws.owners)
    def submit_leased(self, new: NewJob, owner: str) -> MultipleResults[JobRecord]:
        skip = SkipQueue(owner=owner, ticket=self._next_tickets(owner, 1), lease_us=LEASE)
        [answer] = self.stores.ask(
            lambda store: store.submit([Submission(jobs=[new], skip_queue=skip)]), compared=_without_texts
        )
        accepted = [] if isinstance(answer, RopewalkError) else answer
        return multiple(*(each.leased for each in accepted if each.leased is not None))

    @rule(names=st.lists(jobs, min_size=1, max_size=3), force=st.booleans())
    def cancel(self, *, names: list[JobName], force: bool) -> None:
        tenant, ids = _as_first(names)
        self.stores.ask(lambda store: store.cancel(tenant, ids, reason="r", force=force))

    @rule(names=st.lists(jobs, min_size=1, max_size=3), revival=draws.revivals)
    def revive(self, names: list[JobName], revival: Revival) -> None:
        tenant, ids = _as_first(names)
        self.stores.ask(lambda store: store.revive(tenant, ids, revival))

    @rule(name=jobs, amendment=draws.amendments, wait_us=st.none() | draws.spans)
    def amend(self, name: JobName, amendment: Amendment, wait_us: int | None) -> None:
        run_at = None if wait_us is None else self.stores.runtime.now() + wait_us
        asked = structs.replace(amendment, run_at=run_at)
        self.stores.ask(lambda store: store.amend(name[0], name[1], asked))

    @rule(names=st.lists(jobs, min_size=1, max_size=3))
    def delete(self, names: list[JobName]) -> None:
        tenant, ids = _as_first(names)
        self.stores.ask(lambda store: store.delete(tenant, ids))

    # ── leasing

    @rule(owner=draws.owners)
    def enlist(self, owner: str) -> None:
        self.stores.ask(lambda store: store.enlist(draws.cards(owner)))

    @rule(owner=draws.owners)
    def dismiss(self, owner: str) -> None:
        self.stores.ask(lambda store: store.dismiss(owner))

    @rule(target=leases, request=draws.claim_requests, started=st.integers(0, 5))
    def claim(self, request: ClaimRequest, started: int) -> MultipleResults[JobRecord]:
        first = self._next_tickets(request.owner, request.limit)
        numbered = structs.replace(request, first_ticket=first, started_upto=first - 1 + min(started, request.limit))
        claimed = self.stores.ask(lambda store: store.claim(numbered), compared=_claimed)
        return multiple(*claimed.jobs)

    @rule(target=leases, owner=draws.owners)
    def claim_whatever_is_ready(self, owner: str) -> MultipleResults[JobRecord]:
        return self.claim(claim_request(owner=owner, types=draws.TYPES, limit=5), started=5)

    @rule(owner=draws.owners, held=st.lists(st.tuples(leases, draws.progress), max_size=4))
    def renew(self, owner: str, held: list[tuple[JobRecord, Progress | None]]) -> None:
        renewals = [Renewal(seq=job.seq, fence=job.fence, lease_us=LEASE, progress=progress) for job, progress in held]
        self.stores.ask(lambda store: store.renew(owner, renewals), compared=_renewed)

    @rule(ends=st.lists(st.tuples(leases, draws.outcomes), min_size=1, max_size=4))
    def settle(self, ends: list[tuple[JobRecord, Outcome]]) -> None:
        """As the owner of the first; leases of others are stale by that."""
        owner = holder(ends[0][0]).owner
        asked = [decide(job, outcome, resolve(job.backoff), roll=0.0) for job, outcome in ends]
        self.stores.ask(lambda store: store.settle(owner, asked))

    @rule(lease=leases, checkpoint=st.none() | st.just(b"[1]"), progress=draws.progress)
    def note(self, lease: JobRecord, checkpoint: bytes | None, progress: Progress | None) -> None:
        self.stores.ask(lambda store: store.note(Note(holder=holder(lease), checkpoint=checkpoint, progress=progress)))

    # ── upkeep

    @rule(seconds=draws.seconds_passing)
    def time_passes(self, seconds: float) -> None:
        self.stores.advance(seconds)

    @rule()
    def sweep(self) -> None:
        self.stores.ask(lambda store: store.sweep(MANY), compared=_moved)

    @rule(retention=draws.retentions)
    def prune(self, retention: Retention) -> None:
        self.stores.ask(lambda store: store.prune(retention, MANY))

    @rule(tenant=draws.tenants, ttl_us=draws.spans)
    def once(self, tenant: str, ttl_us: int) -> None:
        self.stores.ask(lambda store: store.once(tenant, "key", ttl_us))

    @rule(tenant=draws.tenants, queue=draws.queues, paused=st.booleans())
    def pause(self, *, tenant: str, queue: str, paused: bool) -> None:
        self.stores.ask(lambda store: store.pause(tenant, queue, paused=paused))

    # ── reading

    @rule(tenant=draws.tenants, wanted=draws.filters, order=st.sampled_from(Order), limit=st.integers(1, 4))
    def search(self, tenant: str, wanted: Filter, order: Order, limit: int) -> None:
        cursor = self.stores.page(tenant, wanted, order=order, limit=limit).next_cursor
        if cursor is not None:
            self.stores.page(tenant, wanted, order=order, limit=limit, cursor=cursor)
        self.stores.ask(lambda store: store.count(tenant, wanted))

    @rule(name=jobs)
    def get_and_ahead_of(self, name: JobName) -> None:
        snapshot = self.stores.ask(lambda store: store.get(name[0], [name[1], "missing"]))
        job = snapshot.jobs.get(name[1])
        if job is not None:
            self.stores.ask(lambda store: store.ahead_of(job))

    def _submit(self, submissions: Sequence[Submission]) -> MultipleResults[JobName]:
        self.stores.ask(lambda store: store.submit(submissions), compared=_without_texts)
        return multiple(*((new.tenant, new.id) for submission in submissions for new in submission.jobs))

    def _next_tickets(self, owner: str, number: int) -> int:
        first = self.tickets[owner]
        self.tickets[owner] += number
        return first


def _as_first(names: Sequence[JobName]) -> tuple[str, list[str]]:
    """All of them asked for as the first one's tenant: the others are foreign ids."""
    return names[0][0], [job_id for _, job_id in names]


def _without_texts(answers: list[SubmitAnswer]) -> list[object]:
    """How a refusal is worded is the store's own."""
    return [
        (type(answer), answer.reason if isinstance(answer, LeaseLost) else None)
        if isinstance(answer, RopewalkError)
        else answer
        for answer in answers
    ]


def _moved(moved: list[Moved]) -> list[Moved]:
    """In whatever order."""
    return sorted(moved, key=lambda each: each.job.seq)


def _claimed(claimed: Claimed) -> Claimed:
    return structs.replace(claimed, moved=_moved(claimed.moved))


def _renewed(renewed: Renewed) -> Renewed:
    return Renewed(
        lost=sorted(renewed.lost, key=lambda each: each.seq),
        cancels=sorted(renewed.cancels, key=lambda each: each.seq),
        busy=renewed.busy,
    )
