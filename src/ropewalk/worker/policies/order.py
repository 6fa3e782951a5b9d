"""Which of the jobs at hand starts next. Pure: it sees claimed jobs and what runs, and puts the former in order.

Turns between labels: the one with the fewest running goes next; of equal ones the one that has waited longest for a
turn. Within a label by priority, then age.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final, Protocol, TypeAlias

from ropewalk.definitions.policies import Age, Balanced, Concurrency, Priority
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


Jobs: TypeAlias = Sequence[JobRecord]

_NO_BOUNDS: Final[Mapping[str, int]] = MappingProxyType({})


class Order(Protocol):
    def arrange(self, waiting: Jobs, running: Iterable[JobRecord]) -> list[JobRecord]:
        """All of `waiting`, the next first."""
        ...

    def left(self, job: JobRecord) -> None:
        """It leaves for a slot."""
        ...


def order_of(concurrency: Concurrency | None) -> Order | None:
    """None: as the store gave them."""
    match concurrency:
        case Priority():
            return ByPriority()
        case Age():
            return ByAge()
        case Balanced():
            return Balance()
        case _:
            return None


class Arrangement:
    """The worker's order, and within it those of types: the worker's says when it is a type's turn, the type's own
    which of its jobs that is."""

    def __init__(
        self, whole: Order | None, of_types: Mapping[str, Order], most: Mapping[str, int] = _NO_BOUNDS
    ) -> None:
        self._whole = whole
        self._of_types = of_types
        self._most = most
        """how many of a type run at once, where more than that are kept at hand"""

    def __bool__(self) -> bool:
        """Does anything start in another order than the store's?"""
        return self._whole is not None or bool(self._of_types)

    def arrange(self, waiting: Jobs, running: Collection[JobRecord]) -> list[JobRecord]:
        in_order = sorted(waiting, key=_by_ticket)
        if self._whole is not None:
            in_order = self._whole.arrange(in_order, running)
        for name, order in self._of_types.items():
            own = iter(order.arrange([job for job in in_order if job.type == name], _of_type(name, running)))
            in_order = [next(own) if job.type == name else job for job in in_order]
        return in_order

    def may_start(self, in_order: Iterable[JobRecord], running: Iterable[JobRecord]) -> Iterator[JobRecord]:
        """Those that may all run together, and with what runs."""
        of_type = Counter(job.type for job in running if job.type in self._most)
        for job in in_order:
            most = self._most.get(job.type)
            if most is None or of_type[job.type] < most:
                of_type[job.type] += 1
                yield job

    def left(self, job: JobRecord) -> None:
        for order in (self._whole, self._of_types.get(job.type)):
            if order is not None:
                order.left(job)


class ByPriority:
    def arrange(self, waiting: Jobs, running: Iterable[JobRecord]) -> list[JobRecord]:
        return sorted(waiting, key=_by_priority)

    def left(self, job: JobRecord) -> None:
        pass


class ByAge:
    def arrange(self, waiting: Jobs, running: Iterable[JobRecord]) -> list[JobRecord]:
        return sorted(waiting, key=_by_age)

    def left(self, job: JobRecord) -> None:
        pass


def _of_type(name: str, jobs: Iterable[JobRecord]) -> list[JobRecord]:
    return [job for job in jobs if job.type == name]


def _by_ticket(job: JobRecord) -> int:
    return job.ticket


def _by_priority(job: JobRecord) -> tuple[int, Instant, int]:
    return -job.priority, job.created_at, job.seq


def _by_age(job: JobRecord) -> tuple[Instant, int]:
    return job.created_at, job.seq
