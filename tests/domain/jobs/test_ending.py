"""A job that somebody outside completes or fails."""

from __future__ import annotations

import pytest

from ropewalk.domain.jobs.history import assemble
from ropewalk.domain.jobs.lease import LossReason, loss_reason
from ropewalk.domain.jobs.operations import EndRequest, end
from ropewalk.domain.jobs.record import CompensationSpec, EventRecord, JobRecord
from ropewalk.domain.jobs.states import TERMINAL, Move, Status, is_legal
from ropewalk.domain.time import SECOND
from tests.domain.records import NOW, OOPS, a_job, in_status, running

LATER = NOW + 5 * SECOND
HOW = {Status.COMPLETED: EndRequest(result=b"3"), Status.FAILED: EndRequest(error=OOPS)}

both_ways = pytest.mark.parametrize(("status", "asked"), HOW.items())


@both_ways
@pytest.mark.parametrize("before", [Status.WAITING, Status.RUNNING])
def test_it_ends_as_told(before: Status, status: Status, asked: EndRequest) -> None:
    job = in_status(before)
    effects = end(job, asked, LATER)
    assert is_legal(Move.END, before, status)
    assert (job.status, job.last_move, effects.move, job.finished_at) == (status, Move.END, Move.END, LATER)
    assert (job.result, job.error) == (asked.result, asked.error)
    assert (job.owner, job.lease_expires_at, job.unmet, job.awaits, job.wake_at) == (None, None, 0, None, None)


@both_ways
@pytest.mark.parametrize("before", [Status.WAITING, Status.RUNNING])
def test_history_tells_it_without_a_gap(before: Status, status: Status, asked: EndRequest) -> None:
    job = in_status(before)
    effects = end(job, asked, LATER)
    attempts = [] if effects.attempt is None else [effects.attempt]
    events: list[EventRecord] = [] if effects.event is None else [effects.event]
    history = assemble(job, attempts, events)
    assert [entry.rev for entry in history] == list(range(1, job.rev + 1))
    assert (history[-1].kind, history[-1].at) == ("end", LATER)
    assert [entry.kind for entry in history[1:-1]] == (["started"] if before is Status.RUNNING else [])
    assert history[-1].worker == ("worker-a" if before is Status.RUNNING else None)
    assert (history[-1].reason == "oops") == (status is Status.FAILED)


def test_its_holder_is_told_that_it_is_over() -> None:
    job = running()
    fence = job.fence
    end(job, EndRequest(), LATER)
    assert loss_reason(job, fence, "worker-a") is LossReason.ALREADY_COMPLETED


@pytest.mark.parametrize(
    "job", [a_job(on_failure=CompensationSpec(type="undo")), running(on_failure=CompensationSpec(type="undo"))]
)
def test_a_failure_from_outside_is_compensated_like_any_other(job: JobRecord) -> None:
    started = job.status is Status.RUNNING
    effects = end(job, EndRequest(error=OOPS), LATER)
    assert effects.compensation is not None
    assert effects.compensation.origin is not None
    assert (effects.compensation.origin.error, effects.compensation.origin.started) == (OOPS, started)


def test_a_completion_from_outside_is_not_compensated() -> None:
    assert end(running(on_failure=CompensationSpec(type="undo")), EndRequest(), LATER).compensation is None


@pytest.mark.parametrize("status", TERMINAL)
def test_what_has_ended_stays_so(status: Status) -> None:
    with pytest.raises(AssertionError):
        end(in_status(status), EndRequest(), LATER)
