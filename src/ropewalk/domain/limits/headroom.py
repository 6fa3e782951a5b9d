"""How many more jobs one claim may give out: under the limits of the fleet, and by type for the worker that asks.

`LimitHeadroom` and `HeadroomByLane` are about limits of the fleet (fleet_limit.py). The store counts what runs, reads
what has started lately, and makes sure that no other claim gives out jobs under the same limits meanwhile.
`TypeHeadroom` is about the room that the worker names for each type in its claim.
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
"""A claim is repeated after this time if only the end of a running job makes room. A hint usually comes first."""
BUSY_US: Final[Span] = SECOND // 200
"""A claim is repeated after this time if another claim has locked the limit just now."""
_UNLIMITED: Final = 1 << 40
"""This stands for a number of jobs without a bound."""


class FullLimit(Struct, frozen=True, kw_only=True):
    """A limit that leaves no room."""

    limit: FlowLimit
    name: str
    """This is the queue, type, key or tenant that has used up the limit: of a family, the one key."""
    in_use: int
    """This many running jobs count against the limit."""
    next_at: Instant | None
    """At this instant the rate leaves room again. None means that a running job has to end first."""


class LimitHeadroom:
    """How many jobs one claim may start under one limit, and how many it has given out."""

    def __init__(self, limit: FlowLimit, measure: Measure, in_use: int, state: RateState | None, now: Instant) -> None:
        self.limit = limit
        self.measure = measure
        self.in_use = in_use
        self.given = 0
        self._state = state
        self._now = now
        places = _UNLIMITED if limit.concurrency is None else limit.concurrency - in_use
        starts = _UNLIMITED if limit.rate is None else take(limit.rate, state, now, _UNLIMITED).granted
        self._room = min(places, starts)

    @property
    def full(self) -> bool:
        return self.given >= self._room

    @property
    def grant(self) -> RateGrant | None:
        """What the jobs that were given out take of the rate; None if the limit has no rate."""
        return None if self.limit.rate is None else take(self.limit.rate, self._state, self._now, self.given)

    @property
    def room_at(self) -> Instant:
        """The instant at which a claim should be repeated, while the limit is full."""
        waits = [self._now + SOON_US] if self._no_place else []
        if (next_at := self._next_start) is not None:
            waits.append(next_at)
        return max(waits)

    def as_full_limit(self) -> FullLimit:
        """Describes this limit, which is full, to people."""
        next_at = None if self._no_place else self._next_start
        return FullLimit(limit=self.limit, name=self.measure.name, in_use=self.in_use, next_at=next_at)

    @property
    def _no_place(self) -> bool:
        concurrency = self.limit.concurrency
        return concurrency is not None and self.in_use + self.given >= concurrency

    @property
    def _next_start(self) -> Instant | None:
        return None if (grant := self.grant) is None else grant.next_at


class HeadroomByLane(Generic[L]):
    """The headroom of the limits on each lane that a claim has met. A lane without limits always has room."""

    def __init__(self, now: Instant) -> None:
        self._now = now
        self._on: dict[L, list[LimitHeadroom]] = {}
        self._passed: set[L] = set()

    def __bool__(self) -> bool:
        """Whether any lane has a limit."""
        return bool(self._on or self._passed)

    def put(self, lane: L, headrooms: list[LimitHeadroom]) -> None:
        """Registers all limits on a lane. Lanes under the same limit share one LimitHeadroom."""
        self._on[lane] = headrooms

    def pass_over(self, lane: L) -> None:
        """Leaves a lane out of this claim, because another claim is giving out jobs under one of its limits."""
        self._passed.add(lane)

    def limited(self, lane: L) -> bool:
        return lane in self._on

    def admits(self, lane: L) -> bool:
        headrooms = self._on.get(lane)
        return lane not in self._passed if headrooms is None else not any(each.full for each in headrooms)

    def full_on(self, lane: L) -> list[FullLimit]:
        return [headroom.as_full_limit() for headroom in self._on.get(lane, ()) if headroom.full]

    def give(self, lane: L) -> None:
        for headroom in self._on.get(lane, ()):
            headroom.given += 1

    def used(self) -> Sequence[LimitHeadroom]:
        """Returns each limit with a rate under which jobs were given out, without repetition."""
        headrooms = {headroom.measure: headroom for on in self._on.values() for headroom in on}
        return [headroom for headroom in headrooms.values() if headroom.given and headroom.limit.rate is not None]

    def room_at(self) -> Instant | None:
        """The instant at which a claim should be repeated for the jobs that limits kept back, if there are any."""
        waits = [max(each.room_at for each in full) for on in self._on.values() if (full := [g for g in on if g.full])]
        if self._passed:
            waits.append(self._now + BUSY_US)
        return min(waits, default=None)


class TypeHeadroom:
    """How many jobs of each type a claim may still give out, as the worker asked. A type that is not named has room."""

    def __init__(self, room: Mapping[str, int]) -> None:
        self._left = dict(room)

    def admits(self, job_type: str) -> bool:
        return self._left.get(job_type, 1) > 0

    def most(self, job_type: str, wanted: int) -> int:
        """Returns how many of the wanted jobs there is room for, but at least one."""
        return max(1, min(wanted, self._left.get(job_type, wanted)))

    def give(self, job_type: str) -> None:
        if job_type in self._left:
            self._left[job_type] -= 1
