"""The rules that keep a job pending and that end this: its parents, a timeout, a signal.

Like the functions of domain/jobs/transition.py, these functions change a record in place and return the effects that
the store has to write. A gate that opens is not a move: like the passing of time, it changes the state that people see
and not the recorded history. A gate that becomes doomed is a move.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct, structs

from ropewalk.domain.failure import Category, ErrorInfo
from ropewalk.domain.jobs.clock_set_back import shorten_wait
from ropewalk.domain.jobs.flags import SKIPPED
from ropewalk.domain.jobs.order import order_key
from ropewalk.domain.jobs.record import CancelRequest, EventRecord, JobRecord
from ropewalk.domain.jobs.states import Move, Status, is_legal
from ropewalk.domain.jobs.transition import Effects
from ropewalk.domain.time import Instant
from ropewalk.domain.workflow.completion import compensation
from ropewalk.domain.workflow.dependency import Ending, Gate, NewGate, Opening, Policy, opening

DEPENDENCY_FAILED: Final = "dependency_failed"
"""This is the error code of a job whose gate a parent doomed."""


class ParentEnd(Struct, frozen=True):
    """The end of one parent."""

    id: str
    ending: Ending
    failure: str | None = None
    """If the parent is a group, a tree or a chain that did not succeed, this text names it and the reason."""


def bind(job: JobRecord, new: NewGate, *, total: int, depth: int, priority: int | None, now: Instant) -> None:
    """Puts a new job behind its gate. `priority` is the highest priority of its parents if the job inherits it."""
    need = min(new.need, total)  # A parent that is named twice counts once.
    job.gate = Gate(total=total, need=need, of=new.of, policy=new.policy, timeout_us=new.timeout_us)
    job.unmet = total
    job.depth = depth
    _set_timeout(job.gate, job, now)
    if priority is not None:
        take_over_priority(job, priority)


def take_over_priority(job: JobRecord, priority: int) -> None:
    """Gives a waiting job another priority, and with it another place in the order."""
    job.priority = priority
    job.prio_key, job.time_key = order_key(priority, job.run_at, job.flags)


def parents_ended(job: JobRecord, ended: Sequence[ParentEnd], now: Instant) -> Effects | None:
    """Counts parents that have ended. Returns effects if the gate can no longer open; otherwise the job becomes ready
    or goes on waiting.

    Parents are counted until the job starts, even after the gate has opened: if a parent is retried, the counts decide
    whether the job has to wait again.
    """
    gate = job.gate
    assert gate is not None and not job.start_rev, f"job {job.id} does not wait for parents"
    ok = sum(each.ending is Ending.COMPLETED for each in ended)
    job.gate = gate = structs.replace(gate, done=gate.done + len(ended), ok=gate.ok + ok)
    if not job.unmet:
        return None
    match opening(gate):
        case Opening.CLOSED:
            job.unmet = gate.total - gate.done
            return None
        case Opening.OPEN:
            _release(job, now)
            return None
        case Opening.DOOMED:
            culprit = next((each for each in ended if each.ending is not Ending.COMPLETED), None)
            assert culprit is not None, f"job {job.id} is doomed, although its parents succeeded"
            policy = gate.policy or ("cancel" if culprit.ending is Ending.CANCELLED else "fail")
            error = ErrorInfo(
                category=Category.PERMANENT,
                code=DEPENDENCY_FAILED,
                message=f"it depends on {culprit.failure or f'{culprit.id}, which ended as {culprit.ending.value}'}",
                context={"parent": culprit.id, "ending": culprit.ending.value},
            )
            return doom(job, policy, error, now)


def wait_is_over(job: JobRecord, now: Instant) -> Effects | None:
    """Ends a wait whose `wake_at` has come: the policy of a gate decides how the job ends, and a handler that waited
    for a signal runs again."""
    assert job.status is Status.WAITING and job.unmet, f"job {job.id} is not pending"
    if job.awaits is not None:
        _release(job, now)
        return None
    gate = job.gate
    assert gate is not None, f"job {job.id} waits for nothing"
    message = f"its dependencies were not settled in time: {gate.done} of {gate.total} ended, {gate.ok} successfully"
    error = ErrorInfo(category=Category.TIMEOUT, code="gate_timeout", message=message)
    return doom(job, gate.policy or "fail", error, now)


def signalled(job: JobRecord, name: str, now: Instant) -> bool:
    """Makes the job ready if it waited for this signal. Returns whether it did."""
    if job.status is not Status.WAITING or job.awaits != name:
        return False
    _release(job, now)
    return True


def doom(job: JobRecord, policy: Policy, error: ErrorInfo, now: Instant) -> Effects:
    """Ends a job whose gate will never open, as the policy says; the policy "run" makes it ready instead."""
    match policy:
        case "run":
            _release(job, now)
            job.rev += 1
            job.updated_at = now
            note = EventRecord(seq=job.seq, rev=job.rev, kind="gate_ignored", at=now, reason=error.message)
            return Effects(Move.DOOM, event=note)
        case "fail":
            job.error = error
            return _end(job, Move.DOOM, Status.FAILED, error.message, now)
        case "cancel":
            job.error = error
            job.cancel = CancelRequest(reason=error.message, force=False, at=now)
            return _end(job, Move.CANCEL, Status.CANCELLED, error.message, now)
        case "skip":
            job.flags |= SKIPPED
            return _end(job, Move.SKIP, Status.COMPLETED, error.message, now)


def decides(job: JobRecord) -> bool:
    """Whether the parents of a job still decide about it: it has a gate and has never started."""
    return job.gate is not None and not job.start_rev


def is_open(job: JobRecord) -> bool:
    """Whether the job has a gate that is open."""
    return job.gate is not None and opening(job.gate) is Opening.OPEN


def counted_again(job: JobRecord, endings: Sequence[Ending | None]) -> Gate:
    """Returns the gate that the job has if its parents ended in these ways. None stands for a parent that has not ended
    or is open again."""
    gate = job.gate
    assert gate is not None and not job.start_rev, f"job {job.id} does not wait for parents"
    done = len(endings) - endings.count(None)
    return structs.replace(gate, done=done, ok=endings.count(Ending.COMPLETED))


def keeps_from_starting(job: JobRecord, endings: Sequence[Ending | None]) -> bool:
    """Whether the job can never start if its parents ended in these ways: its gate can no longer open, and its policy
    is not to run anyway."""
    gate = counted_again(job, endings)
    return opening(gate) is Opening.DOOMED and gate.policy != "run"


def block_again(job: JobRecord, now: Instant) -> None:
    """Makes the job wait again for those of its parents that have not ended. The timeout of the gate starts over."""
    assert job.gate is not None and job.status is Status.WAITING, f"job {job.id} is {job.status}"
    job.unmet = job.gate.total - job.gate.done
    _set_timeout(job.gate, job, now)


def _set_timeout(gate: Gate, job: JobRecord, now: Instant) -> None:
    if gate.timeout_us is not None:
        job.wake_at = now + gate.timeout_us


def _release(job: JobRecord, now: Instant) -> None:
    job.unmet = 0
    job.awaits = None
    job.wake_at = None
    shorten_wait(job, now)
    job.run_at = max(job.run_at, now)
    job.prio_key, job.time_key = order_key(job.priority, job.run_at, job.flags)


_KINDS = {Move.DOOM: "doomed", Move.CANCEL: "cancelled", Move.SKIP: "skipped"}


def _end(job: JobRecord, move: Move, status: Status, reason: str, now: Instant) -> Effects:
    assert is_legal(move, job.status, status), f"illegal move {move}: {job.status} → {status} (job {job.id})"
    job.status = status
    job.last_move = move
    job.unmet = 0
    job.awaits = None
    job.wake_at = None
    job.rev += 1
    job.updated_at = now
    job.finished_at = now
    event = EventRecord(seq=job.seq, rev=job.rev, kind=_KINDS[move], at=now, reason=reason)
    return Effects(move, compensation=compensation(job) if status is Status.FAILED else None, event=event)
