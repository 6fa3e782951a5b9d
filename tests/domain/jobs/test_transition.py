"""The store's half: claim, settle, lose and expire on a locked record."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ropewalk.domain.failure import DEADLINE_EXCEEDED, WORKER_LOST, ErrorInfo
from ropewalk.domain.jobs.order import order_key
from ropewalk.domain.jobs.record import CancelRequest, CompensationSpec, JobRecord
from ropewalk.domain.jobs.states import GIVES_ATTEMPT_BACK, KEEPS_ITS_PLACE, SETTLING, TERMINAL, Move, State, Status
from ropewalk.domain.jobs.transition import Effects, claim, claim_all, expire, final_move, lose, settle
from ropewalk.domain.time import HOUR, SECOND
from tests.domain.records import NOW, OOPS, a_job, asking, in_status, running, start

LATER = NOW + 5 * SECOND
ASKED = CancelRequest("no longer needed", force=False, at=NOW)
BACK_TO_WAITING = [move for move, status in SETTLING.items() if status is Status.WAITING]


# ── who has the last word ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("asked", SETTLING)
def test_a_noted_cancellation_beats_everything_but_a_completion(asked: Move) -> None:
    job = running()
    job.cancel = ASKED
    move, _ = final_move(job, asking(job, asked), LATER)
    assert move is (Move.COMPLETE if asked is Move.COMPLETE else Move.CANCEL)


@pytest.mark.parametrize("asked", SETTLING)
def test_without_one_the_worker_gets_what_it_asked_for(asked: Move) -> None:
    job = running(deadline=LATER + 1)
    assert final_move(job, asking(job, asked), LATER) == (asked, NOW if asked in KEEPS_ITS_PLACE else LATER)


@pytest.mark.parametrize("asked", BACK_TO_WAITING)
@pytest.mark.parametrize(("delay_us", "expires"), [(99, False), (100, True), (101, True)])
def test_a_next_start_at_or_past_the_deadline_expires_now(asked: Move, delay_us: int, expires: bool) -> None:
    job = running(deadline=LATER + 100)
    settlement = asking(job, asked, delay_us=delay_us)
    wanted = (Move.EXPIRE, LATER) if expires else (asked, LATER + delay_us)
    assert final_move(job, settlement, LATER) == wanted


@pytest.mark.parametrize("asked", set(SETTLING) - set(BACK_TO_WAITING))
def test_a_passed_deadline_does_not_undo_an_end(asked: Move) -> None:
    job = running(deadline=NOW + 1)
    assert final_move(job, asking(job, asked), LATER)[0] is asked


@pytest.mark.parametrize(
    ("delay_us", "run_at", "expected"),
    [
        (0, None, LATER),
        (9, None, LATER + 9),
        (9, LATER + 50, LATER + 50),
        (9, LATER - 50, LATER),
    ],
    ids=["at once", "a delay", "a time wins over a delay", "a past time is now"],
)
def test_when_a_deferred_job_runs_again(delay_us: int, run_at: int | None, expected: int) -> None:
    job = running()
    settle(job, asking(job, Move.DEFER, delay_us=delay_us, run_at=run_at), LATER)
    assert job.run_at == expected
    assert (job.prio_key, job.time_key) == order_key(job.priority, expected, job.flags)


@pytest.mark.parametrize("move", KEEPS_ITS_PLACE)
@pytest.mark.parametrize("strict_order", [False, True])
@pytest.mark.parametrize(("delay_us", "expected"), [(0, NOW), (1, LATER + 1)], ids=["at once", "a delay"])
def test_a_job_given_back_keeps_its_place_unless_it_is_to_wait(
    move: Move, strict_order: bool, delay_us: int, expected: int
) -> None:
    job = running(priority=10, strict_order=strict_order)
    effects = settle(job, asking(job, move, delay_us=delay_us), LATER)
    assert effects.attempt is not None
    assert (job.run_at, effects.attempt.next_run_at) == (expected, expected)
    assert (job.prio_key, job.time_key) == order_key(10, expected, job.flags)


@pytest.mark.parametrize("move", KEEPS_ITS_PLACE)
def test_a_clock_that_stepped_back_keeps_nobody_waiting(move: Move) -> None:
    job = running()
    earlier = job.run_at - 10
    assert final_move(job, asking(job, move), earlier) == (move, earlier)


@pytest.mark.parametrize("move", KEEPS_ITS_PLACE)
def test_an_early_place_in_line_does_not_outlive_the_deadline(move: Move) -> None:
    job = running(deadline=LATER)
    assert final_move(job, asking(job, move), LATER) == (Move.EXPIRE, LATER)


# ── every verb from every status ────────────────────────────────────────────────────────────────────────────


def settled_with(move: Move) -> Callable[[JobRecord], object]:
    return lambda job: settle(job, asking(job, move, error=OOPS), LATER)


VERBS: dict[str, tuple[Status, Callable[[JobRecord], object]]] = {
    "claim": (Status.WAITING, lambda job: start(job, now=LATER)),
    "expire": (Status.WAITING, lambda job: expire(job, LATER)),
    "lose started": (Status.RUNNING, lambda job: lose(job, started=True, now=LATER)),
    "lose unstarted": (Status.RUNNING, lambda job: lose(job, started=False, now=LATER)),
    **{f"settle {move}": (Status.RUNNING, settled_with(move)) for move in SETTLING},
}


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("status", Status)
def test_a_verb_works_from_its_status_and_is_refused_from_any_other(verb: str, status: Status) -> None:
    home, act = VERBS[verb]
    job = in_status(status)
    rev = job.rev
    if status is home:
        act(job)
        assert (job.rev, job.updated_at) == (rev + 1, LATER)
    else:
        with pytest.raises(AssertionError, match="illegal move"):
            act(job)
        assert (job.status, job.rev) == (status, rev)


# ── claim ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_claim_writes_everything_together() -> None:
    job = a_job()
    claim(job, owner="worker-b", ticket=4, epoch=0, lease_us=30 * SECOND, now=LATER)
    assert (job.status, job.last_move) == (Status.RUNNING, Move.CLAIM)
    assert (job.owner, job.ticket, job.fence, job.attempt) == ("worker-b", 4, 1, 1)
    assert (job.lease_expires_at, job.started_at, job.start_rev) == (LATER + 30 * SECOND, LATER, 2)


def test_many_are_claimed_like_each_of_them() -> None:
    one_by_one, together = ([a_job(), a_job(lease_us=5 * SECOND), a_job(type="other")] for _ in range(2))
    for jobs in (one_by_one, together):
        start(jobs[0], epoch=3)
        settle(jobs[0], asking(jobs[0], Move.RELEASE), NOW)
    leases = {one_by_one[0].type: 30 * SECOND, "other": 40 * SECOND}
    for ticket, job in enumerate(one_by_one, 7):
        claim(job, owner="worker-b", ticket=ticket, epoch=2, lease_us=leases[job.type], now=LATER)
    claim_all(together, "worker-b", first_ticket=7, epoch=2, leases=leases, now=LATER)
    assert together == one_by_one
    with pytest.raises(AssertionError, match="illegal move"):
        claim_all(together, "worker-b", first_ticket=7, epoch=2, leases=leases, now=LATER)


def test_a_job_may_have_a_lease_of_its_own() -> None:
    assert running(lease_us=5 * SECOND).lease_expires_at == NOW + 5 * SECOND


def test_fences_only_grow_and_a_raised_epoch_outdates_them_all() -> None:
    job = a_job()
    fences = [claimed_again(job, epoch) for epoch in (0, 0, 1, 1, 0, 3)]
    assert fences == sorted(set(fences))
    assert [fence >> 32 for fence in fences] == [0, 0, 1, 1, 1, 3]


def claimed_again(job: JobRecord, epoch: int) -> int:
    fence = start(job, epoch=epoch).fence
    settle(job, asking(job, Move.RELEASE), NOW)
    return fence


# ── settle ──────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("move", SETTLING)
def test_settling_ends_the_lease_and_records_the_attempt(move: Move) -> None:
    job = running()
    effects = settle(job, asking(job, move, error=OOPS), LATER)
    assert (effects.move, job.last_move, job.status) == (move, move, SETTLING[move])
    assert (job.owner, job.lease_expires_at) == ("worker-a" if move is Move.COMPLETE else None, None)
    assert job.attempt == (0 if move in GIVES_ATTEMPT_BACK else 1)
    assert job.finished_at == (LATER if job.status in TERMINAL else None)
    if move is Move.COMPLETE:
        assert effects.attempt is None
        return
    record = effects.attempt
    assert record is not None
    assert (record.seq, record.fence, record.run, record.attempt) == (job.seq, 1, 1, 1)
    assert (record.move, record.error, record.owner) == (move, OOPS, "worker-a")
    assert (record.start_rev, record.rev, record.started_at, record.ended_at) == (2, 3, NOW, LATER)
    assert record.next_run_at == (job.run_at if job.status is Status.WAITING else None)


@pytest.mark.parametrize("move", set(SETTLING) - {Move.COMPLETE})
def test_an_attempt_that_ended_without_an_error_records_none(move: Move) -> None:
    job = running()
    record = settle(job, asking(job, move), LATER).attempt
    assert record is not None
    assert (record.error, job.error) == (None, DEADLINE_EXCEEDED if move is Move.EXPIRE else None)


def test_a_completion_keeps_the_result_and_forgets_earlier_errors() -> None:
    job = running()
    settle(job, asking(job, Move.RETRY, error=OOPS), NOW)
    assert (job.result, job.error) == (None, OOPS)
    settle(start(job), asking(job, Move.COMPLETE, result=b"3"), LATER)
    assert (job.result, job.error) == (b"3", None)


def test_a_retry_waits_in_its_own_state() -> None:
    job = running()
    settle(job, asking(job, Move.RETRY, error=OOPS, delay_us=HOUR), LATER)
    assert [job.state_at(LATER), job.state_at(LATER + HOUR)] == [State.RETRYING, State.SCHEDULED]


@pytest.mark.parametrize("move", [*BACK_TO_WAITING, Move.EXPIRE])
@pytest.mark.parametrize("error", [OOPS, None], ids=["an error", "none"])
def test_an_expired_job_says_so_and_its_attempt_what_it_said(move: Move, error: ErrorInfo | None) -> None:
    job = running(deadline=NOW + 1)
    effects = settle(job, asking(job, move, error=error), LATER)
    assert (effects.move, job.status, job.error) == (Move.EXPIRE, Status.DEAD_LETTER, DEADLINE_EXCEEDED)
    assert effects.attempt is not None
    assert (effects.attempt.error, effects.attempt.next_run_at) == (error, None)


def test_an_earlier_error_does_not_stay_on_an_expired_job() -> None:
    job = running(deadline=LATER)
    settle(job, asking(job, Move.RETRY, error=OOPS), NOW)
    settle(start(job), asking(job, Move.DEFER), LATER)
    assert (job.last_move, job.error) == (Move.EXPIRE, DEADLINE_EXCEEDED)


def test_a_crashed_attempt_counts_a_crash() -> None:
    job = running()
    settle(job, asking(job, Move.LOSE, error=OOPS, crashed=True), LATER)
    assert (job.crashes, job.attempt, job.run_at) == (1, 1, NOW)


# ── lose ────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("options", "attempt", "crashes", "move", "error"),
    [
        ({}, 1, 0, Move.LOSE, WORKER_LOST),
        ({"max_attempts": 3}, 3, 0, Move.BURY, WORKER_LOST),
        ({"max_attempts": None}, 99, 1, Move.LOSE, WORKER_LOST),
        ({"max_attempts": None}, 99, 2, Move.BURY, WORKER_LOST),
        ({"max_crashes": 1}, 1, 0, Move.BURY, WORKER_LOST),
        ({"deadline": LATER}, 1, 0, Move.EXPIRE, DEADLINE_EXCEEDED),
        ({"deadline": LATER + 1}, 1, 0, Move.LOSE, WORKER_LOST),
        ({"deadline": LATER, "max_crashes": 1}, 1, 0, Move.BURY, WORKER_LOST),
    ],
)
def test_a_lost_lease_counts_a_crash(
    options: dict[str, object], attempt: int, crashes: int, move: Move, error: ErrorInfo
) -> None:
    job = running(**options)
    job.attempt, job.crashes = attempt, crashes
    effects = lose(job, started=True, now=LATER)
    assert (effects.move, job.crashes, job.attempt, job.error) == (move, crashes + 1, attempt, error)
    assert effects.attempt is not None
    assert effects.attempt.error == WORKER_LOST


@pytest.mark.parametrize("started", [True, False])
def test_a_lost_job_is_ready_again_where_it_stood_in_line(started: bool) -> None:
    job = running(priority=10)
    effects = lose(job, started=started, now=LATER)
    assert job.ready_at(LATER)
    assert (job.run_at, job.suspect) == (NOW, started)
    assert (job.prio_key, job.time_key) == order_key(10, NOW, job.flags)
    assert effects.attempt is not None
    assert effects.attempt.next_run_at == NOW


def test_a_job_that_never_started_loses_neither_attempt_nor_crash() -> None:
    job = running(max_attempts=1, max_crashes=1)
    effects = lose(job, started=False, now=LATER)
    assert (effects.move, job.attempt, job.crashes, job.error) == (Move.RELEASE, 0, 0, None)
    assert effects.attempt is not None
    assert effects.attempt.error is None


def test_one_that_never_started_expires_without_a_word() -> None:
    job = running(deadline=LATER)
    effects = lose(job, started=False, now=LATER)
    assert (effects.move, job.error, job.crashes) == (Move.EXPIRE, DEADLINE_EXCEEDED, 0)
    assert effects.attempt is not None
    assert effects.attempt.error is None


@pytest.mark.parametrize("started", [True, False])
def test_a_lost_job_that_was_to_be_cancelled_is(started: bool) -> None:
    job = running(max_attempts=1)
    job.cancel = ASKED
    effects = lose(job, started=started, now=LATER)
    assert (effects.move, job.status, job.crashes, job.error) == (Move.CANCEL, Status.CANCELLED, 0, None)
    assert effects.attempt is not None
    assert effects.attempt.error is None


# ── expire and compensation ─────────────────────────────────────────────────────────────────────────────────


def test_a_waiting_job_past_its_deadline_is_dead_and_says_when() -> None:
    job = a_job(deadline=NOW + 1)
    effects = expire(job, LATER)
    assert (job.status, job.error, job.finished_at) == (Status.DEAD_LETTER, DEADLINE_EXCEEDED, LATER)
    assert effects.event is not None
    assert (effects.event.kind, effects.event.rev, effects.event.at) == ("expired", job.rev, LATER)


ENDS: dict[str, tuple[Status, Callable[[JobRecord], Effects]]] = {
    "fail": (Status.RUNNING, lambda job: settle(job, asking(job, Move.FAIL, error=OOPS), LATER)),
    "bury": (Status.RUNNING, lambda job: settle(job, asking(job, Move.BURY, error=OOPS), LATER)),
    "expire running": (Status.RUNNING, lambda job: settle(job, asking(job, Move.EXPIRE), LATER)),
    "expire waiting": (Status.WAITING, lambda job: expire(job, LATER)),
    "worker lost": (Status.RUNNING, lambda job: lose(job, started=True, now=LATER)),
}


@pytest.mark.parametrize("end", ENDS)
def test_every_way_to_fail_compensates(end: str) -> None:
    home, act = ENDS[end]
    effects = act(in_status(home, max_attempts=1, on_failure=CompensationSpec(type="apologise")))
    assert effects.compensation is not None
    assert effects.compensation.type == "apologise"


@pytest.mark.parametrize("move", set(SETTLING) - {Move.FAIL, Move.BURY, Move.EXPIRE})
def test_nothing_else_does(move: Move) -> None:
    job = running(on_failure=CompensationSpec(type="apologise"))
    assert settle(job, asking(job, move, error=OOPS), LATER).compensation is None
