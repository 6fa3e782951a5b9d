"""When a cron expression fires on the clock of a time zone, summer time and all.

A clock on the wall is put forward and back, so that it may show 02:30 never or twice on a day. The rule for this is the
rule of Debian's cron, made exact:

- An expression with fixed times (no `*` in its seconds, minutes and hours) fires when a clock that is never put back
  reaches them. Put forward, it reaches everything it skipped at that moment, and fires once, right then: a skipped
  02:30 fires at 03:00. Put back, it stands still until the wall clock is where it was: a repeated 02:30 fires the first
  time only. This holds for any change, also of half an hour, and for a day that is left out altogether.
- Any other expression fires whenever the wall clock shows a time that fits: what is skipped does not fire, what is
  repeated fires again. So "*/15 * * * *" keeps its distance in real time, and "0 * * * *" does where clocks are changed
  by whole hours.

Fires are at whole seconds, and two fires are never at the same second.

Zones have the names of the tz database, which is read through zoneinfo. Everything here is in whole seconds, as the
offsets of the database are. No two changes of a clock are so close that a wall time is affected by both.
"""

from __future__ import annotations

from bisect import bisect_left
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final, NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from ropewalk.domain import shown_values
from ropewalk.domain.schedules.calendar import YEAR_MAX, Wall, next_wall
from ropewalk.domain.schedules.cron import Cron, NeverComes, parse_cron
from ropewalk.domain.time import SECOND, Instant, to_datetime, to_instant
from ropewalk.errors import InvalidInput

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
# These names are on disk beside the zones, but they mean the zone of the machine, or zones that count leap seconds.
_NO_ZONES: Final = ("localtime", "posix", "right")


class Offsets(NamedTuple):
    """The offsets from UTC before and after the change of the clock that is near a wall time; both are the same if
    there is none."""

    before: int
    after: int

    @property
    def skipped(self) -> bool:
        """Whether the clock is put forward over this wall time and never shows it."""
        return self.before < self.after

    @property
    def repeated(self) -> bool:
        """Whether the clock is put back and shows this wall time twice."""
        return self.before > self.after


def zone_name(value: object) -> str:
    """Returns the name of a zone that is given as text, as a ZoneInfo, or as datetime.UTC."""
    if value is UTC:
        return "UTC"
    if isinstance(value, ZoneInfo) and isinstance(value.key, str):  # A zone from ZoneInfo.from_file may have no name.
        return value.key
    if isinstance(value, str):
        return value
    raise _no_zone(value)


def zone_of(name: str) -> tzinfo:
    """Returns the zone of this name, or raises InvalidInput. UTC exists even if the machine has no tz database."""
    if name == "UTC":
        return UTC
    if isinstance(name, str) and not name.startswith(_NO_ZONES):
        try:
            return ZoneInfo(name)
        except (ZoneInfoNotFoundError, ValueError, OSError):  # The name is a directory, a path, or too long.
            pass
    raise _no_zone(name)


def _no_zone(given: object) -> InvalidInput:
    return InvalidInput(
        f"timezone={shown_values.shown(given)} is not in the tz database: give a name like 'Europe/Oslo' or 'UTC' "
        "(and install the package tzdata where the system has no such database)",
        field="timezone",
    )


def wall_time(second: int, zone: tzinfo) -> tuple[Wall, bool]:
    """Returns the wall time at this second since 1970, and whether the clock shows it for the second time."""
    local = (_EPOCH + timedelta(seconds=second)).astimezone(zone)
    return second + _offset(local), local.fold == 1


def offsets(wall: Wall, zone: tzinfo) -> Offsets:
    """Returns the offsets of the clock around a wall time."""
    local = datetime(1970, 1, 1, tzinfo=zone) + timedelta(seconds=wall)
    return Offsets(_offset(local), _offset(local.replace(fold=1)))


def change(wall: Wall, sides: Offsets, zone: tzinfo) -> int:
    """Returns the second of the change that makes the clock skip or repeat this wall time. `sides` are its offsets."""
    seconds = range(wall - max(sides), wall - min(sides))
    changed = bisect_left(seconds, x=True, key=lambda second: wall_time(second, zone)[0] - second == sides.after)
    return seconds.start + changed


def _offset(local: datetime) -> int:
    offset = local.utcoffset()
    assert offset is not None, "a zone of the tz database always has one"
    return offset.days * 86_400 + offset.seconds


_FIRST: Final = to_instant(datetime(2, 1, 1, tzinfo=UTC), "first")
_LAST: Final = to_instant(datetime(YEAR_MAX, 12, 30, tzinfo=UTC), "last")


def next_after(expression: str | Cron, after: datetime, timezone: str | tzinfo = "UTC") -> datetime | None:
    """Returns the first time after `after` at which a schedule with this expression fires, in UTC.

    `after` is an aware datetime in any zone. `timezone` is the zone of the clock that the expression refers to, by name
    or as a ZoneInfo. Expressions with fixed times fire once, whatever the clock does: a time that it skips fires right
    after the gap, and a time that it repeats fires the first time. Expressions with `*` in seconds, minutes or hours
    follow the clock: they do not fire at times that it skips, and fire twice at times that it repeats. The answer is
    None if the expression never fires, such as 30 February, or not before the year 9999.
    """
    instant, zone = to_instant(after, "after"), zone_of(zone_name(timezone))
    try:
        cron = expression if isinstance(expression, Cron) else parse_cron(expression)
    except NeverComes:
        return None
    fire = fire_after(cron, instant, zone)
    return None if fire is None else to_datetime(fire)


def fire_after(cron: Cron, after: Instant, zone: tzinfo) -> Instant | None:
    """Returns the first instant after `after` at which the expression fires, as `next_after` does."""
    if after < _FIRST:
        raise InvalidInput(f"after={after} is before the year 2: time zones end there", field="after")
    if after >= _LAST:
        return None
    # A whole second is after `after` exactly if it is after the second that contains `after`.
    second = after // SECOND
    fire = _when_reached(cron, second, zone) if cron.fixed else _when_shown(cron, second + 1, zone)
    return None if fire is None else fire * SECOND


def _when_reached(cron: Cron, after: int, zone: tzinfo) -> int | None:
    """Returns the first second after `after` at which a clock that is never put back reaches a time that fits."""
    wall, again = wall_time(after, zone)
    wall += 1
    if again:
        # The clock that is never put back still shows what the wall clock showed when it was put back.
        sides = offsets(wall - 1, zone)
        wall = change(wall - 1, sides, zone) + sides.before
    found = next_wall(cron, wall)
    if found is None:
        return None
    sides = offsets(found, zone)
    return change(found, sides, zone) if sides.skipped else found - sides.before


def _when_shown(cron: Cron, start: int, zone: tzinfo) -> int | None:
    """Returns the first second from `start` on at which the wall clock shows a time that fits. Each turn of the loop
    continues behind a change of the clock."""
    while True:
        wall, again = wall_time(start, zone)
        found = next_wall(cron, wall)
        if found is None:
            return None
        here, sides = offsets(wall, zone), offsets(found, zone)
        if here.repeated and not again:
            # The clock will be put back after `wall`. If the found time is later, the search continues there.
            put_back = change(wall, here, zone)
            if found - here.before < put_back:
                return found - here.before
            start = put_back
        elif sides.skipped:
            start = change(found, sides, zone)
        else:
            first = found - sides.before
            return first if first >= start else found - sides.after
