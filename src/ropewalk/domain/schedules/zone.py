"""The clock on the wall of a time zone: what it shows when, and where it is put forward or back.

Names are those of the tz database, read through zoneinfo. Everything here is in whole seconds, as the offsets of the
database are; no two of its changes come so close that a wall time is touched by both.
"""

from __future__ import annotations

from bisect import bisect_left
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final, NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from ropewalk.domain.schedules.calendar import Wall
from ropewalk.errors import InvalidInput

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
# On disk beside the zones, but no zone that two machines agree on: it is the machine's own, or counts leap seconds.
_NO_ZONES: Final = ("localtime", "posix", "right")


class Offsets(NamedTuple):
    """From UTC, on the two sides of the nearest change; the same where none is near."""

    before: int
    after: int

    @property
    def skipped(self) -> bool:
        """The clock is put forward over this wall time and never shows it."""
        return self.before < self.after

    @property
    def repeated(self) -> bool:
        """The clock is put back and shows this wall time twice."""
        return self.before > self.after


def zone_of(name: str) -> tzinfo:
    """The zone of that name, or `InvalidInput`. UTC is there also where the machine has no tz database."""
    if name == "UTC":
        return UTC
    if isinstance(name, str) and not name.startswith(_NO_ZONES):
        try:
            return ZoneInfo(name)
        except (ZoneInfoNotFoundError, ValueError, OSError):  # a name that is a directory, a path, or too long
            pass
    raise InvalidInput(
        f"timezone={name!r} is not in the tz database: give a name like 'Europe/Oslo' or 'UTC' "
        "(and install the package tzdata where the system has no such database)",
        field="timezone",
    )


def shown(second: int, zone: tzinfo) -> tuple[Wall, bool]:
    """What the clock shows at that second since 1970, and whether it shows it for the second time."""
    local = (_EPOCH + timedelta(seconds=second)).astimezone(zone)
    return second + _offset(local), local.fold == 1


def offsets(wall: Wall, zone: tzinfo) -> Offsets:
    local = datetime(1970, 1, 1, tzinfo=zone) + timedelta(seconds=wall)
    return Offsets(_offset(local), _offset(local.replace(fold=1)))


def change(wall: Wall, sides: Offsets, zone: tzinfo) -> int:
    """The second at which the clock is changed that skips or repeats this wall time; `sides` are its offsets."""
    seconds = range(wall - max(sides), wall - min(sides))
    changed = bisect_left(seconds, x=True, key=lambda second: shown(second, zone)[0] - second == sides.after)
    return seconds.start + changed


def _offset(local: datetime) -> int:
    offset = local.utcoffset()
    assert offset is not None, "a zone of the tz database always has one"
    return offset.days * 86_400 + offset.seconds
