"""W5: what a handler sees of the jobs its own waited for."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from ropewalk.definitions.context.context import Context
from ropewalk.definitions.job_types.decorator import job
from ropewalk.domain.failure import Category, ErrorInfo
from ropewalk.domain.jobs.flags import CONTINUED, FORGOTTEN
from ropewalk.domain.jobs.record import JobRecord, NewJob, new_record
from ropewalk.domain.jobs.states import State, Status
from ropewalk.domain.workflow.dependency import Edge, Ending, ParentKind
from ropewalk.domain.workflow.group_value import GroupValue
from ropewalk.errors import Conflict, GroupFailed, InvalidInput, JobCancelled, JobFailed, NotFound
from ropewalk.ports.store.workflows import Dependency, GroupContribution, GroupRecord
from tests.definitions.attempts import NOW, attempt_of
from tests.definitions.ports import FakeAttempt


@dataclass
class Part:
    number: int


@job
async def part(number: int) -> Part: ...


@job
async def report() -> None: ...


def parent(job_id: str, status: Status, result: bytes | None = None, kind: str = "part") -> JobRecord:
    record = new_record(NewJob(id=job_id, type=kind, input=b"{}"), seq=9, now=NOW)
    record.status, record.result = status, result
    return record


def waited_for(
    parent_id: str, found: JobRecord | None, ending: Ending | None, kind: ParentKind = ParentKind.JOB
) -> Dependency:
    edge = Edge(kind=kind, parent=9, parent_id=parent_id, seq=1, position=0, ending=ending)
    return Dependency(edge=edge, job=found)


@pytest.fixture
def port() -> FakeAttempt:
    port = attempt_of(report)
    port.types = [part]
    return port


def test_a_job_that_waited_for_nothing(port: FakeAttempt) -> None:
    assert Context(port).dependencies == ()


def test_in_order_with_results(port: FakeAttempt) -> None:
    port.waited_for = [
        waited_for("a", parent("a", Status.COMPLETED, b'{"number":1}'), Ending.COMPLETED),
        waited_for("b", parent("b", Status.DEAD_LETTER), Ending.FAILED),
        waited_for("c", None, Ending.COMPLETED, ParentKind.MISSING),
        waited_for("d", parent("last", Status.COMPLETED, b'{"number":4}', "stranger"), Ending.COMPLETED),
        waited_for("e", parent("e", Status.RUNNING), None),
        waited_for("f", parent("f", Status.COMPLETED), Ending.COMPLETED),
    ]
    ctx = Context(port)
    first, failed, missing, last, running, empty = ctx.dependencies
    assert ctx.dependencies is ctx.dependencies
    assert [each.id for each in ctx.dependencies] == ["a", "b", "c", "last", "e", "f"]
    assert port.said == [], "decoded only when asked for"
    assert (first.type, first.state, first.ending, first.result) == (
        "part",
        State.COMPLETED,
        Ending.COMPLETED,
        Part(1),
    )
    assert first.result is first.result
    assert port.said == [("decode", "a")]
    assert (failed.state, failed.ending, failed.result) == (State.DEAD_LETTER, Ending.FAILED, None)
    assert (missing.type, missing.state, missing.ending, missing.result) == (None, None, Ending.COMPLETED, None)
    assert (last.type, last.result) == ("stranger", {"number": 4})
    assert (running.state, running.ending, running.result) == (State.RUNNING, None, None)
    assert empty.result is None


def test_a_result_that_is_gone_is_not_none(port: FakeAttempt) -> None:
    forgotten = parent("forgotten", Status.COMPLETED)
    forgotten.flags |= FORGOTTEN
    middle = parent("middle", Status.COMPLETED)
    middle.flags |= CONTINUED
    port.waited_for = [
        waited_for("deleted", None, Ending.COMPLETED),
        waited_for("forgotten", forgotten, Ending.COMPLETED),
        waited_for("chain", middle, Ending.COMPLETED, ParentKind.CHAIN),
    ]
    for each in Context(port).dependencies:
        with pytest.raises(NotFound, match=rf"the result of {each.id}.* is gone"):
            each.result  # noqa: B018


def a_group(value: GroupValue, *contributions: bytes, ending: Ending | None = Ending.COMPLETED) -> Dependency:
    record = GroupRecord(
        id="a", generation=1, open=0, completed=3, failed=0, cancelled=0, closed_at=9, cancelled_by=None, value=value
    )
    edge = Edge(kind=ParentKind.TREE, parent=9, parent_id="a", seq=1, position=0, ending=ending)
    return Dependency(
        edge=edge,
        job=parent("a", Status.COMPLETED, b'{"number":9}'),
        group=record,
        contributions=tuple(GroupContribution(type="part", value=each) for each in contributions),
    )


@pytest.mark.parametrize(
    ("found", "value"),
    [
        (a_group(GroupValue(reducer="last", type="part", value=b'{"number":1}')), Part(1)),
        (a_group(GroupValue(reducer="last", type="stranger", value=b'{"number":1}')), {"number": 1}),
        (a_group(GroupValue(reducer="list", type="part"), b'{"number":1}', b'{"number":2}'), [Part(1), Part(2)]),
        (a_group(GroupValue(reducer="sum", type="part", value=b"3")), 3),
        (a_group(GroupValue(reducer="custom", type="part", value=b'"ab"')), "ab"),
        (a_group(GroupValue()), None),
        (a_group(GroupValue(reducer="sum", type="part", value=b"3"), ending=Ending.FAILED), 3),
        (a_group(GroupValue(reducer="sum", type="part", value=b"3"), ending=None), None),
    ],
    ids=["last", "unknown type", "list", "sum", "custom", "nobody contributed", "a job of it failed", "not ended"],
)
def test_of_a_group_the_result_is_the_value_of_the_group(port: FakeAttempt, found: Dependency, value: object) -> None:
    port.waited_for = [found]
    (group,) = Context(port).dependencies
    assert group.is_group
    assert group.result == value
    if group.ending is None:
        with pytest.raises(Conflict, match="group a has not ended"):
            group.group_of(part)
    else:
        assert group.group_of(part) == value


def test_the_value_of_a_group_that_cannot_be_told(port: FakeAttempt) -> None:
    port.waited_for = [a_group(GroupValue(reducer="sum", type="part", value=b"3", conflict="they differ"))]
    (group,) = Context(port).dependencies
    for read in (lambda: group.result, lambda: group.group_of(part)):
        with pytest.raises(GroupFailed, match="they differ"):
            read()


def test_of_the_tree_of_another_job_the_result_is_its_own(port: FakeAttempt) -> None:
    """As of a cohort that a `.next(...)` came after: only the root of a group has the value of one."""
    job = parent("a", Status.COMPLETED, b'{"number":1}')
    job.scope_id = 4
    port.waited_for = [waited_for("a", job, Ending.COMPLETED, ParentKind.TREE)]
    (found,) = Context(port).dependencies
    assert (found.is_group, found.result, found.result_of(part)) == (False, Part(1), Part(1))
    with pytest.raises(InvalidInput, match=r"use result_of"):
        found.group_of(part)


def test_a_typed_result_is_of_the_type_that_was_asked_for(port: FakeAttempt) -> None:
    failed = parent("failed", Status.DEAD_LETTER)
    failed.error = ErrorInfo(category=Category.PERMANENT, message="no such thing")
    port.waited_for = [
        waited_for("a", parent("a", Status.COMPLETED, b'{"number":1}'), Ending.COMPLETED),
        a_group(GroupValue(reducer="sum", type="part", value=b"3")),
        waited_for("b", failed, Ending.FAILED),
        waited_for("c", parent("c", Status.CANCELLED), Ending.CANCELLED),
        waited_for("d", parent("d", Status.RUNNING), None),
        waited_for("e", None, Ending.COMPLETED),
    ]
    found, group, broken, cancelled, running, gone = Context(port).dependencies
    assert found.result_of(part) == Part(1)
    with pytest.raises(InvalidInput, match=r"job_type='report': dependency a is a 'part'"):
        found.result_of(report)
    with pytest.raises(InvalidInput, match="a function decorated with @job"):
        found.result_of(3)  # type: ignore[arg-type] # that is the point
    with pytest.raises(InvalidInput, match="use result_of"):
        found.group_of(part)
    with pytest.raises(InvalidInput, match="by group_of"):
        group.result_of(part)
    with pytest.raises(JobFailed, match="dependency failed is dead_letter: no such thing") as raised:
        broken.result_of(part)
    assert (raised.value.job_id, raised.value.error) == ("failed", broken.error)
    with pytest.raises(JobCancelled, match="dependency c was cancelled"):
        cancelled.result_of(part)
    with pytest.raises(Conflict, match="dependency d has not ended: it is running"):
        running.result_of(part)
    with pytest.raises(NotFound, match="job e"):
        gone.result_of(part)


def test_it_cannot_be_changed(port: FakeAttempt) -> None:
    port.waited_for = [waited_for("a", parent("a", Status.COMPLETED), Ending.COMPLETED)]
    (found,) = Context(port).dependencies
    with pytest.raises(AttributeError):
        found.id = "x"  # type: ignore[misc] # that is the point
    assert repr(found) == "Dependency('a', part, completed)"


def test_the_chain(port: FakeAttempt) -> None:
    assert Context(port).chain_id == "parent"
    port.job.chain_id = "first"
    assert Context(port).chain_id == "first"
