"""What happens to a job, decided once for every store.

`decide` runs in the worker and turns an outcome into a settlement. Everything else runs in the store, on the
locked record and with the store's clock: `claim`, `settle` (which first lets `under_lock` have the last word),
`lose` for a lease that ran out, `expire` for a deadline, `set_aside` for a row that cannot be read. They change the
record they are given and return what must be written beside it.
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
"""a fence is epoch << 32 | starts, so raising the epoch outdates every fence of before a restore"""

# For what happens to every job: on Python 3.11 each look into an enum takes as long as a small function (90 ns).
_WAITING, _RUNNING = Status.WAITING, Status.RUNNING
_CLAIM, _COMPLETE = Move.CLAIM, Move.COMPLETE
_CONCERNS_OTHERS: Final = ~SETTLES_ALONE


class AttemptTiming(Struct, frozen=True, gc=False):
    """Where the time of an attempt went, as only its worker knows: the store saw a claim and a settlement."""

    waited_us: Span
    """from the claim until its handler began"""
    ran_us: Span


class Settlement(Struct, frozen=True, kw_only=True, gc=False):
    """How a worker wants an attempt settled. Times are relative: the store's clock makes them absolute."""

    seq: int
    fence: int
    move: Move
    result: bytes | None = None
    error: ErrorInfo | None = None
    delay_us: Span = 0
    run_at: Instant | None = None
    """absolute, only for Defer(at=…); wins over delay_us"""
    crashed: bool = False
    """the handler's process died: counts a crash"""
    plan: CompletionPlan | None = None
    """of a completion that leaves more than a result"""
    alone: bool = False
    """nobody else has to hear of it, as far as its worker knows; the store knows better"""
    suspension: Suspension | None = None
    """with SUSPEND: what it waits for"""
    lines: tuple[LogLine, ...] = ()
    """what it logged and the store has not yet, as far as it knows"""
    spent: AttemptTiming | None = None
    """None where no handler began: then it ran from the claim on, as far as anybody knows"""


class Effects(Struct, frozen=True, gc=False):
    """What must be written in the same transaction as the changed record."""

    move: Move
    """what really happened, after under_lock"""
    attempt: AttemptRecord | None = None
    follow_up: NewJob | None = None
    event: EventRecord | None = None
    """a move outside any attempt: history would have a gap without it"""
    ready_at: Instant | None = None
    """when the attempt that ended could have started; None where none ended"""
    spent: AttemptTiming | None = None
    """of that attempt, where its worker told"""
    left: Status | None = None
    """how a job had ended that is open again"""


def decide(
    job: JobRecord, outcome: Outcome, backoff: ResolvedBackoff, roll: float, spent: AttemptTiming | None = None
) -> Settlement:
    """The worker's half: which move an outcome asks for. `roll` in [0, 1) spreads the backoff."""
    if not isinstance(outcome, Completed):
        return structs.replace(_decide_otherwise(job, outcome, backoff, roll), spent=spent)
    alone = job.flags & _CONCERNS_OTHERS == 0
    return Settlement(
        seq=job.seq,
        fence=job.fence,
        move=_COMPLETE,
        result=outcome.result,
        plan=outcome.plan,
        alone=alone,
        spent=spent,
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


def under_lock(job: JobRecord, asked: Settlement, now: Instant) -> tuple[Move, Instant]:
    """The store's half: the move that really happens, and run_at where it leads back to waiting.

    A noted cancellation beats everything but a completion; a next start at or past the deadline is an expiry now.
    """
    if asked.move is Move.COMPLETE:
        return Move.COMPLETE, now
    if job.cancel is not None:
        return Move.CANCEL, now
    asked_for = asked.run_at
    if asked.suspension is not None and asked.suspension.signal is None:
        asked_for = asked.suspension.until_at(now)
    run_at = max(now, asked_for if asked_for is not None else now + asked.delay_us)
    if SETTLING[asked.move] is Status.WAITING and job.deadline is not None and run_at >= job.deadline:
        return Move.EXPIRE, now
    if asked.move in KEEPS_ITS_PLACE and run_at == now:
        return asked.move, min(job.run_at, now)
    return asked.move, run_at


def claim(job: JobRecord, *, owner: str, ticket: int, epoch: int, lease_us: Span, now: Instant) -> None:
    """waiting → running: state, owner, fence, expiry and attempt together."""
    claim_all([job], owner, first_ticket=ticket, epoch=epoch, leases={job.type: lease_us}, now=now)


def claim_all(
    jobs: Iterable[JobRecord], owner: str, *, first_ticket: int, epoch: int, leases: Mapping[str, Span], now: Instant
) -> None:
    """Claim many jobs, in order of their tickets, with leases by type."""
    first_fence, running, claim = epoch << EPOCH_SHIFT, _RUNNING, _CLAIM
    for ticket, job in enumerate(jobs, first_ticket):
        assert job.status is _WAITING, f"illegal move {claim}: {job.status} → {running} (job {job.id})"
        job.status, job.last_move, job.updated_at = running, claim, now
        job.rev = job.start_rev = job.rev + 1
        job.attempt += 1
        job.fence = (job.fence if job.fence > first_fence else first_fence) + 1
        job.owner, job.ticket, job.started_at = owner, ticket, now
        of_type = leases[job.type]  # a type nobody asked for is damage: it must not pass, whatever lease the job has
        job.lease_expires_at = now + (job.lease_us or of_type)


def settle(job: JobRecord, asked: Settlement, now: Instant, *, signal_arrived: bool = False) -> Effects:
    """running → wherever `asked` leads. The caller has checked (seq, fence, owner).

    `signal_arrived` says that what a suspension waits for is in the mailbox already: then it goes on at once.
    """
    if asked.crashed:
        job.crashes += 1
    move, run_at = under_lock(job, asked, now)
    effects = _end_attempt(job, move, asked, error=asked.error, run_at=run_at, now=now)
    if move is Move.SUSPEND and asked.suspension is not None:
        job.flags |= STEPPED
        if asked.suspension.signal is not None and not signal_arrived:
            job.awaits, job.unmet = asked.suspension.signal, 1
            job.wake_at = asked.suspension.until_at(now)
    return effects


def lose(job: JobRecord, *, started: bool, now: Instant) -> Effects:
    """The lease ran out. A job that never started gives its attempt back; one that did counts a crash."""
    asked = Move.LOSE
    if not started:
        asked = Move.RELEASE
    elif job.cancel is None:
        job.crashes += 1
        if _last_chance(job, job.crashes):
            asked = Move.BURY
    settlement = Settlement(seq=job.seq, fence=job.fence, move=asked)
    move, run_at = under_lock(job, settlement, now)
    error = WORKER_LOST if started and move is not Move.CANCEL else None
    return _end_attempt(job, move, settlement, error=error, run_at=run_at, now=now)


def expire(job: JobRecord, now: Instant) -> Effects:
    """A waiting job's deadline passed before it (or its retry) could start."""
    _step(job, Move.EXPIRE, Status.WAITING, Status.DEAD_LETTER, now)
    job.error = DEADLINE_EXCEEDED
    event = EventRecord(seq=job.seq, rev=job.rev, kind="expired", at=now, reason=DEADLINE_EXCEEDED.message)
    return Effects(Move.EXPIRE, follow_up=_finish(job, now), event=event)


def set_aside(job: JobRecord, now: Instant) -> Effects:
    """Columns of the stored row cannot be read: the job becomes a dead letter, and nobody waits behind it.

    Its compensation is queued like that of any dead letter, unless that is what cannot be read.
    """
    assert job.damaged, f"the row of job {job.id} can be read"
    ended = job.status is Status.RUNNING
    _step(job, Move.SET_ASIDE, job.status, Status.DEAD_LETTER, now)
    job.owner = job.lease_expires_at = None
    if ended:
        job.attempt -= 1
    job.error = damaged_row(job.damaged)
    event = EventRecord(seq=job.seq, rev=job.rev, kind=Move.SET_ASIDE.value, at=now, reason=job.error.message)
    return Effects(Move.SET_ASIDE, follow_up=_finish(job, now), event=event)


def _last_chance(job: JobRecord, crashes: int) -> bool:
    return crashes >= job.max_crashes or is_last(job.attempt, job.max_attempts)


def _end_attempt(
    job: JobRecord, move: Move, asked: Settlement, *, error: ErrorInfo | None, run_at: Instant, now: Instant
) -> Effects:
    status = SETTLING[move]
    fence, owner, attempt, start_rev, ready_at = job.fence, job.owner, job.attempt, job.start_rev, job.run_at
    started_at = job.started_at if job.started_at is not None else now
    _step(job, move, Status.RUNNING, status, now)
    job.lease_expires_at = None
    if move is not Move.COMPLETE:
        job.owner = None  # a completed job keeps the name of the worker that did it
    if move in GIVES_ATTEMPT_BACK:
        job.attempt -= 1
    if move is Move.EXPIRE:
        job.error = DEADLINE_EXCEEDED  # what its last attempt said is in the attempt's own record
    elif error is not None:
        job.error = error
    elif move in (Move.DEFER, Move.SUSPEND) and is_misfit(job.error):
        job.error = None  # its handler ran: this worker's code could read the arguments
    next_run_at = None
    if status is Status.WAITING:
        next_run_at = run_at
        fixed = move is Move.DEFER and asked.run_at is not None
        job.flags = job.flags | AT_FIXED_TIME if fixed else job.flags & ~AT_FIXED_TIME
        _wait_until(job, run_at)
    follow_up = None
    if move is Move.COMPLETE:
        job.result = asked.result
        job.error = None
    if status is not Status.WAITING:
        follow_up = _finish(job, now)
    if move is Move.COMPLETE:
        return Effects(move, ready_at=ready_at, spent=asked.spent)
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
    return Effects(move, record, follow_up, ready_at=ready_at, spent=asked.spent)


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
    job.finished_at = now
    job.unmet, job.awaits, job.wake_at = 0, None, None
    if job.status in (Status.FAILED, Status.DEAD_LETTER):
        return compensation(job)
    return None
