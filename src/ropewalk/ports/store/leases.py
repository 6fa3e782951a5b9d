"""The part of the core with which a worker gets, keeps and ends its right to run a job.

The rules for every verb are in core.py, the messages of a claim in claims.py.
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
    """A started worker, as other processes see it. The store fills in the fields from `started_at` on."""

    id: str
    host: str
    pid: int
    types: tuple[str, ...]
    queues: tuple[str, ...] | None
    """The queues that the worker serves; None means all."""
    tenants: tuple[str, ...] | None
    """The tenants that the worker serves; None means all."""
    concurrency: int
    lease_us: Span = 30_000_000
    started_at: Instant = 0
    beat_at: Instant = 0
    draining: bool = False
    """Whether somebody has asked the worker to stop."""
    held: int = 0
    """The number of leases that the worker has."""


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
    """The message to a worker that one of its running jobs is to be cancelled."""

    seq: int
    fence: int
    reason: str | None
    force: bool

    @classmethod
    def of(cls, job: JobRecord) -> CancelNotice | None:
        """Returns the notice about this job for its worker, if its cancellation was requested."""
        if job.cancel is None:
            return None
        return cls(seq=job.seq, fence=job.fence, reason=job.cancel.reason, force=job.cancel.force)


class Renewed(Struct, frozen=True, kw_only=True):
    """The answer to a batch of renewals. All leases that neither `lost` nor `busy` names are renewed."""

    lost: list[Lost]
    cancels: list[CancelNotice]
    """The cancellations of running jobs. Each is repeated in every answer until the attempt has ended."""
    busy: list[int] = []
    """The jobs, by seq, that another transaction has locked just now. Their leases are neither renewed nor lost."""
    drain: bool = False
    """Whether the worker is to stop. Once this is True, it is True in all later answers."""


class Settled(Struct, frozen=True, kw_only=True, gc=False):
    """The answer to one settlement. If the settlement was stale, nothing has changed, and `lost` says why."""

    seq: int
    fence: int
    job: JobRecord | None = None
    """The job after the move. None if the settlement was stale, or a plain completion, whose result the worker
    knows."""
    move: Move | None = None
    """The move that really happened: a requested cancellation turns a retry into a cancel. None if it was stale."""
    lost: LossReason | None = None
    refused: RopewalkError | None = None
    """The reason why nothing has changed: the completion plan cannot be written, because of an unknown dependency or a
    conflicting id, for example."""


class Settlements(Struct, frozen=True, kw_only=True):
    """The answers to a batch of settlements."""

    settled: list[Settled]
    """The answers in the order of the settlements."""
    consequences: Consequences


class Note(Struct, frozen=True, kw_only=True):
    """A checkpoint or a progress that a running attempt records at once."""

    holder: Holder
    checkpoint: bytes | None = None
    progress: Progress | None = None


class NoteAnswer(Struct, frozen=True, kw_only=True):
    """The answer to a note: whether the lease is still valid, and whether the job is to be cancelled."""

    lost: LossReason | None = None
    """The reason why the lease is lost; None if it is valid."""
    cancel: CancelNotice | None = None


class HeldJobs(Struct, frozen=True, kw_only=True):
    """A worker and what it holds."""

    now: Instant
    card: WorkerCard | None
    """None where the worker is not registered (any more)."""
    jobs: list[JobRecord]
    """The jobs that it holds, by seq, without their inputs, checkpoints and results (b"", None and None)."""


class Leasing(Protocol):
    """The verbs with which a worker gets, keeps and ends its right to run a job."""

    async def register(self, card: WorkerCard) -> None:
        """Makes a worker known, or replaces its card."""
        ...

    async def unregister(self, owner: str) -> None:
        """Forgets a worker that has stopped. If it still has leases, they run out."""
        ...

    async def claim(self, request: ClaimRequest) -> Claimed:
        """Leases ready jobs: applies domain.jobs.transition.claim to each, in one transaction.

        Within a line the order is (prio_key, time_key, seq), whatever the types; between lines it is
        domain.jobs.order.take_turns. A claim never leases a job that is not due, whose queue is paused, whose type the
        request does not name, whose record has a newer format, that exceeds the `room` of its type, or that is among
        those in `ignored`. It skips whole lanes that are under a limit without room (domain.limits.headroom): it counts
        what runs in this transaction, and no other claim gives out jobs under the same limit meanwhile. If more than
        256 lanes have keys, the claim looks into some of them, and the next claim continues there. A ready job whose
        deadline has passed expires instead.

        Before it leases jobs, a claim takes back a bounded number of expired leases, as sweep does, so that claims
        alone recover lost work; after `take_back_until` it does not. The cost does not depend on how many jobs are
        finished, delayed, paused or of other types.
        """
        ...

    async def renew(self, owner: str, renewals: Sequence[Renewal]) -> Renewed:
        """Renews all leases of a worker in one call. The call also shows that the worker is alive, even if it renews
        nothing.

        An expired lease that nobody took back yet is renewed, because the fence decides. The log lines of renewed
        leases are stored, as `settle` stores those of settled ones.
        """
        ...

    async def settle(self, owner: str, settlements: Sequence[Settlement]) -> Settlements:
        """Applies domain.jobs.transition.settle to each job whose seq, fence and owner fit, with one commit for all.
        The settlements are independent of one another.

        These are written together: the record, the row of the attempt, the log lines, the compensation, the closed key,
        children and continuation with their gates, the value of the group, the scopes that close, and what all this
        releases or dooms; what exceeds a thousand edges is postponed to `cascade`. The answers have the order of the
        settlements. A second settlement of the same lease is stale. If the deadline has passed meanwhile, a valid fence
        still allows the settlement.
        """
        ...

    async def held(self, owner: str) -> HeldJobs:
        """What this worker holds, for whoever serves workers that have no store of their own.

        A lease that is over belongs to it until somebody takes the job back. What this costs does not depend on how
        many jobs are not running.
        """
        ...

    async def note(self, note: Note) -> NoteAnswer:
        """Stores a checkpoint or a progress if the lease is valid, and answers whether a cancellation was requested."""
        ...
