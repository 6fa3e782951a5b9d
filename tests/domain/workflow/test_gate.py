"""What keeps a job pending and what ends that."""

from __future__ import annotations

from typing import Any, get_args

import pytest

from ropewalk.domain.failure import Category
from ropewalk.domain.jobs.flags import SKIPPED
from ropewalk.domain.jobs.order import order_key
from ropewalk.domain.jobs.record import CompensationSpec, JobRecord
from ropewalk.domain.jobs.states import Move, State, Status
from ropewalk.domain.jobs.transition import settle
from ropewalk.domain.time import HOUR, SECOND
from ropewalk.domain.workflow.completion import Suspension
from ropewalk.domain.workflow.dependency import Ending, NewGate, Opening, Policy, opening
from ropewalk.domain.workflow.gate import (
    ParentEnd,
    bind,
    block_again,
    counted_again,
    decides,
    doom,
    keeps_from_starting,
    parents_ended,
    signalled,
    take_over_priority,
    wait_is_over,
)
from ropewalk.testing.contract.builders import gate_on
from tests.domain.records import NOW, OOPS, a_job, asking, running, start

LATER = NOW + 5 * SECOND

OK, BAD, GONE = (ParentEnd(name, ending) for name, ending in zip(("p", "q", "r"), Ending, strict=True))


def gated(*, parents: int = 2, gate: dict[str, Any] | None = None, **fields: Any) -> JobRecord:
    job = a_job(**fields)
    asked = gate_on(*(f"p{number}" for number in range(parents)), **(gate or {}))
    bind(job, asked, total=parents, depth=1, priority=None, now=NOW)
    return job


# ── bind ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_gated_job_is_pending() -> None:
    job = gated()
    assert (job.unmet, job.depth, job.wake_at, job.state_at(NOW)) == (2, 1, None, State.PENDING)
    assert not job.ready_at(LATER)


@pytest.mark.parametrize(
    ("need", "named", "total", "kept"), [(3, 3, 2, 2), (1, 3, 2, 1), (2, 3, 2, 2), (2, 3, 1, 1), (3, 3, 3, 3)]
)
def test_a_parent_named_twice_counts_once(need: int, named: int, total: int, kept: int) -> None:
    """And never asks for more than there are: such a gate could not open."""
    job = a_job()
    asked = gate_on(*map(str, range(named)), when=(need, "success"))
    bind(job, asked, total=total, depth=1, priority=None, now=NOW)
    assert job.gate is not None
    assert (job.gate.total, job.gate.need, job.unmet) == (total, kept, total)


def test_a_gates_timeout_counts_from_now() -> None:
    assert gated(gate={"timeout_us": HOUR}).wake_at == NOW + HOUR


def test_a_priority_is_taken_over() -> None:
    job = a_job()
    bind(job, NewGate(parents=(), need=0, of="done"), total=0, depth=1, priority=40, now=NOW)
    assert (job.priority, job.time_key) == (40, order_key(40, job.run_at, job.flags)[1])
    take_over_priority(job, 7)
    assert (job.priority, (job.prio_key, job.time_key)) == (7, order_key(7, job.run_at, job.flags))


# ── parents ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_an_open_gate_is_no_move() -> None:
    job = gated()
    before = (job.rev, job.last_move, job.updated_at)
    assert parents_ended(job, [OK], LATER) is None
    assert (job.unmet, job.state_at(LATER)) == (1, State.PENDING)
    assert parents_ended(job, [OK], LATER) is None
    assert (job.unmet, job.wake_at, job.run_at, job.state_at(LATER)) == (0, None, LATER, State.SCHEDULED)
    assert (job.rev, job.last_move, job.updated_at) == before


def test_a_delay_counts_behind_the_gate_too() -> None:
    job = gated(parents=1, delay_us=HOUR)
    parents_ended(job, [OK], LATER)
    assert (job.run_at, job.state_at(LATER)) == (NOW + HOUR, State.DELAYED)


def test_it_stands_in_line_from_when_it_became_ready() -> None:
    job = gated(parents=1, priority=3)
    parents_ended(job, [OK], LATER)
    assert (job.prio_key, job.time_key) == order_key(3, LATER, job.flags)


ENDS: list[tuple[Policy | None, ParentEnd, Status, Move, str]] = [
    ("fail", BAD, Status.FAILED, Move.DOOM, "doomed"),
    ("fail", GONE, Status.FAILED, Move.DOOM, "doomed"),
    ("cancel", BAD, Status.CANCELLED, Move.CANCEL, "cancelled"),
    ("skip", BAD, Status.COMPLETED, Move.SKIP, "skipped"),
    (None, BAD, Status.FAILED, Move.DOOM, "doomed"),
    (None, GONE, Status.CANCELLED, Move.CANCEL, "cancelled"),
]


@pytest.mark.parametrize(("policy", "culprit", "status", "move", "kind"), ENDS)
def test_a_gate_that_can_no_longer_open(
    policy: Policy | None, culprit: ParentEnd, status: Status, move: Move, kind: str
) -> None:
    """By policy, at once, naming the parent."""
    job = gated(gate={"policy": policy, "timeout_us": HOUR})
    effects = parents_ended(job, [OK, culprit], LATER)
    assert effects is not None
    assert (job.status, job.last_move, effects.move, job.finished_at) == (status, move, move, LATER)
    assert (job.unmet, job.wake_at, job.result, job.start_rev) == (0, None, None, 0)
    assert effects.event is not None
    assert (effects.event.kind, effects.event.rev, effects.event.rev) == (kind, 2, job.rev)
    assert culprit.id in (effects.event.reason or "")
    assert bool(job.flags & SKIPPED) == (move is Move.SKIP)
    if status is Status.FAILED:
        assert job.error is not None
        assert (job.error.code, job.error.category) == ("dependency_failed", Category.PERMANENT)
        assert job.error.context == {"parent": culprit.id, "ending": culprit.ending.value}
    if status is Status.CANCELLED:
        assert job.cancel is not None


def test_run_runs_anyway_and_says_so() -> None:
    job = gated(gate={"policy": "run"})
    effects = parents_ended(job, [BAD], LATER)
    assert job.ready_at(LATER)
    assert effects is not None
    assert effects.event is not None
    assert (effects.event.kind, effects.event.rev, job.rev, job.last_move) == ("gate_ignored", 2, 2, Move.SUBMIT)


@pytest.mark.parametrize("policy", get_args(Policy))
def test_a_doomed_job_is_compensated_where_it_failed_as_never_started(policy: Policy) -> None:
    effects = doom(gated(on_failure=CompensationSpec(type="undo")), policy, OOPS, LATER)
    assert (effects.compensation is not None) == (policy == "fail")
    if effects.compensation is not None:
        assert effects.compensation.origin is not None
        assert (effects.compensation.origin.started, effects.compensation.origin.error) == (False, OOPS)


def test_what_is_decided_stays_decided_and_is_counted_on() -> None:
    """Until it starts: a parent that is retried with its dependants must find the others counted."""
    job = gated(parents=3)
    parents_ended(job, [BAD], LATER)
    assert parents_ended(job, [OK, OK], LATER) is None
    assert job.gate is not None
    assert (job.status, job.rev, job.gate.done, job.gate.ok) == (Status.FAILED, 2, 3, 2)


def test_a_started_job_waits_for_nobody() -> None:
    with pytest.raises(AssertionError, match="does not wait for parents"):
        parents_ended(running(), [OK], LATER)
    job = gated(gate={"when": "any_done"})
    parents_ended(job, [OK], LATER)
    start(job)
    with pytest.raises(AssertionError, match="does not wait for parents"):
        parents_ended(job, [OK], LATER)


def test_a_parent_that_opens_again_is_waited_for_unless_another_one_decides() -> None:
    job = gated(parents=3, gate={"policy": "run"})
    parents_ended(job, [BAD, GONE, OK], LATER)
    assert job.gate is not None
    job.gate = counted_again(job, [None, Ending.CANCELLED, Ending.COMPLETED])
    assert opening(job.gate) is Opening.DOOMED, "the other one still keeps it from opening"
    job.gate = counted_again(job, [None, None, Ending.COMPLETED])
    assert opening(job.gate) is Opening.CLOSED
    block_again(job, LATER)
    assert (job.unmet, job.state_at(LATER)) == (2, State.PENDING)
    parents_ended(job, [OK], LATER)
    parents_ended(job, [OK], LATER)
    assert job.ready_at(LATER)


def test_a_new_wait_has_a_new_timeout() -> None:
    job = gated(gate={"timeout_us": 60})
    assert job.wake_at == NOW + 60
    block_again(job, LATER)
    assert job.wake_at == LATER + 60


@pytest.mark.parametrize(("policy", "kept"), [(None, True), ("fail", True), ("skip", True), ("run", False)])
def test_a_gate_that_can_no_longer_open_keeps_a_job_from_starting(policy: Policy | None, *, kept: bool) -> None:
    job = gated(gate={"policy": policy})
    assert decides(job)
    assert keeps_from_starting(job, [Ending.FAILED, None]) is kept
    assert not keeps_from_starting(job, [Ending.COMPLETED, None])
    assert not keeps_from_starting(job, [Ending.COMPLETED, Ending.COMPLETED])


# ── timeout and signals ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("policy", "status"),
    [
        (None, Status.FAILED),
        ("fail", Status.FAILED),
        ("cancel", Status.CANCELLED),
        ("skip", Status.COMPLETED),
        ("run", Status.WAITING),
    ],
)
def test_a_gate_given_up_follows_its_policy(policy: Policy | None, status: Status) -> None:
    job = gated(gate={"policy": policy, "timeout_us": SECOND})
    parents_ended(job, [OK], NOW)
    effects = wait_is_over(job, LATER)
    assert effects is not None
    assert (job.status, job.unmet, job.wake_at) == (status, 0, None)
    assert effects.event is not None
    assert "1 of 2 ended, 1 successfully" in (effects.event.reason or "")
    if status is Status.FAILED:
        assert job.error is not None
        assert (job.error.code, job.error.category) == ("gate_timeout", Category.TIMEOUT)


def suspended(**fields: Any) -> JobRecord:
    job = running()
    settle(job, asking(job, Move.SUSPEND, suspension=Suspension(position=0, name="w", signal="ring", **fields)), NOW)
    return job


def test_a_job_that_waits_for_a_signal_is_pending() -> None:
    job = suspended()
    assert (job.awaits, job.unmet, job.wake_at, job.state_at(LATER)) == ("ring", 1, None, State.PENDING)
    assert (job.attempt, job.rev) == (0, 3)


def test_its_signal_lets_it_go_on_and_no_other() -> None:
    job = suspended(span_us=HOUR)
    assert not signalled(job, "knock", LATER)
    assert (job.awaits, job.unmet) == ("ring", 1)
    assert signalled(job, "ring", LATER)
    assert (job.awaits, job.unmet, job.wake_at, job.rev) == (None, 0, None, 3)
    assert job.ready_at(LATER)
    assert not signalled(job, "ring", LATER), "it does not wait any more"


def test_a_wait_for_a_signal_that_is_over_goes_back_to_the_handler() -> None:
    job = suspended(span_us=SECOND)
    assert (job.awaits, job.wake_at) == ("ring", NOW + SECOND)
    assert wait_is_over(job, LATER) is None
    assert job.ready_at(LATER)
    assert (job.awaits, job.wake_at) == (None, None)


def test_a_signal_that_was_there_first_is_not_waited_for() -> None:
    job = running()
    asked = asking(job, Move.SUSPEND, suspension=Suspension(position=0, name="w", signal="ring"))
    settle(job, asked, NOW, signal_arrived=True)
    assert (job.awaits, job.unmet) == (None, 0)
    assert job.ready_at(NOW)


@pytest.mark.parametrize("job", [a_job(), running()], ids=["ready", "running"])
def test_only_a_pending_job_has_a_wait_that_ends(job: JobRecord) -> None:
    with pytest.raises(AssertionError, match="is not pending"):
        wait_is_over(job, LATER)
    assert not signalled(job, "ring", LATER)


def test_when_a_suspension_is_over() -> None:
    nap = Suspension(position=2, name="nap", span_us=SECOND)
    assert nap.until_at(NOW) == NOW + SECOND
    assert Suspension(position=2, name="nap", span_us=SECOND, until=NOW + 3).until_at(LATER) == NOW + 3
    assert Suspension(position=2, name="nap", signal="ring").until_at(NOW) is None
    step = nap.step_at(NOW)
    assert (step.position, step.name, step.kind, step.until, step.finished) == (2, "nap", "sleep", NOW + SECOND, False)
    assert Suspension(position=2, name="w", signal="ring").step_at(NOW).kind == "signal"
