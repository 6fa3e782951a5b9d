"""A priority queue of waiting jobs that a job may leave from the middle.

The entry a job was pushed with last is good until it is popped or the job is dropped; older ones are outdated. Those
go when they come to the top, or all together once they outnumber the good ones.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from typing import Final, TypeAlias

from ropewalk.domain.jobs.record import JobRecord

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
