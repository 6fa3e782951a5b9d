"""How fast jobs come and go, between two looks: counts by the minute, looked at every second, tell it to the second."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from ropewalk.domain.statistics.statistics import Flow, Statistics
from ropewalk.domain.time import Instant, to_seconds

OVER_SECONDS: Final = 5.0
"""averaged over the looks within this time, so that a number can be read before it changes"""


class Rates(Struct, frozen=True, kw_only=True):
    """Per second."""

    submitted: float = 0.0
    finished: float = 0.0
    types: Mapping[str, float] = {}
    """finished, by type"""


class Look(Struct, frozen=True, kw_only=True):
    """Counts since one and the same instant."""

    at: float
    submitted: int
    finished: int
    types: Mapping[str, int]


class Pace:
    def __init__(self) -> None:
        self._since: Instant | None = None
        self._looks: deque[Look] = deque()
        self._rates = Rates()

    def of(self, statistics: Statistics, at: float, now: Instant) -> Rates:
        """As of this look at `at` (monotonic seconds), `now` on the store's clock."""
        if self._since is None:
            self._rates = _average(statistics, now)
        if statistics.since != self._since:  # the window moved: what was counted before is not comparable
            self._since = statistics.since
            self._looks.clear()
        self._looks.append(_look(statistics, at))
        while len(self._looks) > 2 and at - self._looks[1].at >= OVER_SECONDS:
            self._looks.popleft()
        if len(self._looks) > 1 and at > self._looks[0].at:
            self._rates = _between(self._looks[0], self._looks[-1])
        return self._rates


def _look(statistics: Statistics, at: float) -> Look:
    types = {each.type or "": each.flow.finished for each in statistics.shares}
    flow = statistics.flow
    return Look(at=at, submitted=flow.submitted, finished=flow.finished, types=types)


def _between(first: Look, last: Look) -> Rates:
    seconds = last.at - first.at
    return Rates(
        submitted=max(0, last.submitted - first.submitted) / seconds,
        finished=max(0, last.finished - first.finished) / seconds,
        types={name: max(0, done - first.types.get(name, 0)) / seconds for name, done in last.types.items()},
    )


def _average(statistics: Statistics, now: Instant) -> Rates:
    """One look tells no pace: the average since something happened does."""
    began = next((each.at for each in statistics.line if _happened(each.flow)), statistics.since)
    seconds = max(1.0, to_seconds(now - began))
    return Rates(
        submitted=statistics.flow.submitted / seconds,
        finished=statistics.flow.finished / seconds,
        types={each.type or "": each.flow.finished / seconds for each in statistics.shares},
    )


def _happened(flow: Flow) -> bool:
    return bool(flow.submitted or flow.finished)
