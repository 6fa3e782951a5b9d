"""Where waiting jobs wait. A lane is one (tenant, queue, type); a claim looks only into the lanes it is for.

So the cost of a claim depends neither on finished jobs nor on those of other types, queues or tenants; delayed ones
stay in a heap of their own until their time has come, and time alone brings them out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, TypeAlias

from ropewalk.backends.memory.heap import JobHeap
from ropewalk.domain.instants import Instant
from ropewalk.domain.job import RECORD_FORMAT, JobRecord

Line: TypeAlias = tuple[str, str]
"""(tenant, queue): order is strict within it"""

_OUTDATED_ENTRIES_MAX: Final = 64
"""kept beside as many as there are jobs: below that, tidying up costs more than it frees"""


class Lane:
    """The waiting jobs of one (tenant, queue, type)."""

    def __init__(self) -> None:
        self.waiting = 0
        self.ready = JobHeap()
        self.suspects = JobHeap()
        """ready too, but given out one at a time: apart, so that they never stand in front of the others"""
        self.due = JobHeap()
        """not yet ready, by run_at"""
        self.newer = JobHeap()
        """written by a newer release: kept, shown, never claimed"""

    def add(self, job: JobRecord, now: Instant) -> None:
        self.waiting += 1
        if job.format > RECORD_FORMAT:
            self.newer.push(job.run_at, 0, job)
        elif job.run_at > now:
            self.due.push(job.run_at, 0, job)
        else:
            self._make_ready(job)

    def pop(self, heap: JobHeap) -> None:
        """The first job of one of its heaps is taken up."""
        heap.pop()
        self.waiting -= 1

    def left(self) -> None:
        """A job from somewhere in the middle is taken up: cancelled, expired or amended."""
        self.waiting -= 1
        entries = len(self.ready) + len(self.suspects) + len(self.due) + len(self.newer)
        if entries > 2 * self.waiting + _OUTDATED_ENTRIES_MAX:
            for heap in (self.ready, self.suspects, self.due, self.newer):
                heap.compact()

    def promote(self, now: Instant) -> Instant | None:
        """Make ready what is due; answers when the next one will be."""
        while (top := self.due.peek()) is not None:
            if top[0] > now:
                return top[0]
            self.due.pop()
            self._make_ready(top[4])
        return None

    def __iter__(self) -> Iterator[JobRecord]:
        for heap in (self.ready, self.suspects, self.due, self.newer):
            yield from heap

    def _make_ready(self, job: JobRecord) -> None:
        heap = self.suspects if job.suspect else self.ready
        heap.push(job.prio_key, job.time_key, job)


class Lanes:
    """Every lane that holds a job, by type and line; and the deadlines of waiting jobs."""

    def __init__(self) -> None:
        self._lanes: dict[str, dict[Line, Lane]] = {}
        self._deadlines = JobHeap()
        self._with_deadline = 0

    def add(self, job: JobRecord, now: Instant) -> None:
        """A job begins to wait."""
        of_type = self._lanes.get(job.type)
        if of_type is None:
            of_type = self._lanes[job.type] = {}
        line = (job.tenant, job.queue)
        lane = of_type.get(line)
        if lane is None:
            lane = of_type[line] = Lane()
        lane.add(job, now)
        if job.deadline is not None:
            self._with_deadline += 1
            self._deadlines.push(job.deadline, 0, job)

    def left(self, job: JobRecord) -> None:
        """A waiting job is taken up; if it waits on, it is added again."""
        lane = self._lanes[job.type][job.tenant, job.queue]
        lane.left()
        self._gone_from(lane, job)

    def pop(self, lane: Lane, heap: JobHeap, job: JobRecord) -> None:
        """The same for the first job of a heap, without a search."""
        lane.pop(heap)
        self._gone_from(lane, job)

    def serving(self, types: Iterable[str]) -> dict[Line, list[Lane]]:
        """The lanes of these types, by line."""
        found: dict[Line, list[Lane]] = {}
        for name in types:
            for line, lane in self._lanes.get(name, {}).items():
                found.setdefault(line, []).append(lane)
        return found

    def waiting(self, tenant: str) -> Iterator[JobRecord]:
        """Every waiting job of a tenant, in no order."""
        for of_type in self._lanes.values():
            for line, lane in of_type.items():
                if line[0] == tenant:
                    yield from lane

    def past_deadline(self, now: Instant) -> JobRecord | None:
        """The waiting job whose deadline passed first."""
        top = self._deadlines.peek()
        return top[4] if top is not None and top[0] <= now else None

    def _gone_from(self, lane: Lane, job: JobRecord) -> None:
        if lane.waiting == 0:
            of_type = self._lanes[job.type]
            del of_type[job.tenant, job.queue]
            if not of_type:
                del self._lanes[job.type]
        if job.deadline is not None:
            self._with_deadline -= 1
            if len(self._deadlines) > 2 * self._with_deadline + _OUTDATED_ENTRIES_MAX:
                self._deadlines.compact()
