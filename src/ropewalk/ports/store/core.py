"""The storage port: domain verbs, in batches. One contract suite (ropewalk.testing.contract) defines a backend.

What holds for every verb:
- Time is the store's: `now` in an answer is its clock inside the transaction that gave it.
- One call is one atomic change, except where a batch says its members are independent of one another.
- A verb returns only when the change is as durable as the store promises; if it raises StoreUnavailable nothing
  changed, if it raises OutcomeUnknown it may have.
- Every write by a worker names (seq, fence, owner) and changes nothing when they no longer fit: such a write is
  answered as stale with the reason, not raised.
- Everything is scoped by tenant; another tenant's job is indistinguishable from a missing one.
- What happens to a record is decided by ropewalk.domain; a store decides only who gets it.
- Thread-safe, and usable from any event loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ropewalk.domain.jobs.operations import Amendment, Resolution, Revival
from ropewalk.domain.jobs.record import JobRecord
from ropewalk.domain.jobs.transition import Settlement
from ropewalk.domain.limits.fleet_limit import FlowLimit, LimitKind
from ropewalk.domain.limits.headroom import Full
from ropewalk.domain.limits.quota import Quota, QuotaUse
from ropewalk.domain.logs import LogLine
from ropewalk.domain.retention import Retention
from ropewalk.domain.search import Filter, Order
from ropewalk.domain.time import Instant, Span
from ropewalk.domain.workflow.completion import StepRecord
from ropewalk.domain.workflow.dependency import Edge
from ropewalk.ports.notifier import Notifier
from ropewalk.ports.store.claims import ClaimRequest
from ropewalk.ports.store.diagnosis import Examining
from ropewalk.ports.store.messages import (
    AmendAnswer,
    Backlog,
    Cancellations,
    Claimed,
    Consequences,
    Dependency,
    Durability,
    GroupContribution,
    GroupRecord,
    Holder,
    LimitUse,
    Note,
    NoteAnswer,
    Page,
    QueueInfo,
    Renewal,
    Renewed,
    ResolveAnswer,
    ReviveAnswer,
    Settlements,
    SignalAnswer,
    Snapshot,
    StepAnswer,
    Submission,
    SubmitAnswer,
    Trail,
    UnawaitedGroup,
    WorkerCard,
)
from ropewalk.ports.store.removal import Deletion, Pruned, Purged
from ropewalk.ports.store.schedules import Schedules
from ropewalk.ports.store.statistics import Counting
from ropewalk.ports.store.user_transactions import Joining, UserTransaction


class Intake(Protocol):
    """How jobs come in and how people change them."""

    async def submit(self, submissions: Sequence[Submission], *, wait: bool = True) -> list[SubmitAnswer]:
        """Insert; each submission whole or not at all, independent of its neighbours, sharing one commit.

        Same id, same content: duplicate; same id, other content: Conflict. Idempotency keys by domain.jobs.idempotency,
        decided in this transaction. A repeated id or key inside one submission counts like one already stored.
        What is new and not `under` a lease must fit the quotas of its tenants (domain.limits.quota.Admission): what
        waits is counted in this transaction, and nobody else is let in meanwhile.

        With `wait=False` a submission that would have to wait for a transaction of somebody else's, which may stay open
        for long, is answered with MustWait and not written; its neighbours are not held up by it. A store with a single
        writer never answers so.
        """
        ...

    async def cancel(self, tenant: str, ids: Sequence[str], *, reason: str | None, force: bool) -> Cancellations:
        """domain.jobs.operations.cancel on each, independently. Jobs that end with it close their keys."""
        ...

    async def retry(self, tenant: str, ids: Sequence[str], revival: Revival) -> list[ReviveAnswer]:
        """domain.jobs.operations.revive on each, independently. Reopens its key; `key_in_use` where another has it.

        Its scope and those above it open again (a new generation where they had closed). Resolved edges stay so; with
        `cascade`, dependants it had doomed before their first start wait again. `fresh` also forgets its steps.
        """
        ...

    async def update(self, tenant: str, job_id: str, amendment: Amendment) -> AmendAnswer:
        """domain.jobs.operations.amend, on a waiting job only. With a new input, its key stands for that."""
        ...

    async def delete(self, tenant: str, ids: Sequence[str]) -> dict[str, Deletion]:
        """Remove terminal jobs with everything recorded about them. A dependant among `ids` does not protect."""
        ...

    async def purge(self, tenant: str, ids: Sequence[str], *, together: bool = False) -> Purged:
        """Remove terminal jobs as `delete` does, and jobs that wait, in one transaction.

        What waits is cancelled first, with all that an ending brings. What runs is left alone, not even asked to stop.
        With `together` nothing happens at all where one of them runs.
        """
        ...


class Leasing(Protocol):
    """How a worker gets, keeps and ends its right to run a job."""

    async def register(self, card: WorkerCard) -> None:
        """Make a worker known, or replace its card."""
        ...

    async def dismiss(self, owner: str) -> None:
        """Forget a worker that stopped. Its leases, if any are left, simply run out."""
        ...

    async def claim(self, request: ClaimRequest) -> Claimed:
        """Lease ready jobs: domain.jobs.transition.claim on each, in one transaction.

        Order: (prio_key, time_key, seq) inside one (tenant, queue), merged over its types; between those,
        domain.jobs.order.take_turns. Never a job before its run_at, in a paused queue, of an unnamed type, of a
        newer record format, beyond the `room` of its type, among those it is `passing`, or under a limit without
        room (domain.limits.headroom; what runs is counted in this transaction, and no other claim gives out jobs under
        the same limit meanwhile): such a lane is passed over whole. With more than 256 lanes of keys the claim looks
        into some of them, and the next one goes on there. A ready job past its deadline is expired instead. Also takes
        back a bounded number of expired leases first (as sweep does), so the claim path alone recovers lost work; not
        after the request's `take_back_until`.
        Cost does not depend on how many jobs are finished, delayed, paused or of other types.
        """
        ...

    async def renew(self, owner: str, renewals: Sequence[Renewal]) -> Renewed:
        """One call for all of a worker's leases; also the worker's own sign of life (with no renewals too).

        A lease past its expiry that nobody took back yet is renewed: the fence is what counts. Log lines of renewed
        leases are kept, as `settle` keeps those of settled ones.
        """
        ...

    async def settle(self, owner: str, settlements: Sequence[Settlement]) -> Settlements:
        """domain.jobs.transition.settle on each that fits (seq, fence, owner); independent of one another, one commit.

        Written together: record, attempt row, log lines, compensation job, key closing, children and continuation with
        their gates, the group's value, the scopes that close, and what all that releases or dooms (what is over a
        thousand edges goes on in `cascade`). Answers in order. A second settlement of the same lease is stale. A
        deadline that passed meanwhile does not matter: a valid fence wins.
        """
        ...

    async def note(self, note: Note) -> NoteAnswer:
        """Record a checkpoint (or progress) now, fenced; answers whether a cancellation was requested."""
        ...


class Upkeep(Protocol):
    """What every worker does now and then for all."""

    async def sweep(self, limit: int, *, take_back_until: Instant | None = None) -> Consequences:
        """Take back up to `limit` expired leases, if it is not too late for that (domain.jobs.lease.may_take_back;
        domain.jobs.transition.lose: `started` is ticket <= the owner's started_upto and not among its unstarted, or the
        owner is unknown), expire up to `limit` waiting jobs past their deadline, and end up to `limit` waits that are
        over (domain.workflow.gate.wait_is_over). What follows from it is in the answer, too.

        The decision and the write are one: a lease renewed or settled meanwhile is left alone.
        """
        ...

    async def prune(self, retention: Retention, limit: int) -> Pruned:
        """Delete up to `limit` finished jobs past retention, forget old results, closed keys out of their window,
        expired once-keys, and cards of workers silent for a day."""
        ...

    async def cascade(self, limit: int) -> Consequences:
        """Go on with up to `limit` edges and scopes that a transition left for later."""
        ...

    async def once(self, tenant: str, key: str, ttl_us: Span, *, by: str | None = None) -> bool:
        """True for the first caller of this key until ttl_us has passed.

        A caller who was first and asks again as the same `by`, since the answer was lost, is answered True again.
        """
        ...

    async def pause(self, tenant: str, queue: str, *, paused: bool) -> None:
        """Paused queues are not claimed from; running jobs go on."""
        ...

    async def drain(self, owner: str) -> bool:
        """Tell a worker to stop: its card shows it, and its renewals answer it. False: no such worker.

        For good: an instance that was told never serves again, whatever card it enlists with.
        """
        ...


class Limiting(Protocol):
    """Fleet-wide limits on what runs and starts (domain.limits.fleet_limit), which hold from the next claim on."""

    async def put_limit(self, limit: FlowLimit) -> None:
        """Make or replace it (FlowLimit.replaces). What its rate has used is kept where window and algorithm stay the
        same."""
        ...

    async def remove_limit(self, tenant: str, kind: LimitKind, name: str) -> bool:
        """False: there was none."""
        ...

    async def limits(self, tenant: str) -> list[LimitUse]:
        """By kind and name. EVERY_TENANT: those for all together."""
        ...

    async def held_by(self, job: JobRecord) -> list[Full]:
        """The limits that leave no room for this job now."""
        ...


class Quoting(Protocol):
    """Quotas of tenants (domain.limits.quota), which hold from the next submission and the next claim on."""

    async def put_quota(self, quota: Quota) -> None:
        """Make or replace the tenant's; that of `*` is for what others leave open. Its `running` is a limit of kind
        "tenant" from then on. What came in under its rate is kept where window and algorithm stay the same."""
        ...

    async def remove_quota(self, tenant: str) -> bool:
        """False: there was none."""
        ...

    async def quotas(self) -> list[Quota]:
        """As they were put, by tenant."""
        ...

    async def quota_use(self, tenant: str) -> QuotaUse | None:
        """What holds for a tenant; None: nothing does."""
        ...


class Workflows(Protocol):
    """What happens between jobs beside settling: signals, steps, resolutions from outside, groups."""

    async def resolve(self, tenant: str, job_id: str, resolution: Resolution) -> ResolveAnswer:
        """domain.jobs.operations.resolve, with everything an ending brings."""
        ...

    async def signal(
        self, tenant: str, job_id: str, name: str, value: bytes | None, *, signal_id: str | None = None
    ) -> SignalAnswer:
        """Put a signal into a job's mailbox, under the job's lock: a suspension looks there under the same lock.

        Sent again with the same `signal_id` within domain.workflow.completion.SIGNAL_KNOWN_FOR, it is a DUPLICATE and
        changes nothing, also when it was taken or the job has ended meanwhile.
        """
        ...

    async def steps(self, seq: int) -> list[StepRecord]:
        """In order of position."""
        ...

    async def record_step(self, holder: Holder, step: StepRecord) -> StepAnswer:
        """Keep a finished step, fenced; it replaces an unfinished one of the same position."""
        ...

    async def take_signal(self, holder: Holder, step: StepRecord, signal: str) -> StepAnswer:
        """Take the oldest signal of this name out of the mailbox and keep it as `step`, together and fenced."""
        ...

    async def cancel_group(self, tenant: str, group_id: str, *, reason: str | None, force: bool) -> bool:
        """Mark every scope of the group: members written from now on are born cancelled. False: not found.

        The members that are there are cancelled by the caller, in batches.
        """
        ...

    async def await_group(self, tenant: str, group_id: str, span_us: Span) -> None:
        """Somebody waits for this group for that long: if it closes meanwhile, it is no orphan."""
        ...

    async def take_orphans(self, limit: int, hide_us: Span) -> list[UnawaitedGroup]:
        """Orphans to tell, oldest first; each is given out again after hide_us unless it was told.

        From this call on, every group that closes with nobody waiting is recorded, whatever its client asked for, until
        nobody has called this for domain.workflow.scope.UNAWAITED_RECORDED_FOR (or up to a day less).
        """
        ...

    async def takes_orphans(self) -> bool:
        """Whether somebody called take_orphans so lately that the unawaited groups of every client are recorded."""
        ...

    async def orphan_told(self, orphan_id: str) -> None: ...

    async def groups(self, tenant: str, ids: Sequence[str]) -> dict[str, GroupRecord]:
        """By id; a group that is only its root has no record."""
        ...

    async def contributions(self, tenant: str, group_id: str) -> list[GroupContribution]:
        """In the order they were folded."""
        ...


class Reading(Protocol):
    """Consistent with committed writes: what a finished call changed is seen by every later read."""

    async def get(self, tenant: str, ids: Sequence[str]) -> Snapshot: ...

    async def search(self, tenant: str, wanted: Filter, *, order: Order, cursor: str | None, limit: int) -> Page:
        """Jobs for which domain.search.matches holds. A cursor stays valid while jobs come and go."""
        ...

    async def count(self, tenant: str, wanted: Filter) -> int: ...

    async def trail(self, tenant: str, job_id: str) -> Trail | None: ...

    async def chain(self, tenant: str, job_id: str, *, last: int | None = None) -> list[JobRecord]:
        """The members of the chain this job is in, first to last; a job that never continued is alone in it.

        A chain can be asked for by the id of its first member when that one is deleted. Its end may be gone, too: the
        last of these then has the flag CONTINUED.
        With `last` only so many from its end, at a cost that does not depend on its length.
        """
        ...

    async def dependencies(self, seq: int) -> list[Dependency]:
        """What this job waits for or waited for, by position; of groups with their values."""
        ...

    async def edges(self, seqs: Sequence[int]) -> list[Edge]:
        """What these jobs wait for or waited for, by child and position."""
        ...

    async def queues(self, tenant: str) -> list[QueueInfo]:
        """Every queue with live jobs or a pause mark, by name."""
        ...

    async def backlog(self) -> list[Backlog]:
        """Ready jobs by tenant, queue and type; paused queues too. Cost is bounded: see Backlog."""
        ...

    async def log(self, tenant: str, job_id: str) -> list[LogLine]:
        """What a job logged, oldest first; nothing for one that does not exist."""
        ...

    async def ahead_of(self, job: JobRecord) -> int:
        """How many ready jobs of its (tenant, queue) come before it (counted to 10 000)."""
        ...

    async def workers(self) -> list[WorkerCard]: ...

    async def clock(self) -> Instant:
        """The store's clock."""
        ...


class Store(
    Intake,
    Joining,
    Leasing,
    Upkeep,
    Limiting,
    Quoting,
    Workflows,
    Schedules,
    Reading,
    Counting,
    Examining,
    Protocol,
):
    """A backend, whole."""

    @property
    def durability(self) -> Durability: ...

    @property
    def notifier(self) -> Notifier: ...

    def transaction(self, limit_us: Span) -> UserTransaction:
        """For a user's own writes beside a settlement, open for at most so long. Raises Unsupported."""
        ...

    async def open(self) -> None:
        """Connect, check durability and schema, migrate an empty store. Idempotent.

        Raises StoreRefused (SchemaMismatch, WeakDurability), StoreUnavailable or InvalidInput, each saying what to do.
        """
        ...

    async def close(self) -> None:
        """Finish what was accepted, then release everything. Idempotent; the store may be opened again."""
        ...
