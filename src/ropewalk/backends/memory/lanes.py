"""Where waiting jobs wait. A lane is one (tenant, queue, type, limit key); a claim looks only into those it is for.

So the cost of a claim depends neither on finished jobs nor on those of other types, queues or tenants; delayed ones
stay in a heap of their own until their time has come, and time alone brings them out. Pending ones are in none.

A priority queue of waiting jobs that a job may leave from the middle.

The entry a job was pushed with last is good until it is popped or the job is dropped; older ones are outdated. Those
go when they come to the top, or all together once they outnumber the good ones.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator
from typing import Final, TypeAlias

from ropewalk.domain.jobs.order import TenantQueue
from ropewalk.domain.jobs.record import RECORD_FORMAT, JobRecord
from ropewalk.domain.limits.fleet_limit import LaneName
from ropewalk.domain.time import Instant

Entry: TypeAlias = tuple[int, int, int, int, JobRecord]
"""(first key, second key, seq, number of the push, job): unique before the job, so jobs are never compared"""

_OUTDATED_ENTRIES_MAX: Final = 64
"""kept beside as many as there are jobs: below that, tidying up costs more than it frees"""


class JobHeap:
    def __init__(self) -> None:
        self._entries: list[Entry] = []
        self._good: dict[int, int] = {}
        """by seq: the number of the push that counts"""
        self._pushed = 0

    def push(self, first: int, second: int, job: JobRecord) -> None:
        self._pushed = number = self._pushed + 1
        self._good[job.seq] = number
        heapq.heappush(self._entries, (first, second, job.seq, number, job))

    def peek(self) -> Entry | None:
        """The smallest good entry."""
        entries, good = self._entries, self._good
        while entries:
            top = entries[0]
            if good.get(top[2]) == top[3]:
                return top
            heapq.heappop(entries)
        return None

    def pop(self) -> None:
        """Remove what `peek` returned."""
        del self._good[heapq.heappop(self._entries)[2]]

    def drop(self, job: JobRecord) -> None:
        """It leaves, wherever it stands, if it is here at all."""
        if self._good.pop(job.seq, None) is None:
            return
        if len(self._entries) > 2 * len(self._good) + _OUTDATED_ENTRIES_MAX:
            self._entries = [entry for entry in self._entries if self._good.get(entry[2]) == entry[3]]
            heapq.heapify(self._entries)

    def __iter__(self) -> Iterator[JobRecord]:
        """All good ones, in no order."""
        return (entry[4] for entry in self._entries if self._good.get(entry[2]) == entry[3])

    def __len__(self) -> int:
        """Entries, outdated ones included: what it costs in memory."""
        return len(self._entries)


Place: TypeAlias = tuple[str, str, str | None]
"""(tenant, queue, limit key) of a lane among those of its type"""


class Lane:
    """The waiting jobs of one name."""

    def __init__(self, name: LaneName) -> None:
        self.name = name
        self.waiting = 0
        self.ready = JobHeap()
        self.suspects = JobHeap()
        """Ready too, but not always to be given: kept apart, so that they never stand in front of the others."""
        self.due = JobHeap()
        """not yet ready, by run_at"""
        self.newer = JobHeap()
        """written by a newer release: kept, shown, never claimed"""
        self.pending: dict[int, JobRecord] = {}
        """behind a gate or waiting for a signal, by seq: put back when that is over"""

    def add(self, job: JobRecord, now: Instant) -> None:
        self.waiting += 1
        if job.unmet:
            self.pending[job.seq] = job
        elif job.format > RECORD_FORMAT:
            self.newer.push(job.run_at, 0, job)
        elif job.run_at > now:
            self.due.push(job.run_at, 0, job)
        else:
            self._make_ready(job)

    def pop(self, heap: JobHeap) -> None:
        """The first job of one of its heaps is taken up."""
        heap.pop()
        self.waiting -= 1

    def drop(self, job: JobRecord) -> None:
        """A job from somewhere in the middle is taken up: cancelled, expired, updated, released."""
        self.waiting -= 1
        if self.pending.pop(job.seq, None) is None:
            for heap in self._heaps():
                heap.drop(job)

    def promote(self, now: Instant) -> Instant | None:
        """Make ready what is due; answers when the next one will be."""
        while (top := self.due.peek()) is not None:
            if top[0] > now:
                return top[0]
            self.due.pop()
            self._make_ready(top[4])
        return None

    def __iter__(self) -> Iterator[JobRecord]:
        yield from self.pending.values()
        for heap in self._heaps():
            yield from heap

    def _heaps(self) -> tuple[JobHeap, ...]:
        return self.ready, self.suspects, self.due, self.newer

    def _make_ready(self, job: JobRecord) -> None:
        heap = self.suspects if job.suspect else self.ready
        heap.push(job.prio_key, job.time_key, job)


class Lanes:
    """Every lane that holds a job, by type and line; and what ends a waiting in time: deadlines and given-up waits."""

    def __init__(self) -> None:
        self._lanes: dict[str, dict[Place, Lane]] = {}
        self._deadlines = JobHeap()
        self._wakes = JobHeap()
        """pending jobs by wake_at"""
        self._began_last: Instant = 0
        """The latest instant at which a wait began: whether to look for waits by a clock that was set back since."""
        self._turn = 0
        """where to go on among lanes with a limit key"""

    def add(self, job: JobRecord, now: Instant) -> None:
        """A job begins to wait."""
        self._began_last = max(self._began_last, job.updated_at)
        of_type = self._lanes.get(job.type)
        if of_type is None:
            of_type = self._lanes[job.type] = {}
        place = (job.tenant, job.queue, job.limit_key)
        lane = of_type.get(place)
        if lane is None:
            lane = of_type[place] = Lane(job.lane)
        lane.add(job, now)
        if job.deadline is not None:
            self._deadlines.push(job.deadline, 0, job)
        if job.unmet and job.wake_at is not None:
            self._wakes.push(job.wake_at, 0, job)

    def left(self, job: JobRecord) -> None:
        """A waiting job is taken up, as yet unchanged; if it waits on, it is added again."""
        lane = self._lanes[job.type][job.tenant, job.queue, job.limit_key]
        lane.drop(job)
        self._gone_from(lane, job)

    def pop(self, lane: Lane, heap: JobHeap, job: JobRecord) -> None:
        """The same for the first job of a heap, without a search."""
        lane.pop(heap)
        self._gone_from(lane, job)

    def serving(
        self, types: Iterable[str], is_open: Callable[[TenantQueue], bool], keyed_max: int
    ) -> tuple[bool, dict[TenantQueue, list[Lane]]]:
        """The lanes of these types, by line. Of those with a limit key, which may be very many, no more than some, the
        next time others; then True comes with them."""
        of_types = (lane for name in types for lane in self._lanes.get(name, {}).values())
        lanes = [lane for lane in of_types if is_open(lane.name[:2])]
        keyed = [lane for lane in lanes if lane.name.key]
        more = len(keyed) > keyed_max
        if more:
            first = self._turn % len(keyed)
            self._turn = first + keyed_max
            lanes = [lane for lane in lanes if not lane.name.key] + (keyed + keyed)[first : first + keyed_max]
        found: dict[TenantQueue, list[Lane]] = {}
        for lane in lanes:
            found.setdefault(lane.name[:2], []).append(lane)
        return more, found

    def waiting(self, tenant: str) -> Iterator[JobRecord]:
        """Every waiting job of a tenant, in no order."""
        for of_type in self._lanes.values():
            for place, lane in of_type.items():
                if place[0] == tenant:
                    yield from lane

    def everything(self) -> Iterator[Lane]:
        for of_type in self._lanes.values():
            yield from of_type.values()

    def count(self, tenant: str) -> int:
        """How many wait."""
        lanes = (item for of_type in self._lanes.values() for item in of_type.items())
        return sum(lane.waiting for place, lane in lanes if place[0] == tenant)

    def past_deadline(self, now: Instant) -> JobRecord | None:
        """The waiting job whose deadline passed first."""
        return _over(self._deadlines, now)

    def next_wait(self) -> Instant | None:
        """When the next pending job gives up waiting, whatever its type: whoever claims then sees to it."""
        top = self._wakes.peek()
        return None if top is None else top[0]

    def past_wait(self, now: Instant) -> JobRecord | None:
        """The pending job whose wait was over first."""
        return _over(self._wakes, now)

    def began_after(self, after: Instant) -> list[JobRecord]:
        """Every job that began to wait after this instant. Where there is one, it looks at all that wait."""
        if self._began_last <= after:
            return []
        lanes = (lane for of_type in self._lanes.values() for lane in of_type.values())
        found = [job for lane in lanes for job in lane if job.updated_at > after]
        self._began_last = after
        return sorted(found, key=lambda job: (job.updated_at, job.seq))

    def _gone_from(self, lane: Lane, job: JobRecord) -> None:
        if lane.waiting == 0:
            of_type = self._lanes[job.type]
            del of_type[job.tenant, job.queue, job.limit_key]
            if not of_type:
                del self._lanes[job.type]
        if job.deadline is not None:
            self._deadlines.drop(job)
        if job.wake_at is not None:
            self._wakes.drop(job)


def _over(heap: JobHeap, now: Instant) -> JobRecord | None:
    top = heap.peek()
    return top[4] if top is not None and top[0] <= now else None
