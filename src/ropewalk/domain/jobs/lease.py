"""Holding a job: who does, why somebody no longer does, and what a holder may write about it in passing.

Time plays no part in who holds a job: a lease past its expiry that nobody took back is still held. The fence counts.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final, Protocol

from ropewalk.domain.jobs.record import JobRecord, Progress
from ropewalk.domain.jobs.states import Status
from ropewalk.domain.time import SECOND, Instant, Span

LEASE_MIN: Final[Span] = SECOND
"""A shorter lease would run out between two rounds of its holder's heartbeat, which are half a second apart."""


class LossReason(StrEnum):
    """Why an attempt no longer owns its job, or must stop."""

    TAKEN_BY_ANOTHER_WORKER = "taken_by_another_worker"
    ALREADY_COMPLETED = "already_completed"
    NOT_FOUND = "not_found"
    CANCELLED = "cancelled"
    TIMEOUT = "timeout"
    DEADLINE = "deadline"
    SHUTDOWN = "shutdown"
    STORE_ERROR = "store_error"


class Holdable(Protocol):
    """What of a job decides who holds it."""

    @property
    def fence(self) -> int: ...
    @property
    def owner(self) -> str | None: ...
    @property
    def status(self) -> Status: ...
    @property
    def terminal(self) -> bool: ...


def loss_reason(job: Holdable | None, fence: int, owner: str) -> LossReason | None:
    """Why (fence, owner) does not hold this job (any more); None while it does."""
    if job is None:
        return LossReason.NOT_FOUND
    if job.fence == fence and job.owner == owner and job.status is Status.RUNNING:
        return None
    if not job.terminal:
        return LossReason.TAKEN_BY_ANOTHER_WORKER
    return LossReason.CANCELLED if job.status is Status.CANCELLED else LossReason.ALREADY_COMPLETED


def renew(job: JobRecord, *, lease_us: Span, now: Instant) -> None:
    """The holder is alive. Not history: `rev` and `updated_at` stay."""
    job.lease_expires_at = expiry(lease_us, now)


def note(job: JobRecord, *, checkpoint: bytes | None, progress: Progress | None, now: Instant) -> None:
    """What the running attempt says about itself; None leaves it. Not history either."""
    if checkpoint is not None:
        job.checkpoint = checkpoint
    if progress is not None:
        job.progress = noted(progress, now)


def may_take_back(until: Instant | None, now: Instant) -> bool:
    """Whether a worker may take back expired leases of others in a call that the store serves at `now`.

    `until` is the last instant, by the store's clock, at which the worker trusts its own judgement; None is always. A
    call that was held up on its way may be served right after an outage, when healthy holders are about to renew.
    """
    return until is None or now <= until


def expiry(lease_us: Span, now: Instant) -> Instant:
    return now + lease_us


def noted(progress: Progress, now: Instant) -> Progress:
    """When it was said is up to the store."""
    return Progress(progress.percent, progress.message, now)
