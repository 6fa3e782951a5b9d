"""How much room limits leave in one claim. What runs is counted, what has started lately is read; both come from the
store, which makes sure that nobody else gives out jobs under the same limits meanwhile.

How many jobs of each type one worker has room for in a claim. Its own business: limits of the fleet are
headroom.py.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Final, Generic, TypeVar

from msgspec import Struct

from ropewalk.domain.limits.fleet_limit import FlowLimit, Measure
from ropewalk.domain.limits.rate import RateGrant, RateState, take
from ropewalk.domain.time import SECOND, Instant, Span

L = TypeVar("L", bound=Hashable)

SOON_US: Final[Span] = SECOND // 20
"""when to ask again where only the end of a running job makes room: hints usually come first"""
BUSY_US: Final[Span] = SECOND // 200
"""when to ask again where another claim holds the limit just now"""
_ALL: Final = 1 << 40


class Full(Struct, frozen=True, kw_only=True):
    """A limit that leaves no room, and what for."""

    limit: FlowLimit
    name: str
    in_use: int
    next_at: Instant | None
    """when its rate leaves room again; None: when something that runs has ended"""


class LimitHeadroom:
    """The room one limit leaves, and what was given out of it."""

    def __init__(self, limit: FlowLimit, measure: Measure, in_use: int, state: RateState | None, now: Instant) -> None:
        self.limit = limit
        self.measure = measure
        self.in_use = in_use
        self.given = 0
        self._state = state
        self._now = now
        places = _ALL if limit.concurrency is None else limit.concurrency - in_use
        self._room = min(places, _ALL if limit.rate is None else take(limit.rate, state, now, _ALL).granted)

    @property
    def full(self) -> bool:
        return self.given >= self._room

    @property
    def spent(self) -> RateGrant | None:
        """What became of its rate."""
        return None if self.limit.rate is None else take(self.limit.rate, self._state, self._now, self.given)

    @property
    def room_at(self) -> Instant:
        """When to ask again, while it is full."""
        waits = [self._now + SOON_US] if self._no_place else []
        if (next_at := self._next_start) is not None:
            waits.append(next_at)
        return max(waits)

    def told(self) -> Full:
        next_at = None if self._no_place else self._next_start
        return Full(limit=self.limit, name=self.measure.name, in_use=self.in_use, next_at=next_at)

    @property
    def _no_place(self) -> bool:
        concurrency = self.limit.concurrency
        return concurrency is not None and self.in_use + self.given >= concurrency

    @property
    def _next_start(self) -> Instant | None:
        return None if (spent := self.spent) is None else spent.next_at


class Gauges(Generic[L]):
    """Those of every lane that a claim met; a lane without any has room."""

    def __init__(self, now: Instant) -> None:
        self._now = now
        self._on: dict[L, list[LimitHeadroom]] = {}
        self._passed: set[L] = set()

    def __bool__(self) -> bool:
        """Is any of them limited?"""
        return bool(self._on or self._passed)

    def put(self, lane: L, gauges: list[LimitHeadroom]) -> None:
        self._on[lane] = gauges

    def pass_over(self, lane: L) -> None:
        """Somebody else is giving out jobs under one of its limits."""
        self._passed.add(lane)

    def limited(self, lane: L) -> bool:
        return lane in self._on

    def admits(self, lane: L) -> bool:
        gauges = self._on.get(lane)
        return lane not in self._passed if gauges is None else not any(gauge.full for gauge in gauges)

    def full_on(self, lane: L) -> list[Full]:
        return [gauge.told() for gauge in self._on.get(lane, ()) if gauge.full]

    def give(self, lane: L) -> None:
        for gauge in self._on.get(lane, ()):
            gauge.given += 1

    def used(self) -> Sequence[LimitHeadroom]:
        """Each whose rate something was given out of, once."""
        gauges = {gauge.measure: gauge for on in self._on.values() for gauge in on}
        return [gauge for gauge in gauges.values() if gauge.given and gauge.limit.rate is not None]

    def room_at(self) -> Instant | None:
        """When to ask again for what was held back."""
        waits = [max(each.room_at for each in full) for on in self._on.values() if (full := [g for g in on if g.full])]
        if self._passed:
            waits.append(self._now + BUSY_US)
        return min(waits, default=None)


class TypeHeadroom:
    """What is left while a claim gives out jobs. A type that is not named has room."""

    def __init__(self, most: Mapping[str, int]) -> None:
        self._left = dict(most)

    def admits(self, job_type: str) -> bool:
        return self._left.get(job_type, 1) > 0

    def most(self, job_type: str, wanted: int) -> int:
        """Of so many wanted those there is room for, but at least one."""
        return max(1, min(wanted, self._left.get(job_type, wanted)))

    def give(self, job_type: str) -> None:
        if job_type in self._left:
            self._left[job_type] -= 1
