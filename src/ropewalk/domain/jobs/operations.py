"""What people do to jobs from outside: cancel, end, retry and update them.

Like the functions of transition.py, these functions run in the store on the locked record. They change it in place and
return what the store has to write beside it.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from msgspec import Struct, structs

from ropewalk.domain.failure import ErrorInfo
from ropewalk.domain.jobs.clock_set_back import shorten_wait
from ropewalk.domain.jobs.flags import AT_FIXED_TIME, STEPPED
from ropewalk.domain.jobs.misfit import is_misfit
from ropewalk.domain.jobs.order import order_key
from ropewalk.domain.jobs.record import AttemptRecord, CancelRequest, EventRecord, JobRecord
from ropewalk.domain.jobs.states import Move, Status
from ropewalk.domain.jobs.transition import Effects
from ropewalk.domain.time import Instant, Span
from ropewalk.domain.workflow.completion import compensation


class CancelStatus(StrEnum):
    """What became of a request to cancel a job."""

    CANCELLED = "cancelled"
    CANCEL_REQUESTED = "cancel_requested"
    """The job is running; its worker learns of the cancellation with the next renewal."""
    ALREADY_COMPLETE = "already_complete"
    """The job has ended, in whatever state."""
    NOT_FOUND = "not_found"


class RetryStatus(StrEnum):
    """What became of a request to retry a job."""

    QUEUED = "queued"
    NOT_RETRIABLE = "not_retriable"
    NOT_FOUND = "not_found"


class RetryRequest(Struct, frozen=True, kw_only=True):
    """How a finished job starts over."""

    reset_attempts: bool = True
    """Whether attempts and crashes are counted from 0. Otherwise they are counted on; if they are used up, the job gets
    one more start."""
    priority: int | None = None
    """The priority of the new run; None keeps the one that the job has."""
    delay_us: Span = 0
    """The job is ready after this long."""
    fresh: bool = False
    """Whether attempts, crashes, checkpoint, steps and the last error are forgotten."""
    include_cancelled: bool = False
    """Whether a cancelled job may be retried, too."""
    cascade: bool = False
    """Whether jobs that never started because this one failed are retried, too. They wait behind their gates again."""
    input: bytes | None = None
    """The encoded arguments of the new run; None keeps those that the job has."""
    of_run: int | None = None
    """The retry is refused unless the job is in this run, which is the one that the caller has seen."""
    from_step: str | None = None
    """The new run keeps the durable steps before the one of this name, and does this one and the later ones again."""
    reason: str | None = None
    """The reason that the history of the job records."""


class EndRequest(Struct, frozen=True, kw_only=True):
    """How somebody outside ends a job: with an error it has failed, without one it has completed with `result`."""

    result: bytes | None = None
    error: ErrorInfo | None = None


class UpdateRequest(Struct, frozen=True, kw_only=True):
    """What is to change about a waiting job. None leaves a value as it is."""

    input: bytes | None = None
    priority: int | None = None
    run_at: Instant | None = None
    run_now: bool = False
    """Whether the job is to be ready at once."""
    if_rev: int | None = None
    """The update is refused unless the job has this rev, which is the one that the caller has seen."""


PURGED: Final = "it is removed"
"""The reason of the cancellation of a job that waited when it was purged."""
UNMET_DEPENDENCIES: Final = "unmet_dependencies"
"""The reason why a retry is refused: the job never started, and its gate can no longer open."""
DEPENDANTS_UNRESOLVED: Final = "dependants_unresolved"
"""The reason why a retry is refused for now: the consequences of the job's end for its dependants are still postponed
work (`cascade`)."""
NO_SUCH_STEP: Final = "no_such_step"
"""The reason why a job is not retried that has no stored step of the name that the request gives."""
RETRIABLE: Final = frozenset({Status.FAILED, Status.DEAD_LETTER})


def cancel(job: JobRecord, *, reason: str | None, force: bool, now: Instant) -> tuple[CancelStatus, EventRecord | None]:
    """Cancels a waiting job at once, notes the cancellation of a running job for its worker, and leaves a finished job
    as it is."""
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


def end(job: JobRecord, request: EndRequest, now: Instant) -> Effects:
    """Completes or fails a job from outside. A worker that runs it learns `already_completed` from its next write."""
    assert not job.terminal, job.status
    attempt = _interrupted(job, request, now) if job.status is Status.RUNNING else None
    job.status = Status.COMPLETED if request.error is None else Status.FAILED
    job.last_move = Move.END
    job.finished_at = now
    job.owner = job.lease_expires_at = None
    job.unmet, job.awaits, job.wake_at = 0, None, None
    job.result = request.result
    job.error = request.error
    reason = None if request.error is None else request.error.message
    event = _note(job, Move.END.value, now, reason)
    compensating = None if request.error is None else compensation(job)
    if attempt is None:
        return Effects(Move.END, event=event, compensation=compensating)
    ended = structs.replace(attempt, rev=job.rev)
    return Effects(Move.END, attempt=ended, compensation=compensating, ready_at=job.run_at)


def _interrupted(job: JobRecord, request: EndRequest, now: Instant) -> AttemptRecord:
    """Returns the record of the attempt that was running when somebody outside ended the job."""
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
        error=request.error,
        next_run_at=None,
    )


def refusal_to_retry(job: JobRecord, request: RetryRequest) -> str | None:
    """Returns the reason why this job cannot be retried, or None.

    The store itself refuses a retry (`key_in_use`) if another job has taken the idempotency key of this one.
    """
    if job.status not in RETRIABLE and not (request.include_cancelled and job.status is Status.CANCELLED):
        return f"state_{job.status.value}"
    if job.damaged:
        return "damaged_row"
    if request.of_run is not None and job.run != request.of_run:
        return "another_run"
    return None


def retry(job: JobRecord, request: RetryRequest, now: Instant, *, keeps_steps: bool = True) -> EventRecord:
    """Makes a finished job wait again, as a new run under the same id. With `keeps_steps=False` none of its steps is
    left."""
    refusal = refusal_to_retry(job, request)
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
    if request.input is not None:
        job.input = request.input
    if request.priority is not None:
        job.priority = request.priority
    if request.reset_attempts or request.fresh:
        job.attempt = 0
        job.crashes = 0
    else:  # The caller wants at least one more start, so one attempt and one crash are given back if all are used up.
        job.crashes = min(job.crashes, job.max_crashes - 1)
        if job.max_attempts is not None:
            job.attempt = min(job.attempt, job.max_attempts - 1)
    if request.fresh:
        job.checkpoint = None
        job.error = None
    if request.fresh or not keeps_steps:
        job.flags &= ~STEPPED
    if job.deadline is not None and job.deadline <= now + request.delay_us:
        job.deadline = None  # It has passed: if it were kept, the new run would expire at once.
    job.flags &= ~AT_FIXED_TIME
    _reorder(job, now + request.delay_us)
    return _note(job, "retried", now, request.reason)


def has_other_rev(job: JobRecord, request: UpdateRequest) -> bool:
    """Tells whether the job has changed since the caller of this update saw it."""
    return request.if_rev is not None and job.rev != request.if_rev


def update(job: JobRecord, request: UpdateRequest, now: Instant) -> EventRecord | None:
    """Changes a waiting job and returns the event to record, or None if nothing had to change. The caller has checked
    that the job is waiting."""
    assert job.status is Status.WAITING, job.status
    before = job.input, job.priority, job.run_at
    shorten_wait(job, now)
    if request.input is not None:
        job.input = request.input
        if is_misfit(job.error):
            job.error = None  # Workers that refused the old arguments may accept these.
    if request.priority is not None:
        job.priority = request.priority
    run_at = _updated_run_at(job, request, now)
    if (job.input, job.priority, run_at) == before:
        return None
    if request.run_now or request.run_at is not None:
        job.flags = job.flags & ~AT_FIXED_TIME if request.run_now else job.flags | AT_FIXED_TIME
    _reorder(job, run_at)
    return _note(job, "triggered" if request.run_now else "updated", now, None)


def _updated_run_at(job: JobRecord, request: UpdateRequest, now: Instant) -> Instant:
    """Returns when the updated job is ready. A job that is ready, and stays so, keeps its place in the order."""
    wanted = now if request.run_now else job.run_at if request.run_at is None else request.run_at
    return job.run_at if max(wanted, job.run_at) <= now else max(now, wanted)


def _reorder(job: JobRecord, run_at: Instant) -> None:
    job.run_at = run_at
    job.prio_key, job.time_key = order_key(job.priority, run_at, job.flags)


def _note(job: JobRecord, kind: str, now: Instant, reason: str | None) -> EventRecord:
    job.rev += 1
    job.updated_at = now
    return EventRecord(seq=job.seq, rev=job.rev, kind=kind, at=now, reason=reason)
