"""The core of the storage port: what every store can do, as domain verbs, in batches.

What only some stores can do stands in a protocol of its own beside this module, and a store declares it
(capabilities.py). One contract suite (ropewalk.testing.contract) defines a backend.

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
from typing import TYPE_CHECKING, Any, Protocol

from ropewalk.domain.jobs.operations import RetryRequest, UpdateRequest
from ropewalk.domain.jobs.transition import Settlement
from ropewalk.domain.retention import Retention
from ropewalk.domain.search import Filter, Order
from ropewalk.domain.time import Instant, Span
from ropewalk.ports.notifier import Notifier
from ropewalk.ports.store.claims import ClaimRequest
from ropewalk.ports.store.messages import (
    Cancellations,
    Claimed,
    Consequences,
    Durability,
    Note,
    NoteAnswer,
    Page,
    QueueInfo,
    Renewal,
    Renewed,
    RetryAnswer,
    Settlements,
    Snapshot,
    StoredHistory,
    Submission,
    SubmitAnswer,
    UpdateAnswer,
    WorkerCard,
)
from ropewalk.ports.store.removal import Deletion, Pruned, Purged

if TYPE_CHECKING:
    from ropewalk.ports.store.capabilities import Capability


class Submitting(Protocol):
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

    async def retry(self, tenant: str, ids: Sequence[str], request: RetryRequest) -> list[RetryAnswer]:
        """domain.jobs.operations.retry on each, independently. Reopens its key; `key_in_use` where another has it.

        Its scope and those above it open again (a new generation where they had closed). Resolved edges stay so; with
        `cascade`, dependants it had doomed before their first start wait again. `fresh` also forgets its steps.
        """
        ...

    async def update(self, tenant: str, job_id: str, request: UpdateRequest) -> UpdateAnswer:
        """domain.jobs.operations.update, on a waiting job only. With a new input, its key stands for that."""
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

    async def unregister(self, owner: str) -> None:
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


class Maintaining(Protocol):
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

        For good: an instance that was told never serves again, whatever card it registers with.
        """
        ...


class Reading(Protocol):
    """Consistent with committed writes: what a finished call changed is seen by every later read."""

    async def get(self, tenant: str, ids: Sequence[str]) -> Snapshot: ...

    async def search(self, tenant: str, wanted: Filter, *, order: Order, cursor: str | None, limit: int) -> Page:
        """Jobs for which domain.search.matches holds. A cursor stays valid while jobs come and go."""
        ...

    async def count(self, tenant: str, wanted: Filter) -> int: ...

    async def history(self, tenant: str, job_id: str) -> StoredHistory | None: ...

    async def queues(self, tenant: str) -> list[QueueInfo]:
        """Every queue with live jobs or a pause mark, by name."""
        ...

    async def workers(self) -> list[WorkerCard]: ...

    async def clock(self) -> Instant:
        """The store's clock."""
        ...


class Store(Submitting, Leasing, Maintaining, Reading, Protocol):
    """What every backend can do. What else one can do, it declares (ports/store/capabilities.py)."""

    @property
    def name(self) -> str:
        """What messages call this kind of store: one word, such as "memory"."""
        ...

    @property
    def capabilities(self) -> frozenset[Capability[Any]]:
        """What it can do beside the core. The same for as long as the store lives."""
        ...

    @property
    def durability(self) -> Durability: ...

    @property
    def notifier(self) -> Notifier: ...

    async def open(self) -> None:
        """Connect, check durability and schema, migrate an empty store. Idempotent.

        Raises StoreRefused (SchemaMismatch, WeakDurability), StoreUnavailable or InvalidInput, each saying what to do.
        """
        ...

    async def close(self) -> None:
        """Finish what was accepted, then release everything. Idempotent; the store may be opened again."""
        ...
