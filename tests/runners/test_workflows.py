"""Handlers in processes of their own queue, continue, contribute, take steps and wait like all others."""

from __future__ import annotations

import msgspec

from ropewalk.domain.failure import Category
from ropewalk.domain.jobs.outcome import Aborted, Completed, Errored, Suspended
from ropewalk.domain.jobs.record import JobRecord, NewJob, new_record
from ropewalk.domain.jobs.states import Status
from ropewalk.domain.time import SECOND
from ropewalk.domain.workflow.completion import StepRecord, Suspension
from ropewalk.domain.workflow.dependency import Edge, Ending, ParentKind
from ropewalk.domain.workflow.group_value import GroupValue
from ropewalk.ports.store.workflows import Dependency, GroupContribution, GroupRecord
from ropewalk.runners.processes import ProcessPool
from tests.runners import handlers
from tests.runners.recording import CANCELLED, Recording


async def test_children_with_gates(pool: ProcessPool) -> None:
    attempt = Recording(handlers.fans_out, count=2)
    attempt.job.workflow_id = "w"
    outcome = await pool.run(attempt)
    assert isinstance(outcome, Completed)
    assert outcome.plan is not None
    first, second, last = outcome.plan.children
    assert [(each.type, each.input, each.gate) for each in (first, second)] == [
        ("child", b'{"number":0}', None),
        ("child", b'{"number":1}', None),
    ]
    assert (last.parent_id, last.group_id, last.workflow_id, last.tags) == ("the-job", "the-job", "w", {"a": "b"})
    assert last.gate is not None
    assert [(each.kind, each.id) for each in last.gate.parents] == [
        (ParentKind.TREE, first.id),
        (ParentKind.TREE, second.id),
    ]
    assert (last.gate.need, last.gate.of) == (2, "done")


async def test_a_continuation(pool: ProcessPool) -> None:
    outcome = await pool.run(Recording(handlers.continues))
    assert isinstance(outcome, Completed)
    assert outcome.plan is not None and outcome.plan.continuation is not None
    assert (outcome.result, outcome.plan.continuation.type) == (None, "add")


async def test_contributions(pool: ProcessPool) -> None:
    outcome = await pool.run(Recording(handlers.contributes, append="sum"))
    assert isinstance(outcome, Completed)
    assert outcome.plan is not None and outcome.plan.contribution is not None
    assert (outcome.plan.contribution.reducer, outcome.plan.contribution.value) == ("sum", b"3")


async def test_a_function_cannot_fold_from_there(pool: ProcessPool) -> None:
    outcome = await pool.run(Recording(handlers.folds))
    assert isinstance(outcome, Aborted)
    assert "folds returned append=<function> from a process of its own" in outcome.error.message


async def test_steps_sleep_and_signals(pool: ProcessPool) -> None:
    attempt = Recording(handlers.steps)
    assert await pool.run(attempt) == Suspended(Suspension(position=1, name="sleep-1", span_us=60 * SECOND))
    assert list(attempt.stored) == [0]
    attempt.stored[1] = StepRecord(position=1, name="sleep-1", kind="sleep", until=attempt.clock, finished=False)
    waiting = Suspension(position=2, name="wait_for-answer-1", signal="answer", span_us=10 * SECOND)
    assert await pool.run(attempt) == Suspended(waiting)
    attempt.signals["answer"] = b'{"$rw":"set","v":[1]}'
    assert await pool.run(attempt) == Completed(b'["Order","7","{1}"]')
    assert attempt.stored[2].value == b'{"$rw":"set","v":[1]}'


async def test_a_step_of_a_lost_lease(pool: ProcessPool) -> None:
    attempt = Recording(handlers.steps)
    attempt.cancel = CANCELLED
    outcome = await pool.run(attempt)
    assert isinstance(outcome, Errored)
    assert outcome.error.type == "LeaseLost"


async def test_other_steps_than_before(pool: ProcessPool) -> None:
    attempt = Recording(handlers.steps)
    await attempt.record_step(StepRecord(position=0, name="other", kind="step"))
    outcome = await pool.run(attempt)
    assert isinstance(outcome, Aborted)
    assert (outcome.error.category, outcome.error.code) == (Category.PERMANENT, "nondeterministic")


async def test_parents_are_read_by_their_types(pool: ProcessPool) -> None:
    attempt = Recording(handlers.reads_parents)
    attempt.types = [handlers.discount]
    data = b'{"id":1,"price":"2.50","at":"2030-01-01T00:00:00Z","tags":[]}'
    attempt.waited_for = [
        waited_for("a", parent("a", "discount", data)),
        waited_for("b", parent("b", "stranger", b'{"x":1}')),
        waited_for("c", None, ParentKind.MISSING),
    ]
    attempt.waited_for.append(group_of("d", "unknown-root", [("discount", data), ("stranger", b"3")]))
    outcome = await pool.run(attempt)
    assert isinstance(outcome, Completed)
    told = (outcome.result or b"").decode()
    assert "d unknown-root completed [Order(id=1, price=Decimal('2.50')" in told, "of a group its value"
    assert "a discount completed Order(id=1, price=Decimal('2.50')" in told
    assert "b stranger completed {'x': 1}" in told
    assert "c None completed None" in told


def group_of(job_id: str, kind: str, contributions: list[tuple[str, bytes]]) -> Dependency:
    value = GroupValue(reducer="list", type=contributions[-1][0])
    record = GroupRecord(
        id=job_id, generation=1, open=0, completed=3, failed=0, cancelled=0, closed_at=2, cancelled_by=None, value=value
    )
    kept = tuple(GroupContribution(type=each, value=data) for each, data in contributions)
    plain = waited_for(job_id, parent(job_id, kind, b"null"), ParentKind.TREE)
    return msgspec.structs.replace(plain, group=record, contributions=kept)


def parent(job_id: str, kind: str, result: bytes) -> JobRecord:
    job = new_record(NewJob(id=job_id, type=kind, input=b"{}"), seq=9, now=1)
    job.status, job.result = Status.COMPLETED, result
    return job


def waited_for(parent_id: str, job: JobRecord | None, kind: ParentKind = ParentKind.JOB) -> Dependency:
    edge = Edge(kind=kind, parent=9, parent_id=parent_id, seq=1, position=0, ending=Ending.COMPLETED)
    return Dependency(edge=edge, job=job)
