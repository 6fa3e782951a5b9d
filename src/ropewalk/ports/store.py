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

from ropewalk.domain.instants import Instant, Span
from ropewalk.domain.job import JobRecord
from ropewalk.domain.operator import Amendment, Revival
from ropewalk.domain.retention import Retention
from ropewalk.domain.search import Filter, Order
from ropewalk.domain.transition import Settlement
from ropewalk.ports.exchange import (
    AmendAnswer,
    CancelAnswer,
    Claimed,
    ClaimRequest,
    Durability,
    Moved,
    Note,
    Noted,
    Page,
    Pruned,
    QueueInfo,
    Renewal,
    Renewed,
    ReviveAnswer,
    Settled,
    Snapshot,
    Submission,
    SubmitAnswer,
    Trail,
    WorkerCard,
)
from ropewalk.ports.notifier import Notifier


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
