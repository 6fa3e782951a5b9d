"""What people do to jobs from outside: cancel, retry, trigger, update. Same contract as transition.py."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from msgspec import Struct, structs

from ropewalk.domain.failure import ErrorInfo
from ropewalk.domain.jobs.clock import shorten_wait
from ropewalk.domain.jobs.flags import AT_FIXED_TIME, STEPPED
from ropewalk.domain.jobs.misfit import is_misfit
from ropewalk.domain.jobs.order import order_key
from ropewalk.domain.jobs.record import AttemptRecord, CancelRequest, EventRecord, JobRecord
from ropewalk.domain.jobs.states import Move, Status
from ropewalk.domain.jobs.transition import Effects
from ropewalk.domain.time import Instant, Span
from ropewalk.domain.workflow.completion import compensation


class CancelStatus(StrEnum):
    CANCELLED = "cancelled"
    CANCEL_REQUESTED = "cancel_requested"
    ALREADY_COMPLETE = "already_complete"
    NOT_FOUND = "not_found"


class RetryStatus(StrEnum):
    QUEUED = "queued"
    NOT_RETRIABLE = "not_retriable"
    NOT_FOUND = "not_found"


class RetryRequest(Struct, frozen=True, kw_only=True):
    """How a finished job starts over. `fresh` forgets attempts, crashes, checkpoint and last error."""

    reset_attempts: bool = True
    """False: attempts and crashes are counted on; where they are used up, there is one more"""
    priority: int | None = None
    delay_us: Span = 0
    fresh: bool = False
    include_cancelled: bool = False
    cascade: bool = False
    """also retry what never started because this job had failed, behind the gates it waited at"""
    input: bytes | None = None
    """the encoded arguments of the new run; None keeps those it has"""
    of_run: int | None = None
    """only while it is in this run: the one that whoever asks has seen"""
    reason: str | None = None
    """for its history"""


class EndRequest(Struct, frozen=True, kw_only=True):
    """How somebody outside ends a job. With an error it failed; without one it completed with `result`."""

    result: bytes | None = None
    error: ErrorInfo | None = None


class UpdateRequest(Struct, frozen=True, kw_only=True):
    """What may change about a waiting job; None leaves it."""

    input: bytes | None = None
    priority: int | None = None
    run_at: Instant | None = None
    run_now: bool = False


PURGED: Final = "it is removed"
"""the reason of the cancellation of a job that waited when it was removed"""
UNMET_DEPENDENCIES: Final = "unmet_dependencies"
"""The reason why a job is not retried that never started and whose gate can no longer open."""
DEPENDANTS_UNRESOLVED: Final = "dependants_unresolved"
"""The reason why a job is not retried yet: what its end means for its dependants is still deferred work."""
RETRIABLE: Final = frozenset({Status.FAILED, Status.DEAD_LETTER})


def cancel(job: JobRecord, *, reason: str | None, force: bool, now: Instant) -> tuple[CancelStatus, EventRecord | None]:
    """Waiting: cancelled at once. Running: noted for the holder. Finished: refused."""
    if job.terminal:
        return CancelStatus.ALREADY_COMPLETE, None
    request = CancelRequest(reason, force, now)
    if job.status is Status.RUNNING:
        if job.cancel is not None and (job.cancel.force or not force):
            return CancelStatus.CANCEL_REQUESTED, None
        job.cancel = request
        return CancelStatus.CANCEL_REQUESTED, _note(job, "cancel_requested", now, reason)
    job.cancel = request
    job.status = Status.CANCELLED
    job.last_move = Move.CANCEL
    job.finished_at = now
    job.unmet, job.awaits, job.wake_at = 0, None, None
    return CancelStatus.CANCELLED, _note(job, "cancelled", now, reason)


def end(job: JobRecord, asked: EndRequest, now: Instant) -> Effects:
    """Completed or failed from outside. A worker that holds it is told `already_completed` when it comes back."""
    assert not job.terminal, job.status
    attempt = _interrupted(job, asked, now) if job.status is Status.RUNNING else None
    job.status = Status.COMPLETED if asked.error is None else Status.FAILED
    job.last_move = Move.END
    job.finished_at = now
    job.owner = job.lease_expires_at = None
    job.unmet, job.awaits, job.wake_at = 0, None, None
    job.result = asked.result
    job.error = asked.error
    reason = None if asked.error is None else asked.error.message
    event = _note(job, Move.END.value, now, reason)
    follow_up = None if asked.error is None else compensation(job)
    if attempt is None:
        return Effects(Move.END, event=event, follow_up=follow_up)
    ended = structs.replace(attempt, rev=job.rev)
    return Effects(Move.END, attempt=ended, follow_up=follow_up, ready_at=job.run_at)


def _interrupted(job: JobRecord, asked: EndRequest, now: Instant) -> AttemptRecord:
    """The attempt that somebody outside was faster than."""
    return AttemptRecord(
        seq=job.seq,
        fence=job.fence,
        run=job.run,
        attempt=job.attempt,
        move=Move.END,
        start_rev=job.start_rev,
        rev=job.rev,
        started_at=job.started_at if job.started_at is not None else now,
        ended_at=now,
        owner=job.owner,
        error=asked.error,
        next_run_at=None,
    )


def refusal_to_retry(job: JobRecord, asked: RetryRequest) -> str | None:
    """Why this job cannot be retried, or None. (A held idempotency key is the store's to see: `key_in_use`.)"""
    if job.status not in RETRIABLE and not (asked.include_cancelled and job.status is Status.CANCELLED):
        return f"state_{job.status.value}"
    if job.damaged:
        return "damaged_row"
    if asked.of_run is not None and job.run != asked.of_run:
        return "another_run"
    return None


def retry(job: JobRecord, asked: RetryRequest, now: Instant) -> EventRecord:
    """A finished job becomes waiting work again, as a new run under the same id."""
    refusal = refusal_to_retry(job, asked)
    assert refusal is None, refusal
    job.status = Status.WAITING
    job.last_move = Move.RESTART
    job.run += 1
    job.finished_at = None
    job.owner = None
    job.cancel = None
    job.result = None
    job.unmet, job.awaits, job.wake_at = 0, None, None
    job.progress = None
    if asked.input is not None:
        job.input = asked.input
    if asked.priority is not None:
        job.priority = asked.priority
    if asked.reset_attempts or asked.fresh:
        job.attempt = 0
        job.crashes = 0
    else:  # whoever asks wants at least one more start: one of what is used up is given back
        job.crashes = min(job.crashes, job.max_crashes - 1)
        if job.max_attempts is not None:
            job.attempt = min(job.attempt, job.max_attempts - 1)
    if asked.fresh:
        job.checkpoint = None
        job.error = None
        job.flags &= ~STEPPED
    if job.deadline is not None and job.deadline <= now + asked.delay_us:
        job.deadline = None  # it has passed: keeping it would bury the new run at once
    job.flags &= ~AT_FIXED_TIME
    _reorder(job, now + asked.delay_us)
    return _note(job, "retried", now, asked.reason)


def update(job: JobRecord, asked: UpdateRequest, now: Instant) -> EventRecord | None:
    """Change a waiting job. The caller has checked that it is waiting. None: it is as it should be already."""
    assert job.status is Status.WAITING, job.status
    before = job.input, job.priority, job.run_at
    shorten_wait(job, now)
    if asked.input is not None:
        job.input = asked.input
        if is_misfit(job.error):
            job.error = None  # who refused the old arguments may take these
    if asked.priority is not None:
        job.priority = asked.priority
    run_at = _updated_run_at(job, asked, now)
    if (job.input, job.priority, run_at) == before:
        return None
    if asked.run_now or asked.run_at is not None:
        job.flags = job.flags & ~AT_FIXED_TIME if asked.run_now else job.flags | AT_FIXED_TIME
    _reorder(job, run_at)
    return _note(job, "triggered" if asked.run_now else "updated", now, None)


def _updated_run_at(job: JobRecord, asked: UpdateRequest, now: Instant) -> Instant:
    """A job that may run already, and is told so again, keeps its place."""
    wanted = now if asked.run_now else job.run_at if asked.run_at is None else asked.run_at
    return job.run_at if max(wanted, job.run_at) <= now else max(now, wanted)


def _reorder(job: JobRecord, run_at: Instant) -> None:
    job.run_at = run_at
    job.prio_key, job.time_key = order_key(job.priority, run_at, job.flags)


def _note(job: JobRecord, kind: str, now: Instant, reason: str | None) -> EventRecord:
    job.rev += 1
    job.updated_at = now
    return EventRecord(seq=job.seq, rev=job.rev, kind=kind, at=now, reason=reason)
