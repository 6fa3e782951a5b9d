"""The order in which claimed jobs start in a worker. These classes are pure: from the waiting and the running jobs they
compute the order of the waiting ones.
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
"""The last turns of this many labels are remembered. Beyond that, the label whose last turn is longest ago is
forgotten."""

Label: TypeAlias = str | None
"""The fairness label of a job."""
Rank: TypeAlias = tuple[int, Instant, int]


class Balance:
    """The order of the policy Balanced: fairness labels take turns.

    The label with the fewest running jobs is next; among equal ones, the label that has waited longest for a turn.
    Within a label, jobs start by priority and then by age.
    """

    def __init__(self) -> None:
        self._turns = 0
        self._last: dict[Label, int] = {}
        """The last turn of each label; the label whose turn is longest ago comes first."""

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
    """An order in which jobs start."""

    def arrange(self, waiting: Jobs, running: Iterable[JobRecord]) -> list[JobRecord]:
        """Returns all waiting jobs; the one that starts next comes first."""
        ...

    def left(self, job: JobRecord) -> None:
        """Records that a job leaves the buffer for a slot."""
        ...


def order_of(concurrency: Concurrency | None) -> Order | None:
    """Returns the order that a policy asks for; None means the order in which the store gave the jobs out."""
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
    """The order of the worker together with the orders of its types: the worker's order says when it is a type's turn,
    and the type's own order says which of its jobs starts then."""

    def __init__(
        self, whole: Order | None, of_types: Mapping[str, Order], most: Mapping[str, int] = _NO_BOUNDS
    ) -> None:
        self._whole = whole
        self._of_types = of_types
        self._most = most
        """The number of jobs that may run at once, for each type of which more jobs may be in the buffer."""

    def __bool__(self) -> bool:
        """Whether any job starts in another order than that of the store."""
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
        """Yields the jobs that may start now, so that no type runs more jobs than it may."""
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
    """The order of the policy Priority: jobs start by priority and then by age."""

    def arrange(self, waiting: Jobs, running: Iterable[JobRecord]) -> list[JobRecord]:
        return sorted(waiting, key=_by_priority)

    def left(self, job: JobRecord) -> None:
        pass


class ByAge:
    """The order of the policy Age: older jobs start first."""

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
