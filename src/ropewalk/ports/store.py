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

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Protocol, TypeAlias

from msgspec import Struct

from ropewalk.domain.instants import Instant, Span
from ropewalk.domain.job import AttemptRecord, EventRecord, JobRecord, NewJob, Progress
from ropewalk.domain.lease import LossReason as LossReason  # noqa: PLC0414  part of this port: callers take it from here
from ropewalk.domain.operator import Amendment, CancelStatus, RetryStatus, Revival
from ropewalk.domain.retention import Retention
from ropewalk.domain.search import Filter, Order
from ropewalk.domain.states import Move, State
from ropewalk.domain.transition import Settlement
from ropewalk.errors import RopewalkError
from ropewalk.ports.notifier import Notifier


class Durability(StrEnum):
    """What an acknowledged write survives."""

    D0 = "gone with the process"
    D1 = "survives the kill of every process"
    D2 = "survives power loss"
    D3 = "survives the loss of a node"


# ── submitting ──────────────────────────────────────────────────────────────────────────────────────────────


class Holder(Struct, frozen=True):
    """The lease under which a handler writes."""

    seq: int
    fence: int
    owner: str


class SkipQueue(Struct, frozen=True):
    """Insert already leased by this worker instance (attempt 1), where nothing stands in the way."""

    owner: str
    ticket: int
    lease_us: Span


class Submission(Struct, frozen=True, kw_only=True):
    """Jobs that are accepted together or not at all.

    `under` makes it a spawn: refused as stale unless the lease is current; a job whose (parent_id, spawn_key)
    exists already is answered as a duplicate, or SpawnMismatch where type or input differ.
    `skip_queue` (one job, not delayed, queue not paused) returns the job leased.
    """

    jobs: Sequence[NewJob]
    under: Holder | None = None
    skip_queue: SkipQueue | None = None


class Accepted(Struct, frozen=True, kw_only=True):
    id: str
    """of the new job, or of the existing one it duplicates"""
    duplicate: bool
    state: State
    run_at: Instant
    group_id: str
    leased: JobRecord | None = None
    """set when skip_queue took effect"""


SubmitAnswer: TypeAlias = "list[Accepted] | RopewalkError"
"""in the order of the submission's jobs; or Conflict, SpawnMismatch, QuotaExceeded, LeaseLost"""


# ── working ─────────────────────────────────────────────────────────────────────────────────────────────────


class WorkerCard(Struct, frozen=True, kw_only=True):
    """A started worker, as others see it. None serves all tenants or queues."""

    id: str
    host: str
    pid: int
    types: tuple[str, ...]
    queues: tuple[str, ...] | None
    tenants: tuple[str, ...] | None
    concurrency: int
    started_at: Instant = 0
    """set by the store, like beat_at"""
    beat_at: Instant = 0
    lease_us: Span = 30_000_000


class ClaimRequest(Struct, frozen=True, kw_only=True):
    """Give me up to `limit` ready jobs of these types.

    The first `slots` of them start at once; the rest wait in the worker's buffer, so a job on its last attempt or
    with crashes is given only within `slots`, and of the latter at most one, only if `suspect_allowed`.
    Claimed jobs get tickets first_ticket, first_ticket + 1, … in order; those up to `started_upto` count as
    started, and so does every earlier ticket of this worker up to it.
    """

    owner: str
    types: Mapping[str, Span]
    """registered type → its lease"""
    tenants: tuple[str, ...] | None = None
    queues: tuple[str, ...] | None = None
    slots: int
    limit: int
    suspect_allowed: bool = True
    first_ticket: int
    started_upto: int
    turn: int = 0
    """which line goes first this time (domain.fairness.take_turns)"""
    take_back: bool = True
    """False while this worker has reason to doubt the clock: leave expired leases alone this time"""


class Moved(Struct, frozen=True, kw_only=True):
    """A job the store itself moved (a lost lease, a passed deadline), for events and hints."""

    job: JobRecord
    move: Move


class Claimed(Struct, frozen=True, kw_only=True):
    now: Instant
    jobs: list[JobRecord]
    moved: list[Moved]
    """expired leases taken back and passed deadlines met on the way"""
    next_due: Instant | None
    """when the next waiting job of these types may become ready, if known"""


class Renewal(Struct, frozen=True, kw_only=True):
    seq: int
    fence: int
    lease_us: Span
    progress: Progress | None = None
    """newest progress since the last renewal; its `at` is set by the store"""


class Lost(Struct, frozen=True, kw_only=True):
    seq: int
    fence: int
    reason: LossReason


class CancelNotice(Struct, frozen=True, kw_only=True):
    seq: int
    fence: int
    reason: str | None
    force: bool


class Renewed(Struct, frozen=True, kw_only=True):
    """Leases not named in `lost` or `busy` are renewed. `cancels` repeats until the attempt ends."""

    lost: list[Lost]
    cancels: list[CancelNotice]
    busy: list[int] = []
    """seqs locked by somebody else's transaction just now: neither renewed nor lost"""


class Settled(Struct, frozen=True, kw_only=True):
    """Answer to one settlement. Stale: nothing changed, `lost` says why."""

    seq: int
    fence: int
    job: JobRecord | None = None
    """as it is after the move; None for a plain completion (it is what the worker already knows) and when stale"""
    move: Move | None = None
    """what really happened (a noted cancellation turns a retry into a cancel); None when stale"""
    lost: LossReason | None = None


class Note(Struct, frozen=True, kw_only=True):
    """Something a running attempt records at once."""

    holder: Holder
    checkpoint: bytes | None = None
    progress: Progress | None = None


class Noted(Struct, frozen=True, kw_only=True):
    lost: LossReason | None = None
    cancel: CancelNotice | None = None


# ── operating ───────────────────────────────────────────────────────────────────────────────────────────────


class CancelAnswer(Struct, frozen=True, kw_only=True):
    id: str
    status: CancelStatus
    previous: State | None


class ReviveAnswer(Struct, frozen=True, kw_only=True):
    id: str
    status: RetryStatus
    state: State | None = None
    run_at: Instant | None = None
    reason: str | None = None
    """why not: state_completed, key_in_use, attempts_exhausted, …"""


class AmendAnswer(Struct, frozen=True, kw_only=True):
    id: str
    job: JobRecord | None = None
    """as amended; None with `state` None: not found; None with a state: not waiting, nothing changed"""
    state: State | None = None


class Pruned(Struct, frozen=True, kw_only=True):
    jobs: int
    results: int
    keys: int


# ── reading ─────────────────────────────────────────────────────────────────────────────────────────────────


class Snapshot(Struct, frozen=True, kw_only=True):
    now: Instant
    jobs: dict[str, JobRecord]
    """by id; missing ones are absent"""


class Page(Struct, frozen=True, kw_only=True):
    now: Instant
    jobs: list[JobRecord]
    next_cursor: str | None


class Trail(Struct, frozen=True, kw_only=True):
    """A job with everything recorded about it (domain.history.assemble makes the history)."""

    now: Instant
    job: JobRecord
    attempts: list[AttemptRecord]
    events: list[EventRecord]


class QueueInfo(Struct, frozen=True, kw_only=True):
    name: str
    paused: bool
    counts: dict[State, int]
    """live states only: pending, delayed, retrying, scheduled, running"""
    oldest_ready_at: Instant | None


# ── the verbs ───────────────────────────────────────────────────────────────────────────────────────────────


class Intake(Protocol):
    """How jobs come in and how people change them."""

    async def submit(self, submissions: Sequence[Submission]) -> list[SubmitAnswer]:
        """Insert; each submission whole or not at all, independent of its neighbours, sharing one commit.

        Same id, same content: duplicate; same id, other content: Conflict. Idempotency keys by domain.idempotency,
        decided in this transaction. A repeated id or key inside one submission counts like one already stored.
        """
        ...

    async def cancel(self, tenant: str, ids: Sequence[str], *, reason: str | None, force: bool) -> list[CancelAnswer]:
        """domain.operator.cancel on each, independently. A cancelled waiting job closes its key."""
        ...

    async def revive(self, tenant: str, ids: Sequence[str], revival: Revival) -> list[ReviveAnswer]:
        """domain.operator.revive on each, independently. Reopens its key; `key_in_use` if another open job holds it."""
        ...

    async def amend(self, tenant: str, job_id: str, amendment: Amendment) -> AmendAnswer:
        """domain.operator.amend, on a waiting job only."""
        ...

    async def delete(self, tenant: str, ids: Sequence[str]) -> dict[str, bool | None]:
        """Remove terminal jobs with their attempts and events. True: gone; False: not terminal; None: not found."""
        ...


class Leasing(Protocol):
    """How a worker gets, keeps and ends its right to run a job."""

    async def enlist(self, card: WorkerCard) -> None:
        """Make a worker known, or replace its card."""
        ...

    async def dismiss(self, owner: str) -> None:
        """Forget a worker that stopped. Its leases, if any are left, simply run out."""
        ...

    async def claim(self, request: ClaimRequest) -> Claimed:
        """Lease ready jobs: domain.transition.claim on each, in one transaction.

        Order: (prio_key, time_key, seq) inside one (tenant, queue), merged over its types; between those,
        domain.fairness.take_turns. Never a job before its run_at, in a paused queue, of an unnamed type, of a
        newer record format. A ready job past its deadline is expired instead. Also takes back a bounded number
        of expired leases first (as sweep does), so the claim path alone recovers lost work.
        Cost does not depend on how many jobs are finished, delayed, paused or of other types.
        """
        ...

    async def renew(self, owner: str, renewals: Sequence[Renewal]) -> Renewed:
        """One call for all of a worker's leases; also the worker's own sign of life (with no renewals too).

        A lease past its expiry that nobody took back yet is renewed: the fence is what counts.
        """
        ...

    async def settle(self, owner: str, settlements: Sequence[Settlement]) -> list[Settled]:
        """domain.transition.settle on each that fits (seq, fence, owner); independent of one another, one commit.

        Written together: record, attempt row, compensation job, key closing. Answers in order. A second settlement
        of the same lease is stale. A deadline that passed meanwhile does not matter: a valid fence wins.
        """
        ...

    async def note(self, note: Note) -> Noted:
        """Record a checkpoint (or progress) now, fenced; answers whether a cancellation was requested."""
        ...


class Upkeep(Protocol):
    """What every worker does now and then for all."""

    async def sweep(self, limit: int) -> list[Moved]:
        """Take back up to `limit` expired leases (domain.transition.lose; `started` is ticket <= the owner's
        started_upto, or the owner is unknown) and expire up to `limit` waiting jobs past their deadline.

        The decision and the write are one: a lease renewed or settled meanwhile is left alone.
        """
        ...

    async def prune(self, retention: Retention, limit: int) -> Pruned:
        """Delete up to `limit` finished jobs past retention, forget old results, closed keys out of their window,
        expired once-keys, and cards of workers silent for a day."""
        ...

    async def once(self, tenant: str, key: str, ttl_us: Span) -> bool:
        """True for the first caller of this key until ttl_us has passed."""
        ...

    async def pause(self, tenant: str, queue: str, *, paused: bool) -> None:
        """Paused queues are not claimed from; running jobs go on."""
        ...


class Reading(Protocol):
    """Consistent with committed writes: what a finished call changed is seen by every later read."""

    async def get(self, tenant: str, ids: Sequence[str]) -> Snapshot: ...

    async def search(self, tenant: str, wanted: Filter, *, order: Order, cursor: str | None, limit: int) -> Page:
        """Jobs for which domain.search.matches holds. A cursor stays valid while jobs come and go."""
        ...

    async def count(self, tenant: str, wanted: Filter) -> int: ...

    async def trail(self, tenant: str, job_id: str) -> Trail | None: ...

    async def queues(self, tenant: str) -> list[QueueInfo]:
        """Every queue with live jobs or a pause mark, by name."""
        ...

    async def ahead_of(self, job: JobRecord) -> int:
        """How many ready jobs of its (tenant, queue) come before it (counted to 10 000)."""
        ...

    async def workers(self) -> list[WorkerCard]: ...

    async def clock(self) -> Instant:
        """The store's clock."""
        ...


class Store(Intake, Leasing, Upkeep, Reading, Protocol):
    """A backend, whole."""

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
