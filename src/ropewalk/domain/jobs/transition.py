"""What happens to a job, decided once for every store.

`decide` runs in the worker and turns an outcome into a settlement. All other functions run in the store, on the locked
record and with the store's clock: `claim`, `settle` (for which `final_move` has the last word), `lose` for a lease
that ran out, `expire` for a deadline that has passed, and `set_aside` for a row that cannot be read. They change the
record in place and return the effects that the store has to write beside it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, assert_never

from msgspec import Struct, structs

from ropewalk.domain.failure import DEADLINE_EXCEEDED, WORKER_LOST, ErrorInfo, damaged_row
from ropewalk.domain.jobs.flags import AT_FIXED_TIME, SETTLES_ALONE, STEPPED
from ropewalk.domain.jobs.misfit import is_misfit
from ropewalk.domain.jobs.order import order_key
from ropewalk.domain.jobs.outcome import (
    Aborted,
    Cancelled,
    Completed,
    Crashed,
    Deferred,
    Errored,
    Expired,
    Misfit,
    NotCompleted,
    Outcome,
    Released,
    Suspended,
)
from ropewalk.domain.jobs.record import AttemptRecord, EventRecord, JobRecord, NewJob
from ropewalk.domain.jobs.retry import ResolvedBackoff, delay, is_last
from ropewalk.domain.jobs.states import GIVES_ATTEMPT_BACK, KEEPS_ITS_PLACE, SETTLING, Move, Status, is_legal
from ropewalk.domain.logs import LogLine
from ropewalk.domain.time import Instant, Span
from ropewalk.domain.workflow.completion import CompletionPlan, Suspension, compensation

EPOCH_SHIFT: Final = 32
"""A fence is epoch << 32 | starts. Raising the epoch outdates every fence that was given out before a restore."""

# These are used for every job: on Python 3.11 access to a member of an enum takes as long as a small function (90 ns).
_WAITING, _RUNNING = Status.WAITING, Status.RUNNING
_CLAIM, _COMPLETE = Move.CLAIM, Move.COMPLETE
_CONCERNS_OTHERS: Final = ~SETTLES_ALONE


class AttemptTiming(Struct, frozen=True, gc=False):
    """How the time of an attempt was spent. Only the worker knows it: the store saw a claim and a settlement."""

    waited_us: Span
    """The job waited in its worker this long, from the claim until the handler began."""
    ran_us: Span
    """The handler ran this long."""


class Settlement(Struct, frozen=True, kw_only=True, gc=False):
    """What becomes of a job after an attempt, as its worker decided. Times are relative to the clock of the store."""

    seq: int
    fence: int
    move: Move
    """The worker asks for this move; the store may decide otherwise (`final_move`)."""
    result: bytes | None = None
    error: ErrorInfo | None = None
    delay_us: Span = 0
    """A job that goes back to waiting is ready after this long."""
    run_at: Instant | None = None
    """A job that was deferred with Defer(at=...) is ready at this instant, whatever `delay_us` says."""
    crashed: bool = False
    """The process of the handler died, which counts as a crash of the job."""
    plan: CompletionPlan | None = None
    """The jobs and the contribution that come with a completion; None if it leaves only a result."""
    alone: bool = False
    """Hint from the worker that the flags of the job name no dependant, scope or key. The store checks again."""
    suspension: Suspension | None = None
    """A settlement with the move SUSPEND says here what the job waits for."""
    lines: tuple[LogLine, ...] = ()
    """The lines that the attempt logged and that the store does not have yet, as far as the worker knows."""
    timing: AttemptTiming | None = None
    """None if no handler began; statistics then count the time from the claim to the settlement as its run time."""


class Effects(Struct, frozen=True, gc=False):
    """What a store must write in the same transaction as the changed record."""

    move: Move
    """This move really happened; it may differ from the move that the worker asked for."""
    attempt: AttemptRecord | None = None
    """The attempt that ended with this move, unless it was completed: columns of the job record a completion."""
    compensation: NewJob | None = None
    """The compensation of a job that failed for good."""
    event: EventRecord | None = None
    """The event that records a move outside of any attempt, without which the history would have a gap."""
    ready_at: Instant | None = None
    """The attempt that ended could have started at this instant; None if no attempt ended."""
    timing: AttemptTiming | None = None
    """The timing of that attempt, if its worker sent one."""
    reopened_from: Status | None = None
    """A finished job that is open again had ended with this status."""


def decide(
    job: JobRecord, outcome: Outcome, backoff: ResolvedBackoff, roll: float, timing: AttemptTiming | None = None
) -> Settlement:
    """Decides in the worker which move an outcome asks for. `roll`, a random number in [0, 1), spreads the backoff."""
    if not isinstance(outcome, Completed):
        return structs.replace(_decide_otherwise(job, outcome, backoff, roll), timing=timing)
    alone = job.flags & _CONCERNS_OTHERS == 0
    return Settlement(
        seq=job.seq,
        fence=job.fence,
        move=_COMPLETE,
        result=outcome.result,
        plan=outcome.plan,
        alone=alone,
        timing=timing,
    )


def _decide_otherwise(job: JobRecord, outcome: NotCompleted, backoff: ResolvedBackoff, roll: float) -> Settlement:
    seq, fence = job.seq, job.fence
    match outcome:
        case Suspended(suspension):
            wait = 0 if suspension.signal is not None else suspension.span_us or 0
            return Settlement(seq=seq, fence=fence, move=Move.SUSPEND, delay_us=wait, suspension=suspension)
        case Errored(error, after_us):
            if is_last(job.attempt, job.max_attempts):
                return Settlement(seq=seq, fence=fence, move=Move.BURY, error=error)
            wait = after_us if after_us is not None else delay(backoff, job.attempt, roll)
            return Settlement(seq=seq, fence=fence, move=Move.RETRY, error=error, delay_us=wait)
        case Crashed(error):
            move = Move.BURY if _last_chance(job, job.crashes + 1) else Move.LOSE
            return Settlement(seq=seq, fence=fence, move=move, error=error, crashed=True)
        case Aborted(error):
            return Settlement(seq=seq, fence=fence, move=Move.FAIL, error=error)
        case Misfit(error, None):
            return Settlement(seq=seq, fence=fence, move=Move.FAIL, error=error)
        case Misfit(error, delay_us):
            return Settlement(seq=seq, fence=fence, move=Move.DEFER, error=error, delay_us=delay_us or 0)
        case Deferred(delay_us, at):
            return Settlement(seq=seq, fence=fence, move=Move.DEFER, delay_us=delay_us or 0, run_at=at)
        case Released(delay_us):
            return Settlement(seq=seq, fence=fence, move=Move.RELEASE, delay_us=delay_us)
        case Expired():
            return Settlement(seq=seq, fence=fence, move=Move.EXPIRE, error=DEADLINE_EXCEEDED)
        case Cancelled(error):
            return Settlement(seq=seq, fence=fence, move=Move.CANCEL, error=error)
        case _:
            assert_never(outcome)


def final_move(job: JobRecord, settlement: Settlement, now: Instant) -> tuple[Move, Instant]:
    """Decides in the store, under the lock of the row, which move really happens. The second value is the `run_at` of
    the job if the move leads back to waiting.

    A requested cancellation takes precedence over everything but a completion. If the next start would be at or after
    the deadline, the job expires now.
    """
    move = settlement.move
    if move is Move.COMPLETE:
        return Move.COMPLETE, now
    if job.cancel is not None:
        return Move.CANCEL, now
    requested_at = settlement.run_at
    if settlement.suspension is not None and settlement.suspension.signal is None:
        requested_at = settlement.suspension.until_at(now)
    run_at = max(now, requested_at if requested_at is not None else now + settlement.delay_us)
    if SETTLING[move] is Status.WAITING and job.deadline is not None and run_at >= job.deadline:
        return Move.EXPIRE, now
    if move in KEEPS_ITS_PLACE and run_at == now:
        return move, min(job.run_at, now)
    return move, run_at


def claim(job: JobRecord, *, owner: str, ticket: int, epoch: int, lease_us: Span, now: Instant) -> None:
    """Moves a waiting job to running: sets state, owner, fence, lease expiry and attempt together."""
    claim_all([job], owner, first_ticket=ticket, epoch=epoch, leases={job.type: lease_us}, now=now)


def claim_all(
    jobs: Iterable[JobRecord], owner: str, *, first_ticket: int, epoch: int, leases: Mapping[str, Span], now: Instant
) -> None:
    """Claims many jobs. They get consecutive tickets; `leases` has the length of a lease for each type."""
    first_fence, running, claim = epoch << EPOCH_SHIFT, _RUNNING, _CLAIM
    for ticket, job in enumerate(jobs, first_ticket):
        assert job.status is _WAITING, f"illegal move {claim}: {job.status} → {running} (job {job.id})"
        job.status, job.last_move, job.updated_at = running, claim, now
        job.rev = job.start_rev = job.rev + 1
        job.attempt += 1
        job.fence = (job.fence if job.fence > first_fence else first_fence) + 1
        job.owner, job.ticket, job.started_at = owner, ticket, now
        of_type = leases[job.type]  # A type outside the claim is damage: it must raise, even if the job has a lease.
        job.lease_expires_at = now + (job.lease_us or of_type)


def settle(job: JobRecord, settlement: Settlement, now: Instant, *, signal_arrived: bool = False) -> Effects:
    """Ends the attempt of a running job. The caller has checked seq, fence and owner.

    `signal_arrived` says that the signal for which a suspension waits is already in the mailbox of the job, which is
    then ready at once.
    """
    if settlement.crashed:
        job.crashes += 1
    move, run_at = final_move(job, settlement, now)
    effects = _end_attempt(job, move, settlement, error=settlement.error, run_at=run_at, now=now)
    suspension = settlement.suspension
    if move is Move.SUSPEND and suspension is not None:
        job.flags |= STEPPED
        if suspension.signal is not None and not signal_arrived:
            job.awaits, job.unmet = suspension.signal, 1
            job.wake_at = suspension.until_at(now)
    return effects


def lose(job: JobRecord, *, started: bool, now: Instant) -> Effects:
    """Ends the attempt of a job whose lease ran out. If it had started, a crash is counted; if not, the attempt is not
    counted."""
    wanted = Move.LOSE
    if not started:
        wanted = Move.RELEASE
    elif job.cancel is None:
        job.crashes += 1
        if _last_chance(job, job.crashes):
            wanted = Move.BURY
    settlement = Settlement(seq=job.seq, fence=job.fence, move=wanted)
    move, run_at = final_move(job, settlement, now)
    error = WORKER_LOST if started and move is not Move.CANCEL else None
    return _end_attempt(job, move, settlement, error=error, run_at=run_at, now=now)


def expire(job: JobRecord, now: Instant) -> Effects:
    """Makes a waiting job a dead letter, because its deadline passed before it, or its retry, could start."""
    _step(job, Move.EXPIRE, Status.WAITING, Status.DEAD_LETTER, now)
    job.error = DEADLINE_EXCEEDED
    event = EventRecord(seq=job.seq, rev=job.rev, kind="expired", at=now, reason=DEADLINE_EXCEEDED.message)
    return Effects(Move.EXPIRE, compensation=_finish(job, now), event=event)


def set_aside(job: JobRecord, now: Instant) -> Effects:
    """Makes a job a dead letter, because columns of its stored row cannot be read, so that no other job waits for it.

    Its compensation is queued like that of any dead letter, unless the damaged columns name it.
    """
    assert job.damaged, f"the row of job {job.id} can be read"
    was_running = job.status is Status.RUNNING
    _step(job, Move.SET_ASIDE, job.status, Status.DEAD_LETTER, now)
    job.owner = job.lease_expires_at = None
    if was_running:
        job.attempt -= 1
    job.error = damaged_row(job.damaged)
    event = EventRecord(seq=job.seq, rev=job.rev, kind=Move.SET_ASIDE.value, at=now, reason=job.error.message)
    return Effects(Move.SET_ASIDE, compensation=_finish(job, now), event=event)


def _last_chance(job: JobRecord, crashes: int) -> bool:
    """Whether the job must not run again after so many crashes."""
    return crashes >= job.max_crashes or is_last(job.attempt, job.max_attempts)


def _end_attempt(
    job: JobRecord, move: Move, settlement: Settlement, *, error: ErrorInfo | None, run_at: Instant, now: Instant
) -> Effects:
    status = SETTLING[move]
    fence, owner, attempt, start_rev, ready_at = job.fence, job.owner, job.attempt, job.start_rev, job.run_at
    started_at = job.started_at if job.started_at is not None else now
    _step(job, move, Status.RUNNING, status, now)
    job.lease_expires_at = None
    if move is not Move.COMPLETE:
        job.owner = None  # A completed job keeps the name of the worker that ran it.
    if move in GIVES_ATTEMPT_BACK:
        job.attempt -= 1
    if move is Move.EXPIRE:
        job.error = DEADLINE_EXCEEDED  # The error of its last attempt is in the record of that attempt.
    elif error is not None:
        job.error = error
    elif move in (Move.DEFER, Move.SUSPEND) and is_misfit(job.error):
        job.error = None  # The handler ran, so the code of this worker could read the arguments.
    next_run_at = None
    if status is Status.WAITING:
        next_run_at = run_at
        fixed = move is Move.DEFER and settlement.run_at is not None
        job.flags = job.flags | AT_FIXED_TIME if fixed else job.flags & ~AT_FIXED_TIME
        _wait_until(job, run_at)
    if move is Move.COMPLETE:
        job.result = settlement.result
        job.error = None
    compensating = None if status is Status.WAITING else _finish(job, now)
    if move is Move.COMPLETE:
        return Effects(move, ready_at=ready_at, timing=settlement.timing)
    record = AttemptRecord(
        seq=job.seq,
        fence=fence,
        run=job.run,
        attempt=attempt,
        move=move,
        start_rev=start_rev,
        rev=job.rev,
        started_at=started_at,
        ended_at=now,
        owner=owner,
        error=error,
        next_run_at=next_run_at,
    )
    return Effects(move, record, compensating, ready_at=ready_at, timing=settlement.timing)


def _step(job: JobRecord, move: Move, before: Status, after: Status, now: Instant) -> None:
    legal = job.status is before and is_legal(move, before, after)
    assert legal, f"illegal move {move}: {job.status} → {after} (job {job.id})"
    job.status = after
    job.last_move = move
    job.rev += 1
    job.updated_at = now


def _wait_until(job: JobRecord, run_at: Instant) -> None:
    job.run_at = run_at
    job.prio_key, job.time_key = order_key(job.priority, run_at, job.flags)


def _finish(job: JobRecord, now: Instant) -> NewJob | None:
    """Clears what only an open job has, and returns the compensation if the job failed for good."""
    job.finished_at = now
    job.unmet, job.awaits, job.wake_at = 0, None, None
    if job.status in (Status.FAILED, Status.DEAD_LETTER):
        return compensation(job)
    return None
