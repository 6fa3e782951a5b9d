"""What people do to jobs: cancel, retry, update, trigger."""

from __future__ import annotations

from copy import copy

import pytest
from msgspec import structs

from ropewalk.domain.jobs.flags import STEPPED
from ropewalk.domain.jobs.operations import (
    CancelStatus,
    RetryRequest,
    UpdateRequest,
    cancel,
    has_other_rev,
    refusal_to_retry,
    retry,
    update,
)
from ropewalk.domain.jobs.order import order_key
from ropewalk.domain.jobs.record import CancelRequest, JobRecord, Progress
from ropewalk.domain.jobs.states import TERMINAL, Move, State, Status, is_legal
from ropewalk.domain.time import HOUR, SECOND
from tests.domain.records import NOW, OOPS, a_job, in_status, running

LATER = NOW + 5 * SECOND


# ── cancel ──────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("force", [True, False])
def test_a_waiting_job_is_cancelled_at_once(force: bool) -> None:
    job = a_job()
    status, event = cancel(job, reason="enough", force=force, now=LATER)
    assert status is CancelStatus.CANCELLED
    assert (job.status, job.last_move, job.finished_at) == (Status.CANCELLED, Move.CANCEL, LATER)
    assert event is not None
    assert (event.kind, event.rev, event.at, event.reason) == ("cancelled", 2, LATER, "enough")
    assert (job.rev, job.updated_at) == (2, LATER)
    assert job.cancel == CancelRequest("enough", force=force, at=LATER)


def test_a_running_job_is_asked_to_stop() -> None:
    job = running()
    status, event = cancel(job, reason="enough", force=False, now=LATER)
    assert (status, job.status) == (CancelStatus.CANCEL_REQUESTED, Status.RUNNING)
    assert job.cancel == CancelRequest("enough", force=False, at=LATER)
    assert event is not None
    assert (event.kind, event.rev) == ("cancel_requested", job.rev)


@pytest.mark.parametrize(
    ("first", "second", "noted"),
    [(False, False, False), (False, True, True), (True, False, False), (True, True, False)],
)
def test_asking_again_is_noted_only_when_it_adds_force(first: bool, second: bool, noted: bool) -> None:
    job = running()
    cancel(job, reason="one", force=first, now=NOW)
    rev = job.rev
    status, event = cancel(job, reason="two", force=second, now=LATER)
    assert status is CancelStatus.CANCEL_REQUESTED
    assert (event is not None) == noted == (job.rev > rev)
    assert job.cancel is not None
    assert job.cancel.force == (first or second)
    assert job.cancel.reason == ("two" if noted else "one")


@pytest.mark.parametrize("status", TERMINAL)
def test_a_finished_job_cannot_be_cancelled(status: Status) -> None:
    job = in_status(status)
    before = job.rev
    assert cancel(job, reason=None, force=True, now=LATER) == (CancelStatus.ALREADY_COMPLETE, None)
    assert (job.status, job.rev) == (status, before)


# ── retry ──────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("status", "asked", "refusal"),
    [
        (Status.FAILED, RetryRequest(), None),
        (Status.DEAD_LETTER, RetryRequest(), None),
        (Status.CANCELLED, RetryRequest(), "state_cancelled"),
        (Status.CANCELLED, RetryRequest(include_cancelled=True), None),
        (Status.COMPLETED, RetryRequest(include_cancelled=True), "state_completed"),
        (Status.WAITING, RetryRequest(), "state_waiting"),
        (Status.RUNNING, RetryRequest(), "state_running"),
    ],
)
def test_which_states_can_be_retried(status: Status, asked: RetryRequest, refusal: str | None) -> None:
    job = in_status(status)
    assert refusal_to_retry(job, asked) == refusal
    if refusal is not None:
        with pytest.raises(AssertionError, match=refusal):
            retry(job, asked, LATER)


@pytest.mark.parametrize(
    ("used", "left"),
    [((2, 2), (2, 2)), ((3, 0), (2, 0)), ((2, 3), (2, 2)), ((3, 3), (2, 2))],
    ids=["nothing used up", "attempts", "crashes", "both"],
)
def test_without_a_reset_what_is_used_up_lasts_once_more(used: tuple[int, int], left: tuple[int, int]) -> None:
    attempt, crashes = used
    job = dead(attempt=attempt, crashes=crashes)
    asked = RetryRequest(reset_attempts=False)
    assert refusal_to_retry(job, asked) is None
    retry(job, asked, LATER)
    assert (job.attempt, job.crashes) == left


def test_attempts_without_limit_are_never_used_up() -> None:
    job = dead(attempt=1_000_000, max_attempts=None)
    retry(job, RetryRequest(reset_attempts=False), LATER)
    assert job.attempt == 1_000_000


@pytest.mark.parametrize("status", [Status.FAILED, Status.DEAD_LETTER, Status.CANCELLED])
def test_a_retried_job_is_a_new_run(status: Status) -> None:
    left = {"progress": Progress(50.0, None, NOW), "result": b"left over", "owner": "left over"}
    job = structs.replace(in_status(status), **left)
    event = retry(job, RetryRequest(include_cancelled=True), LATER)
    assert (job.status, job.last_move, job.run) == (Status.WAITING, Move.RESTART, 2)
    assert is_legal(Move.RESTART, status, job.status)
    assert (job.finished_at, job.cancel, job.result, job.progress, job.owner) == (None, None, None, None, None)
    assert job.ready_at(LATER)
    assert (event.kind, event.rev, event.at) == ("retried", job.rev, LATER)


@pytest.mark.parametrize(
    ("asked", "left"),
    [
        (RetryRequest(), (0, 0, b"half", OOPS)),
        (RetryRequest(reset_attempts=False), (2, 1, b"half", OOPS)),
        (RetryRequest(fresh=True), (0, 0, None, None)),
        (RetryRequest(reset_attempts=False, fresh=True), (0, 0, None, None)),
    ],
    ids=["retry", "keep attempts", "fresh", "fresh beats keeping"],
)
def test_what_a_retry_forgets(asked: RetryRequest, left: tuple[object, ...]) -> None:
    job = dead(attempt=2, crashes=1)
    job.checkpoint = b"half"
    retry(job, asked, LATER)
    assert (job.attempt, job.crashes, job.checkpoint, job.error) == left


@pytest.mark.parametrize(
    ("asked", "keeps_steps", "stepped"),
    [
        (RetryRequest(), True, True),
        (RetryRequest(from_step="s"), True, True),
        (RetryRequest(from_step="s"), False, False),
        (RetryRequest(fresh=True), True, False),
    ],
)
def test_a_job_without_steps_is_not_marked_as_one_that_has_some(
    asked: RetryRequest, *, keeps_steps: bool, stepped: bool
) -> None:
    job = dead()
    job.flags |= STEPPED
    retry(job, asked, LATER, keeps_steps=keeps_steps)
    assert bool(job.flags & STEPPED) is stepped


@pytest.mark.parametrize(("seen", "other"), [(None, False), (1, False), (2, True), (0, True)])
def test_an_update_expects_the_rev_that_was_seen(seen: int | None, *, other: bool) -> None:
    assert has_other_rev(a_job(), UpdateRequest(if_rev=seen)) is other


def test_a_retry_may_change_priority_and_wait() -> None:
    job = dead()
    retry(job, RetryRequest(priority=100, delay_us=HOUR), LATER)
    assert (job.priority, job.run_at) == (100, LATER + HOUR)
    assert (job.prio_key, job.time_key) == order_key(100, LATER + HOUR, job.flags)
    assert job.state_at(LATER) is State.DELAYED


@pytest.mark.parametrize(("delay_us", "kept"), [(0, True), (99, True), (100, False), (101, False)])
def test_a_deadline_the_new_run_could_not_meet_is_dropped(delay_us: int, kept: bool) -> None:
    job = dead(deadline=LATER + 100)
    retry(job, RetryRequest(delay_us=delay_us), LATER)
    assert job.deadline == (LATER + 100 if kept else None)


# ── update ───────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("asked", "run_at", "kind"),
    [
        (UpdateRequest(run_at=LATER + 9), LATER + 9, "updated"),
        (UpdateRequest(run_at=LATER - 9), LATER, "updated"),
        (UpdateRequest(run_now=True), LATER, "triggered"),
        (UpdateRequest(run_now=True, run_at=LATER + 9), LATER, "triggered"),
        (UpdateRequest(priority=5), NOW + HOUR, "updated"),
    ],
    ids=["later", "a past time is now", "trigger", "trigger wins", "priority"],
)
def test_when_an_amended_job_runs(asked: UpdateRequest, run_at: int, kind: str) -> None:
    job = a_job(delay_us=HOUR)
    event = update(job, asked, LATER)
    assert event is not None
    assert (job.run_at, event.kind, event.rev) == (run_at, kind, job.rev)
    assert (job.prio_key, job.time_key) == order_key(asked.priority or 0, run_at, job.flags)


@pytest.mark.parametrize(
    "asked",
    [UpdateRequest(), UpdateRequest(run_now=True), UpdateRequest(run_at=LATER), UpdateRequest(priority=0, input=b"{}")],
)
def test_an_update_that_changes_nothing_is_no_entry_of_the_history(asked: UpdateRequest) -> None:
    """Repeated because its answer was lost: a job that may run already keeps its place."""
    job = a_job(input=b"{}")
    before = copy(job)
    assert update(job, asked, LATER) is None
    assert job == before


def test_an_amendment_changes_what_it_names() -> None:
    job = a_job(priority=5)
    update(job, UpdateRequest(input=b"{}"), LATER)
    assert (job.input, job.priority) == (b"{}", 5)
    update(job, UpdateRequest(priority=0), LATER)
    assert (job.input, job.priority) == (b"{}", 0)


@pytest.mark.parametrize("status", set(Status) - {Status.WAITING})
def test_only_a_waiting_job_can_be_amended(status: Status) -> None:
    with pytest.raises(AssertionError):
        update(in_status(status), UpdateRequest(), LATER)


def dead(*, attempt: int = 1, crashes: int = 0, max_attempts: int | None = 3, deadline: int | None = None) -> JobRecord:
    job = in_status(Status.DEAD_LETTER, max_attempts=max_attempts, max_crashes=3, deadline=deadline)
    job.attempt, job.crashes = attempt, crashes
    return job
