"""Clocks of the tz database as they really run, and an oracle of cron that watches them.

The oracle shares nothing with the code it judges: it walks through UTC step by step, asks zoneinfo what the wall clock
shows, and looks whether that fits. It searches nothing and knows no change of the clock but the one it sees.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache, cached_property
from zoneinfo import ZoneInfo, available_timezones

SECOND = timedelta(seconds=1)


@dataclass(frozen=True)
class Spec:
    """An expression, and what it means, said twice."""

    text: str
    minutes: frozenset[int]
    hours: frozenset[int]
    fits_day: Callable[[datetime], bool]
    fixed: bool
    seconds: frozenset[int] = field(default=frozenset({0}))

    def fits(self, wall: datetime) -> bool:
        return (
            wall.minute in self.minutes
            and wall.hour in self.hours
            and wall.second in self.seconds
            and self.fits_day(wall)
        )

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Watch:
    """A wall clock, watched at every step from `start` (which is only looked at, nothing fires then) to `end`."""

    zone: ZoneInfo
    start: datetime
    end: datetime
    step: timedelta = timedelta(minutes=1)

    @cached_property
    def shown(self) -> list[tuple[datetime, datetime]]:
        """UTC, and what the clock shows."""
        found: list[tuple[datetime, datetime]] = []
        instant = self.start
        while instant <= self.end:
            found.append((instant, instant.astimezone(self.zone).replace(tzinfo=None)))
            instant += self.step
        return found

    @cached_property
    def reached(self) -> list[tuple[datetime, datetime]]:
        """UTC, and every reading that a clock which is never put back comes to then."""
        found: list[tuple[datetime, datetime]] = []
        (_, furthest), *rest = self.shown
        for instant, wall in rest:
            while furthest < wall:
                furthest += self.step
                found.append((instant, furthest))
        return found

    def fires(self, spec: Spec) -> list[datetime]:
        clock = self.reached if spec.fixed else self.shown[1:]
        return sorted({instant for instant, wall in clock if spec.fits(wall)})


@cache
def changes(year: int) -> list[tuple[ZoneInfo, datetime]]:
    """Every change of any clock in that year; one that several zones make alike comes once."""
    found: dict[tuple[datetime, timedelta | None, timedelta | None], ZoneInfo] = {}
    start, end = datetime(year, 1, 1, tzinfo=UTC), datetime(year + 1, 1, 1, tzinfo=UTC)
    for name in sorted(available_timezones()):
        zone = ZoneInfo(name)
        for change in changes_of(zone, start, end):
            found.setdefault((change, _offset(change - SECOND, zone), _offset(change, zone)), zone)
    return [(zone, change) for (change, _, _), zone in found.items()]


def changes_of(zone: ZoneInfo, start: datetime, end: datetime) -> Iterator[datetime]:
    """Every change of this clock, to the second. No zone ever changed its clock twice within three days."""
    while start < end:
        low, high = start, min(end, start + timedelta(days=3))
        before = _offset(start, zone)
        start = high
        if _offset(high, zone) == before:
            continue
        while high - low > SECOND:
            middle = low + (high - low) // (2 * SECOND) * SECOND
            low, high = (middle, high) if _offset(middle, zone) == before else (low, middle)
        yield high


def _offset(instant: datetime, zone: ZoneInfo) -> timedelta | None:
    return instant.astimezone(zone).utcoffset()
