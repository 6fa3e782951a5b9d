"""The days of a month, and the times of day, that a cron expression means: a calendar without time zones.

A wall time is what a clock on the wall shows, in seconds since it showed the beginning of 1970. fire_times.py knows
whether and when the clock of a zone really shows it.
"""

from __future__ import annotations

from calendar import isleap
from datetime import date
from typing import Final, TypeAlias

from msgspec import Struct

Wall: TypeAlias = int

DAY_SECONDS: Final = 86_400
YEAR_MAX: Final = 9998
"""The last year that a datetime can show in every zone."""

_EPOCH: Final = date(1970, 1, 1).toordinal()
_LENGTHS: Final = (0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_LENGTH_MIN: Final = 28


class DayRule(Struct, frozen=True):
    """The days that the two day fields of an expression mean, before the shape of the month is known."""

    of_month: int
    """The mask of days 1 to 31."""
    last: bool
    """Whether the last day of the month fits, too."""
    weeks: tuple[int, ...]
    """Six masks of weekdays, beginning with Sunday: for the last seven days of the month, then for its first to fifth
    week."""
    either: bool
    """Whether a day that fits one of the two fields is enough."""


class Pattern(Struct, frozen=True, kw_only=True):
    """The times of day, the months and the days that fit. All are masks in which bit n is set if n fits. None of the
    masks for times and months is empty."""

    seconds: int
    minutes: int
    hours: int
    months: int
    days: tuple[int, ...]
    """The days of a month that fit, for each shape that a month can have (month_shapes)."""


def next_wall(pattern: Pattern, wall: Wall) -> Wall | None:
    """Returns the first wall time of the pattern that is not before `wall`; None if the calendar ends before it."""
    day, time = divmod(wall, DAY_SECONDS)
    while (found := _next_day(pattern, day)) is not None:
        later = _next_time(pattern, time if found == day else 0)
        if later is not None:
            return found * DAY_SECONDS + later
        day, time = found + 1, 0
    return None


def month_shapes(rule: DayRule) -> tuple[int, ...]:
    """Returns the days that fit for each of the 28 possible shapes of a month: by first weekday, then by length."""
    return tuple(_month_days(rule, first, length) for first in range(7) for length in range(_LENGTH_MIN, 32))


def can_come(shapes: tuple[int, ...], months: int) -> bool:
    """Whether any day fits. Every month begins on every weekday in some years, and so does a February of 29 days."""
    lengths = {_LENGTHS[month] for month in range(1, 13) if months >> month & 1}
    if 28 in lengths:
        lengths.add(29)
    return any(shapes[_shape(first, length)] for first in range(7) for length in lengths)


def _next_day(pattern: Pattern, day: int) -> int | None:
    """Returns the first day that fits and is not before `day`. Days are counted from the beginning of 1970."""
    since = date.fromordinal(day + _EPOCH)
    year, month, earliest = since.year, since.month, since.day
    while year <= YEAR_MAX:
        if pattern.months >> month & 1:
            first = date(year, month, 1).toordinal()
            length = 29 if month == 2 and isleap(year) else _LENGTHS[month]
            # Ordinals count from a Monday, 1: their rest by 7 is the weekday from Sunday, 0.
            found = _next_bit(pattern.days[_shape(first % 7, length)], earliest)
            if found is not None:
                return first - _EPOCH + found - 1
        year, month, earliest = (year, month + 1, 1) if month < 12 else (year + 1, 1, 1)
    return None


def _next_time(pattern: Pattern, time: int) -> int | None:
    """Returns the first second of a day that fits and is not before `time`."""
    hour, rest = divmod(time, 3600)
    minute, second = divmod(rest, 60)
    if pattern.hours >> hour & 1:
        if pattern.minutes >> minute & 1:
            found = _next_bit(pattern.seconds, second)
            if found is not None:
                return time - second + found
        found = _next_bit(pattern.minutes, minute + 1)
        if found is not None:
            return hour * 3600 + found * 60 + _first_bit(pattern.seconds)
    found = _next_bit(pattern.hours, hour + 1)
    return None if found is None else found * 3600 + _first_bit(pattern.minutes) * 60 + _first_bit(pattern.seconds)


def _month_days(rule: DayRule, first_weekday: int, length: int) -> int:
    of_month = rule.of_month | rule.last << length
    last, *weeks = rule.weeks
    # A week of the month is seven days, which begin with the weekday the month began with.
    of_week = _turned(last, first_weekday + length) << length - 6
    for week, weekdays in enumerate(weeks):
        of_week |= _turned(weekdays, first_weekday) << week * 7 + 1
    days = of_month | of_week if rule.either else of_month & of_week
    return days & (2 << length) - 1


def _turned(weekdays: int, first: int) -> int:
    """Returns seven bits that begin with the weekday `first` instead of Sunday."""
    return (weekdays | weekdays << 7) >> first % 7 & 0b1111111


def _shape(first_weekday: int, length: int) -> int:
    return first_weekday * 4 + length - _LENGTH_MIN


def _next_bit(mask: int, start: int) -> int | None:
    rest = mask >> start
    return start + _first_bit(rest) if rest else None


def _first_bit(mask: int) -> int:
    return (mask & -mask).bit_length() - 1
