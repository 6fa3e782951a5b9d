"""Leases: whether a worker still has the right to run a job, and whether a worker that died had started it.

Time does not decide who has the lease of a job: an expired lease that nobody took back is still valid. The fence
decides.

A worker gives each job that it claims a number, the ticket. Each claim says up to which ticket the jobs of the worker
start. When the worker dies, the store knows from this which of its jobs lose an attempt. If the answer to a claim never
arrived, its tickets are never used again: no job to which the store gave one of them has started.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Final, NamedTuple, Protocol

from msgspec import Struct

from ropewalk.domain.jobs.record import JobRecord, Progress
from ropewalk.domain.jobs.states import Status
from ropewalk.domain.time import SECOND, Instant, Span

LEASE_MIN: Final[Span] = SECOND
"""A shorter lease would run out between two rounds of the heartbeat, which are half a second apart."""

UNANSWERED_MAX: Final = 256
"""A store remembers so many ranges of tickets per worker. The leases of still older ones have ended long ago."""


class LossReason(StrEnum):
    """The reason why an attempt no longer owns its job, or must stop."""

    TAKEN_BY_ANOTHER_WORKER = "taken_by_another_worker"
    ALREADY_COMPLETED = "already_completed"
    NOT_FOUND = "not_found"
    CANCELLED = "cancelled"
    TIMEOUT = "timeout"
    DEADLINE = "deadline"
    SHUTDOWN = "shutdown"
    STORE_ERROR = "store_error"


class Leasable(Protocol):
    """The part of a job that decides who has its lease."""

    @property
    def fence(self) -> int: ...
    @property
    def owner(self) -> str | None: ...
    @property
    def status(self) -> Status: ...
    @property
    def terminal(self) -> bool: ...


def loss_reason(job: Leasable | None, fence: int, owner: str) -> LossReason | None:
    """Returns the reason why the lease with this fence and owner is lost; None if it is valid."""
    if job is None:
        return LossReason.NOT_FOUND
    if job.fence == fence and job.owner == owner and job.status is Status.RUNNING:
        return None
    if not job.terminal:
        return LossReason.TAKEN_BY_ANOTHER_WORKER
    return LossReason.CANCELLED if job.status is Status.CANCELLED else LossReason.ALREADY_COMPLETED


def renew(job: JobRecord, *, lease_us: Span, now: Instant) -> None:
    """Extends the lease of a job. This is not recorded in the history: `rev` and `updated_at` stay as they are."""
    job.lease_expires_at = expiry(lease_us, now)


def note(job: JobRecord, *, checkpoint: bytes | None, progress: Progress | None, now: Instant) -> None:
    """Writes the checkpoint and the progress of a running attempt; None leaves one as it is. Neither is recorded in the
    history."""
    if checkpoint is not None:
        job.checkpoint = checkpoint
    if progress is not None:
        job.progress = dated(progress, now)


def may_take_back(until: Instant | None, now: Instant) -> bool:
    """Whether a call of a worker, which the store serves at `now`, may take back expired leases of other workers.

    `until` is the last instant, by the store's clock, at which the worker trusts its own judgement; None sets no limit.
    A call that was delayed on its way may be served right after an outage, when healthy workers are about to renew
    their leases.
    """
    return until is None or now <= until


def expiry(lease_us: Span, now: Instant) -> Instant:
    return now + lease_us


def dated(progress: Progress, now: Instant) -> Progress:
    """Returns the progress with the time of the store, because a worker's clock does not count."""
    return Progress(progress.percent, progress.message, now)


class TicketRange(NamedTuple):
    """The tickets from `first` to `last`, both included."""

    first: int
    last: int

    def __contains__(self, ticket: object) -> bool:
        return isinstance(ticket, int) and self.first <= ticket <= self.last


class StartedTickets(Struct, frozen=True, array_like=True):
    """What a store knows about which tickets of one worker have started."""

    upto: int = 0
    """Every ticket up to this one counts as started, unless it is in one of the other two fields."""
    unstarted: frozenset[int] = frozenset()
    """These jobs have not started, because others overtook them in the buffer of the worker."""
    unanswered: tuple[TicketRange, ...] = ()
    """These tickets belong to claims whose answer the worker never got."""

    def covers(self, ticket: int) -> bool:
        """Whether the job with this ticket counts as started."""
        if ticket > self.upto or ticket in self.unstarted:
            return False
        return not any(ticket in each for each in self.unanswered)


def merged_ranges(known: Iterable[TicketRange], more: Iterable[TicketRange]) -> tuple[TicketRange, ...]:
    """Returns all ranges in order, with adjacent ones joined; only the newest UNANSWERED_MAX are kept."""
    merged: list[TicketRange] = []
    for each in sorted({*known, *more}):
        if merged and each.first <= merged[-1].last + 1:
            merged[-1] = TicketRange(merged[-1].first, max(merged[-1].last, each.last))
        else:
            merged.append(each)
    return tuple(merged[-UNANSWERED_MAX:])
