"""Turns between labels: the one with the fewest running goes next; of equal ones the one that has waited longest for a
turn. Within a label by priority, then age."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final, TypeAlias

from ropewalk.domain.jobs.record import JobRecord
from ropewalk.domain.time import Instant

LABELS_MAX: Final = 10_000
"""remembered; beyond that the one whose last turn is longest ago counts as new"""

Label: TypeAlias = str | None
Rank: TypeAlias = tuple[int, Instant, int]


class Balance:
    """An Order (by shape)."""

    def __init__(self) -> None:
        self._turns = 0
        self._last: dict[Label, int] = {}
        """the last turn of each label, longest ago first"""

    def arrange(self, waiting: Sequence[JobRecord], running: Iterable[JobRecord]) -> list[JobRecord]:
        lines: dict[Label, list[JobRecord]] = {}
        for job in sorted(waiting, key=_rank, reverse=True):
            lines.setdefault(job.fairness, []).append(job)
        busy = Counter(job.fairness for job in running)
        turn = self._turns
        heads = [(busy[label], self._last.get(label, 0), _rank(line[-1]), line) for label, line in lines.items()]
        heapq.heapify(heads)
        in_order: list[JobRecord] = []
        while heads:
            running_of_it, _, _, line = heads[0]
            in_order.append(line.pop())
            turn += 1
            if line:
                heapq.heapreplace(heads, (running_of_it + 1, turn, _rank(line[-1]), line))
            else:
                heapq.heappop(heads)
        return in_order

    def left(self, job: JobRecord) -> None:
        self._turns += 1
        self._last.pop(job.fairness, None)
        self._last[job.fairness] = self._turns
        if len(self._last) > LABELS_MAX:
            del self._last[next(iter(self._last))]


def _rank(job: JobRecord) -> Rank:
    return -job.priority, job.created_at, job.seq
