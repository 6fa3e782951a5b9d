"""Part of the core: how a worker gets, keeps and ends its right to run a job. Claims are in claims.py.

What holds for every verb of a store (core.py) holds here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from ropewalk.domain.jobs.lease import LossReason
from ropewalk.domain.jobs.record import JobRecord, Progress
from ropewalk.domain.jobs.states import Move
from ropewalk.domain.jobs.transition import Settlement
from ropewalk.domain.logs import LogLine
from ropewalk.domain.time import Instant, Span
from ropewalk.errors import RopewalkError
from ropewalk.ports.store.claims import Claimed, ClaimRequest
from ropewalk.ports.store.consequences import Consequences


class WorkerCard(Struct, frozen=True, kw_only=True):
    """A started worker as others see it. The fields from `started_at` on are filled in by the store."""

    id: str
    host: str
    pid: int
    types: tuple[str, ...]
    queues: tuple[str, ...] | None
    """The queues that it serves; None is all of them."""
    tenants: tuple[str, ...] | None
    """The tenants that it serves; None is all of them."""
    concurrency: int
    lease_us: Span = 30_000_000
    started_at: Instant = 0
    beat_at: Instant = 0
    draining: bool = False
    """Whether somebody has asked it to stop."""
    held: int = 0
    """How many leases it holds."""


class Holder(Struct, frozen=True):
    """The lease under which a handler writes."""

    seq: int
    fence: int
    owner: str


class Renewal(Struct, frozen=True, kw_only=True):
    """The request to renew one lease."""

    seq: int
    fence: int
    lease_us: Span
    progress: Progress | None = None
    """The newest progress since the last renewal; the store sets its `at`."""
    lines: tuple[LogLine, ...] = ()
    """The lines that were logged since the last renewal."""


class Lost(Struct, frozen=True, kw_only=True):
    """A lease that its worker no longer has."""

    seq: int
    fence: int
    reason: LossReason


class CancelNotice(Struct, frozen=True, kw_only=True):
    """The news for a worker that one of its running jobs is to be cancelled."""

    seq: int
    fence: int
    reason: str | None
    force: bool

    @classmethod
    def of(cls, job: JobRecord) -> CancelNotice | None:
        """The news about this job for its holder, if there is any."""
        if job.cancel is None:
            return None
        return cls(seq=job.seq, fence=job.fence, reason=job.cancel.reason, force=job.cancel.force)


class Renewed(Struct, frozen=True, kw_only=True):
    """Leases not named in `lost` or `busy` are renewed. `cancels` repeats until the attempt ends, `drain` for good."""

    lost: list[Lost]
    cancels: list[CancelNotice]
    busy: list[int] = []
    """The jobs (by seq) that somebody else's transaction locked just now: their leases are neither renewed nor lost."""
    drain: bool = False


class Settled(Struct, frozen=True, kw_only=True, gc=False):
    """The answer to one settlement. Where it was stale, nothing changed, and `lost` says why."""

    seq: int
    fence: int
    job: JobRecord | None = None
    """The job after the move. None for a plain completion, after which the worker knows it already, and when stale."""
    move: Move | None = None
    """What really happened: a noted cancellation turns a retry into a cancel. None when stale."""
    lost: LossReason | None = None
    refused: RopewalkError | None = None
    """Why its completion plan cannot be written, such as an unknown dependency or a conflicting id: nothing changed."""


class Settlements(Struct, frozen=True, kw_only=True):
    """The answers to a batch of settlements."""

    settled: list[Settled]
    """The answers in the order of the settlements."""
    consequences: Consequences


class Note(Struct, frozen=True, kw_only=True):
    """Something a running attempt records at once."""

    holder: Holder
    checkpoint: bytes | None = None
    progress: Progress | None = None


class NoteAnswer(Struct, frozen=True, kw_only=True):
    """Whether the lease still holds, and whether the job is to be cancelled."""

    lost: LossReason | None = None
    cancel: CancelNotice | None = None


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
        newer record format, beyond the `room` of its type, among those that it ignores, or under a limit without
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
