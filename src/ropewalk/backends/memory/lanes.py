"""The waiting jobs, in lanes. A lane is one (tenant, queue, type, limit key), and a claim reads only the lanes that it
asks for.

So the cost of a claim depends neither on finished jobs nor on jobs of other types, queues or tenants. Jobs that are not
due yet are in a heap of their own, from which only the passing of time brings them; pending jobs are in no heap.

A heap contains outdated entries, too: a job may leave it from the middle. Only the entry with which a job was pushed
last counts, until it is popped or the job is dropped. Outdated entries are removed when they come to the top, or all
together when there are more of them than others.
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
"""(first key, second key, seq, number of the push, job). The values before the job are unique, so that jobs are never
compared."""

_OUTDATED_ENTRIES_MAX: Final = 64
"""A heap keeps this many outdated entries in addition to as many as it has jobs: below that, cleaning up costs more
than it saves."""


class JobHeap:
    """A priority queue of waiting jobs, which a job may leave from the middle."""

    def __init__(self) -> None:
        self._entries: list[Entry] = []
        self._good: dict[int, int] = {}
        """For each job, by seq, the number of the push that counts."""
        self._pushed = 0

    def push(self, first: int, second: int, job: JobRecord) -> None:
        self._pushed = number = self._pushed + 1
        self._good[job.seq] = number
        heapq.heappush(self._entries, (first, second, job.seq, number, job))

    def peek(self) -> Entry | None:
        """Returns the smallest entry that counts; None if there is none."""
        entries, good = self._entries, self._good
        while entries:
            top = entries[0]
            if good.get(top[2]) == top[3]:
                return top
            heapq.heappop(entries)
        return None

    def pop(self) -> None:
        """Removes the entry that `peek` returned."""
        del self._good[heapq.heappop(self._entries)[2]]

    def drop(self, job: JobRecord) -> None:
        """Removes a job, wherever it is in the heap, if it is there at all."""
        if self._good.pop(job.seq, None) is None:
            return
        if len(self._entries) > 2 * len(self._good) + _OUTDATED_ENTRIES_MAX:
            self._entries = [entry for entry in self._entries if self._good.get(entry[2]) == entry[3]]
            heapq.heapify(self._entries)

    def __iter__(self) -> Iterator[JobRecord]:
        """Yields all jobs, in no particular order."""
        return (entry[4] for entry in self._entries if self._good.get(entry[2]) == entry[3])

    def __len__(self) -> int:
        """The number of entries including the outdated ones, which is what the heap costs in memory."""
        return len(self._entries)


Place: TypeAlias = tuple[str, str, str | None]
"""(tenant, queue, limit key): the name of a lane among the lanes of its type."""


class Lane:
    """The waiting jobs of one lane."""

    def __init__(self, name: LaneName) -> None:
        self.name = name
        self.waiting = 0
        self.ready = JobHeap()
        self.suspects = JobHeap()
        """Ready jobs that are suspects. They are kept apart so that they never stand in front of the others, because
        only few of them may run at once."""
        self.due = JobHeap()
        """Jobs that are not ready yet, by run_at."""
        self.newer = JobHeap()
        """Jobs that a newer release wrote. They are kept and shown, but never claimed."""
        self.pending: dict[int, JobRecord] = {}
        """Jobs behind a gate or waiting for a signal, by seq. They are put back when their wait is over."""

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
        """Takes up the first job of one of its heaps."""
        heap.pop()
        self.waiting -= 1

    def drop(self, job: JobRecord) -> None:
        """Takes up a job from anywhere, because it is cancelled, expired, updated or released."""
        self.waiting -= 1
        if self.pending.pop(job.seq, None) is None:
            for heap in self._heaps():
                heap.drop(job)

    def promote(self, now: Instant) -> Instant | None:
        """Makes the jobs ready that are due. Returns when the next one will be."""
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
    """All lanes that contain a job, by type and place; and the deadlines and waits of their jobs."""

    def __init__(self) -> None:
        self._lanes: dict[str, dict[Place, Lane]] = {}
        self._deadlines = JobHeap()
        self._wakes = JobHeap()
        """The pending jobs whose wait is limited, by wake_at."""
        self._began_last: Instant = 0
        """The latest instant at which a wait began. It shows whether there may be waits from before the clock was set
        back."""
        self._turn = 0
        """The place among the lanes of limit keys at which the next claim goes on."""

    def add(self, job: JobRecord, now: Instant) -> None:
        """Adds a job that begins to wait."""
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

    def take_up(self, job: JobRecord) -> None:
        """Takes up a waiting job that has not changed yet. If it goes on waiting, it is added again."""
        lane = self._lanes[job.type][job.tenant, job.queue, job.limit_key]
        lane.drop(job)
        self._gone_from(lane, job)

    def pop(self, lane: Lane, heap: JobHeap, job: JobRecord) -> None:
        """Takes up the first job of a heap, which needs no search."""
        lane.pop(heap)
        self._gone_from(lane, job)

    def serving(
        self, types: Iterable[str], is_open: Callable[[TenantQueue], bool], keyed_max: int
    ) -> tuple[bool, dict[TenantQueue, list[Lane]]]:
        """Returns the lanes of these types by line. There may be very many lanes of limit keys, so only some of them
        are returned, and others the next time; then the first value is True."""
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
        """Yields all waiting jobs of a tenant, in no particular order."""
        for of_type in self._lanes.values():
            for place, lane in of_type.items():
                if place[0] == tenant:
                    yield from lane

    def everything(self) -> Iterator[Lane]:
        """Yields all lanes."""
        for of_type in self._lanes.values():
            yield from of_type.values()

    def count(self, tenant: str) -> int:
        """Returns the number of waiting jobs of a tenant."""
        lanes = (item for of_type in self._lanes.values() for item in of_type.items())
        return sum(lane.waiting for place, lane in lanes if place[0] == tenant)

    def past_deadline(self, now: Instant) -> JobRecord | None:
        """Returns the waiting job whose deadline passed first."""
        return _over(self._deadlines, now)

    def next_wait(self) -> Instant | None:
        """Returns when the next wait of a pending job of any type is over: any claim ends such waits."""
        top = self._wakes.peek()
        return None if top is None else top[0]

    def past_wait(self, now: Instant) -> JobRecord | None:
        """Returns the pending job whose wait was over first."""
        return _over(self._wakes, now)

    def began_after(self, after: Instant) -> list[JobRecord]:
        """Returns all jobs that began to wait after this instant. If there may be one, all waiting jobs are read."""
        if self._began_last <= after:
            return []
        lanes = (lane for of_type in self._lanes.values() for lane in of_type.values())
        found = [job for lane in lanes for job in lane if job.updated_at > after]
        self._began_last = after
        return sorted(found, key=lambda job: (job.updated_at, job.seq))

    def _gone_from(self, lane: Lane, job: JobRecord) -> None:
        """Removes a lane without jobs, and the deadline and the wait of a job that was taken up."""
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
