"""Computes jobs per second from the differences between statistics that were read one after another."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from ropewalk.domain.statistics.statistics import Flow, Statistics
from ropewalk.domain.time import Instant, to_seconds

OVER_SECONDS: Final = 5.0
"""Rates are averages over the readings of this time, so that the numbers do not change too fast to be read."""


class Rates(Struct, frozen=True, kw_only=True):
    """Jobs per second."""

    submitted: float = 0.0
    finished: float = 0.0
    types: Mapping[str, float] = {}
    """Finished jobs per second of each type."""


class Counts(Struct, frozen=True, kw_only=True):
    """The counts of one reading; readings can be compared if their counts begin at the same instant."""

    at: float
    """The monotonic time of the reading."""
    submitted: int
    finished: int
    types: Mapping[str, int]


class RateMeter:
    """A rate meter remembers the last readings and computes rates from them."""

    def __init__(self) -> None:
        self._since: Instant | None = None
        self._counts: deque[Counts] = deque()
        self._rates = Rates()

    def measure(self, statistics: Statistics, at: float, now: Instant) -> Rates:
        """Return the rates after a reading at `at` (monotonic seconds), which is `now` on the store's clock."""
        if self._since is None:
            self._rates = _average(statistics, now)
        if statistics.since != self._since:  # the counts begin later now, so earlier ones cannot be compared
            self._since = statistics.since
            self._counts.clear()
        self._counts.append(_counts_of(statistics, at))
        while len(self._counts) > 2 and at - self._counts[1].at >= OVER_SECONDS:
            self._counts.popleft()
        if len(self._counts) > 1 and at > self._counts[0].at:
            self._rates = _between(self._counts[0], self._counts[-1])
        return self._rates


def _counts_of(statistics: Statistics, at: float) -> Counts:
    types = {each.type or "": each.flow.finished for each in statistics.shares}
    flow = statistics.flow
    return Counts(at=at, submitted=flow.submitted, finished=flow.finished, types=types)


def _between(first: Counts, last: Counts) -> Rates:
    seconds = last.at - first.at
    return Rates(
        submitted=max(0, last.submitted - first.submitted) / seconds,
        finished=max(0, last.finished - first.finished) / seconds,
        types={name: max(0, done - first.types.get(name, 0)) / seconds for name, done in last.types.items()},
    )


def _average(statistics: Statistics, now: Instant) -> Rates:
    """Return the averages since the first job in the time span, for the first reading."""
    began = next((each.at for each in statistics.line if _happened(each.flow)), statistics.since)
    seconds = max(1.0, to_seconds(now - began))
    return Rates(
        submitted=statistics.flow.submitted / seconds,
        finished=statistics.flow.finished / seconds,
        types={each.type or "": each.flow.finished / seconds for each in statistics.shares},
    )


def _happened(flow: Flow) -> bool:
    return bool(flow.submitted or flow.finished)
