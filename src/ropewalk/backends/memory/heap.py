"""A priority queue of waiting jobs that a job may leave from the middle.

An entry is good while its job still has the `rev` it was pushed with: every recorded change of a job outdates the
entries it had before. Outdated ones are dropped when they come to the top, or all together by `compact`.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from typing import TypeAlias

from ropewalk.domain.job import JobRecord

Entry: TypeAlias = tuple[int, int, int, int, JobRecord]
"""(first key, second key, seq, rev, job): seq and rev make it unique, so jobs themselves are never compared"""


class JobHeap:
    def __init__(self) -> None:
        self._entries: list[Entry] = []

    def push(self, first: int, second: int, job: JobRecord) -> None:
        heapq.heappush(self._entries, (first, second, job.seq, job.rev, job))

    def peek(self) -> Entry | None:
        """The smallest good entry."""
        entries = self._entries
        while entries:
            top = entries[0]
            if top[4].rev == top[3]:
                return top
            heapq.heappop(entries)
        return None

    def pop(self) -> None:
        """Remove what `peek` returned."""
        heapq.heappop(self._entries)

    def compact(self) -> None:
        self._entries = [entry for entry in self._entries if entry[4].rev == entry[3]]
        heapq.heapify(self._entries)

    def __iter__(self) -> Iterator[JobRecord]:
        """All good ones, in no order."""
        return (job for _, _, _, rev, job in self._entries if job.rev == rev)

    def __len__(self) -> int:
        """Entries, outdated ones included: what it costs in memory."""
        return len(self._entries)
