"""What a verb takes is in no index until it ends, and in the right one afterwards, once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ropewalk.backends.memory.tables import Tables
from ropewalk.backends.memory.unit_of_work import MemoryUnitOfWork
from ropewalk.domain.jobs import operations, transition
from ropewalk.domain.jobs.flags import HAS_DEPENDANTS
from ropewalk.domain.jobs.operations import RetryRequest
from ropewalk.domain.jobs.record import JobRecord, new_record
from ropewalk.domain.jobs.states import Move
from ropewalk.domain.jobs.transition import Effects, Settlement
from ropewalk.domain.retention import Retention
from ropewalk.domain.time import Instant
from ropewalk.domain.workflow.dependency import Edge, Ending, ParentKind
from ropewalk.testing.contract.builders import keyed, new_job

NOW: Instant = 1_000_000


@pytest.fixture
def tables() -> Tables:
    return Tables(epoch=0)


def insert(tables: Tables, *jobs: JobRecord, now: Instant = NOW) -> None:
    unit_of_work = MemoryUnitOfWork(tables, now)
    unit_of_work.number(jobs)
    unit_of_work.insert(jobs)
    unit_of_work.flush()


def record(job_id: str) -> JobRecord:
    return new_record(new_job(id=job_id), seq=0, now=NOW)


def fail(tables: Tables, job: JobRecord, now: Instant) -> None:
    unit_of_work = MemoryUnitOfWork(tables, now)
    unit_of_work.take(job)
    transition.claim(job, owner="w", ticket=1, epoch=0, lease_us=1, now=now)
    transition.settle(job, Settlement(seq=job.seq, fence=job.fence, move=Move.FAIL), now)
    unit_of_work.flush()


def ready(tables: Tables) -> Iterator[str]:
    return (job.id for job in tables.lanes.waiting("default"))


def finished(tables: Tables) -> list[str]:
    at_once = Retention(failed_us=0)
    return [job.id for job in tables.finished.past_retention(at_once, NOW + 1_000)]


def test_a_taken_job_is_nowhere_until_the_end(tables: Tables) -> None:
    job = record("a")
    insert(tables, job)
    unit_of_work = MemoryUnitOfWork(tables, NOW)
    unit_of_work.take(job)
    assert list(ready(tables)) == []
    assert unit_of_work.find("default", ["a", "b"]) == {"a": job}, "but it can still be found"
    unit_of_work.flush()
    assert list(ready(tables)) == ["a"]


def test_a_job_taken_twice_goes_back_once(tables: Tables) -> None:
    job = record("a")
    insert(tables, job)
    unit_of_work = MemoryUnitOfWork(tables, NOW)
    unit_of_work.take(job)
    unit_of_work.take(job)
    unit_of_work.flush()
    unit_of_work.flush()
    assert list(ready(tables)) == ["a"]


def test_an_unchanged_job_may_be_put_back_any_number_of_times(tables: Tables) -> None:
    """A flag is no recorded change: the same job comes with the same rev again, and keeps its one place."""
    first, second = record("a"), record("b")
    insert(tables, first, second)
    for _ in range(3):
        unit_of_work = MemoryUnitOfWork(tables, NOW)
        unit_of_work.take(first)
        first.flags |= HAS_DEPENDANTS
        unit_of_work.flush()
    _, by_line = tables.lanes.serving(["t"], lambda _: True, 9)
    [lane] = by_line["default", "default"]
    top = lane.ready.peek()
    assert top is not None and top[4] is first
    assert sorted(ready(tables)) == ["a", "b"]


def test_a_finished_job_keeps_its_place(tables: Tables) -> None:
    """Retention looks at the oldest first: a new dependant of an old job does not make it younger."""
    old, young = record("old"), record("young")
    insert(tables, old, young)
    fail(tables, old, NOW + 1)
    fail(tables, young, NOW + 2)
    unit_of_work = MemoryUnitOfWork(tables, NOW + 3)
    unit_of_work.take(old)
    old.flags |= HAS_DEPENDANTS
    unit_of_work.flush()
    assert finished(tables) == ["old", "young"]


def test_a_job_that_finishes_anew_goes_to_the_end(tables: Tables) -> None:
    old, young = record("old"), record("young")
    insert(tables, old, young)
    fail(tables, old, NOW + 1)
    fail(tables, young, NOW + 2)
    unit_of_work = MemoryUnitOfWork(tables, NOW + 3)
    unit_of_work.take(old)
    operations.retry(old, RetryRequest(), NOW + 3)
    unit_of_work.flush()
    assert (finished(tables), list(ready(tables))) == (["young"], ["old"])
    fail(tables, old, NOW + 4)
    assert finished(tables) == ["young", "old"]


def test_an_ending_closes_the_key_at_once(tables: Tables) -> None:
    """Not only when the verb ends: the next settlement of the same call may need it."""
    unit_of_work = MemoryUnitOfWork(tables, NOW)
    new = keyed("k", id="a")
    job = new_record(new, seq=0, now=NOW)
    insert(tables, job)
    unit_of_work.reopen_key(job)
    held = unit_of_work.find_key("default", "t", "k")
    assert held is not None and held.closed_at is None
    unit_of_work.take(job)
    operations.cancel(job, reason=None, force=False, now=NOW)
    unit_of_work.record(job, Effects(Move.CANCEL))
    assert held.closed_at == NOW


def test_an_edge_is_on_one_side_only(tables: Tables) -> None:
    parent = (ParentKind.JOB, 1)
    edge = Edge(kind=ParentKind.JOB, parent=1, parent_id="p", seq=2, position=0)
    unit_of_work = MemoryUnitOfWork(tables, NOW)
    unit_of_work.add_edges([edge])
    assert (unit_of_work.waiting_edges([parent], 9), unit_of_work.ended_edges([parent])) == ([edge], [])
    unit_of_work.set_ending([edge], Ending.FAILED)
    [ended] = unit_of_work.ended_edges([parent])
    assert (unit_of_work.waiting_edges([parent], 9), ended.ending) == ([], Ending.FAILED)
    unit_of_work.set_ending([ended], None)
    assert (unit_of_work.waiting_edges([parent], 9), unit_of_work.ended_edges([parent])) == ([edge], [])


def test_no_more_edges_than_asked_for(tables: Tables) -> None:
    unit_of_work = MemoryUnitOfWork(tables, NOW)
    kinds = (ParentKind.JOB, ParentKind.TREE)
    unit_of_work.add_edges(
        [
            Edge(kind=kind, parent=1, parent_id="p", seq=seq, position=position)
            for position, kind in enumerate(kinds)
            for seq in (2, 3)
        ]
    )
    found = [len(unit_of_work.waiting_edges([(kind, 1) for kind in kinds], limit)) for limit in (1, 3, 9)]
    assert found == [1, 3, 4]
