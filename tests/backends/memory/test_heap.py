"""A job has one place in a heap, the one it was given last."""

from __future__ import annotations

from ropewalk.backends.memory.lanes import JobHeap
from ropewalk.domain.jobs.record import JobRecord, new_record
from ropewalk.testing.contract.builders import new_job


def record(seq: int) -> JobRecord:
    return new_record(new_job(), seq=seq, now=0)


def drained(heap: JobHeap) -> list[int]:
    order: list[int] = []
    while (top := heap.peek()) is not None:
        order.append(top[2])
        heap.pop()
    return order


def test_the_last_place_counts() -> None:
    heap, moved, other = JobHeap(), record(1), record(2)
    heap.push(1, 0, moved)
    heap.push(3, 0, other)
    heap.push(5, 0, moved)
    assert [job.seq for job in heap] == [2, 1]
    assert drained(heap) == [2, 1]


def test_the_same_place_again_is_one_place() -> None:
    heap, job = JobHeap(), record(1)
    for _ in range(3):
        heap.push(1, 0, job)
    assert drained(heap) == [1]
    assert len(heap) == 0


def test_a_dropped_job_is_gone_and_may_come_back() -> None:
    heap, dropped, other = JobHeap(), record(1), record(2)
    heap.push(1, 0, dropped)
    heap.push(2, 0, other)
    heap.drop(dropped)
    heap.drop(record(3))
    assert [job.seq for job in heap] == [2]
    heap.push(3, 0, dropped)
    assert drained(heap) == [2, 1]
