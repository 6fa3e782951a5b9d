"""W5: what a handler sees of the jobs its own waited for."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from ropewalk.definitions.context.context import Context
from ropewalk.definitions.job_types.decorator import job
from ropewalk.domain.jobs.flags import CONTINUED, FORGOTTEN
from ropewalk.domain.jobs.record import JobRecord, NewJob, new_record
from ropewalk.domain.jobs.states import State, Status
from ropewalk.domain.workflow.dependency import Edge, Ending, ParentKind
from ropewalk.errors import NotFound
from ropewalk.ports.store.messages import Dependency
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
