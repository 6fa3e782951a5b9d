"""The worker's half: which settlement each outcome asks for."""

from __future__ import annotations

from typing import get_args

import pytest

from ropewalk.domain.failure import DEADLINE_EXCEEDED
from ropewalk.domain.jobs import flags
from ropewalk.domain.jobs.outcome import (
    Aborted,
    Cancelled,
    Completed,
    Crashed,
    Deferred,
    Errored,
    Expired,
    Misfit,
    Outcome,
    Released,
    Suspended,
)
from ropewalk.domain.jobs.retry import ResolvedBackoff
from ropewalk.domain.jobs.states import Move
from ropewalk.domain.jobs.transition import Settlement, decide
from ropewalk.domain.time import SECOND
from ropewalk.domain.workflow.completion import CompletionPlan, Suspension
from tests.domain.records import NOW, OOPS, a_new_job, asking, running

AFTER = CompletionPlan(continuation=a_new_job(id="next"))
NAP = Suspension(position=0, name="sleep-1", span_us=9)
NAP_GOING_ON = Suspension(position=0, name="sleep-1", span_us=9, until=NOW + 4)
CALL = Suspension(position=0, name="wait-1", signal="ring", span_us=9, until=NOW + 4)
TEN_SECONDS = ResolvedBackoff(strategy="constant", initial_us=10 * SECOND, jitter=0.5)

EACH: list[tuple[Outcome, Move, dict[str, object]]] = [
    (Completed(b"3"), Move.COMPLETE, {"result": b"3", "alone": True}),
    (Completed(None), Move.COMPLETE, {"alone": True}),
    (Completed(b"3", AFTER), Move.COMPLETE, {"result": b"3", "plan": AFTER, "alone": True}),
    (Suspended(NAP), Move.SUSPEND, {"delay_us": 9, "suspension": NAP}),
    (Suspended(NAP_GOING_ON), Move.SUSPEND, {"delay_us": 9, "suspension": NAP_GOING_ON}),
    (Suspended(CALL), Move.SUSPEND, {"suspension": CALL}),
    (Errored(OOPS), Move.RETRY, {"error": OOPS, "delay_us": 7_500_000}),
    (Errored(OOPS, after_us=5), Move.RETRY, {"error": OOPS, "delay_us": 5}),
    (Errored(OOPS, after_us=0), Move.RETRY, {"error": OOPS, "delay_us": 0}),
    (Crashed(OOPS), Move.LOSE, {"error": OOPS, "crashed": True}),
    (Aborted(OOPS), Move.FAIL, {"error": OOPS}),
    (Misfit(OOPS), Move.FAIL, {"error": OOPS}),
    (Misfit(OOPS, delay_us=9), Move.DEFER, {"error": OOPS, "delay_us": 9}),
    (Deferred(delay_us=9), Move.DEFER, {"delay_us": 9}),
    (Deferred(at=NOW + 9), Move.DEFER, {"run_at": NOW + 9}),
    (Released(), Move.RELEASE, {}),
    (Released(delay_us=9), Move.RELEASE, {"delay_us": 9}),
    (Expired(), Move.EXPIRE, {"error": DEADLINE_EXCEEDED}),
    (Cancelled(), Move.CANCEL, {}),
    (Cancelled(OOPS), Move.CANCEL, {"error": OOPS}),
]


def decided(outcome: Outcome, *, attempt: int = 1, max_attempts: int | None = 3, crashes: int = 0) -> Settlement:
    job = running(max_attempts=max_attempts, max_crashes=3)
    job.attempt, job.crashes = attempt, crashes
    return decide(job, outcome, TEN_SECONDS, roll=0.5)


@pytest.mark.parametrize(("outcome", "move", "fields"), EACH, ids=repr)
def test_each_outcome_asks_for_its_move(outcome: Outcome, move: Move, fields: dict[str, object]) -> None:
    assert decided(outcome) == asking(running(), move, **fields)


@pytest.mark.parametrize("flags", [flags.GROUPED, flags.HAS_DEPENDANTS, flags.KEYED | flags.STEPPED, flags.ON_FAILURE])
def test_a_completion_that_concerns_others_is_not_alone(flags: int) -> None:
    job = running()
    job.flags = flags
    assert not decide(job, Completed(b"3"), TEN_SECONDS, roll=0.5).alone


@pytest.mark.parametrize("flags", [flags.STEPPED, flags.STRICT_ORDER | flags.OWN_LEASE])
def test_a_completion_that_concerns_nobody_else_is(flags: int) -> None:
    job = running()
    job.flags = flags
    assert decide(job, Completed(b"3"), TEN_SECONDS, roll=0.5).alone


def test_every_outcome_is_in_the_table() -> None:
    assert {type(outcome) for outcome, _, _ in EACH} == set(get_args(Outcome))


@pytest.mark.parametrize(
    ("attempt", "max_attempts", "move"),
    [(1, 1, Move.BURY), (2, 3, Move.RETRY), (3, 3, Move.BURY), (1_000_000, None, Move.RETRY)],
)
@pytest.mark.parametrize("after_us", [None, 5])
def test_an_error_on_the_last_attempt_buries(
    attempt: int, max_attempts: int | None, move: Move, after_us: int | None
) -> None:
    settlement = decided(Errored(OOPS, after_us), attempt=attempt, max_attempts=max_attempts)
    assert (settlement.move, settlement.error) == (move, OOPS)


@pytest.mark.parametrize(
    ("attempt", "crashes", "move"),
    [(1, 0, Move.LOSE), (2, 1, Move.LOSE), (1, 2, Move.BURY), (3, 0, Move.BURY)],
)
def test_a_crash_buries_when_attempts_or_crashes_are_used_up(attempt: int, crashes: int, move: Move) -> None:
    assert decided(Crashed(OOPS), attempt=attempt, crashes=crashes).move is move
