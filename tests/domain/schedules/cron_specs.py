"""Expressions, each with its meaning said in other words; and all that fires while a clock is watched."""

from __future__ import annotations

from datetime import datetime, timedelta

from ropewalk.domain.schedules.fire_times import next_after
from tests.domain.schedules.clocks import Spec, Watch

ALL_HOURS = frozenset(range(24))


def some(*numbers: int) -> frozenset[int]:
    return frozenset(numbers)


def any_day(_wall: datetime) -> bool:
    return True


def last_day(wall: datetime) -> bool:
    return (wall + timedelta(days=1)).day == 1


def is_sunday(wall: datetime) -> bool:
    return wall.isoweekday() == 7


def last_week(wall: datetime) -> bool:
    return (wall + timedelta(days=7)).month != wall.month


SPECS = [
    # Fixed times, in and around the hours at which clocks are changed somewhere.
    Spec("0 0 * * *", some(0), some(0), any_day, fixed=True),
    Spec("30 0 * * *", some(30), some(0), any_day, fixed=True),
    Spec("45 1 * * *", some(45), some(1), any_day, fixed=True),
    Spec("0 2 * * *", some(0), some(2), any_day, fixed=True),
    Spec("30 2 * * *", some(30), some(2), any_day, fixed=True),
    Spec("0 3 * * *", some(0), some(3), any_day, fixed=True),
    Spec("59 23 * * *", some(59), some(23), any_day, fixed=True),
    Spec("10,40 0-4,22,23 * * *", some(10, 40), some(0, 1, 2, 3, 4, 22, 23), any_day, fixed=True),
    Spec("3-59/14 21-3 * * *", some(3, 17, 31, 45, 59), some(21, 22, 23, 0, 1, 2, 3), any_day, fixed=True),
    # The same for days: months' ends, weekdays, both and either.
    Spec("15 0 L * *", some(15), some(0), last_day, fixed=True),
    Spec("0 0 1 * *", some(0), some(0), lambda wall: wall.day == 1, fixed=True),
    Spec("30 1,2 * * SUNL", some(30), some(1, 2), lambda wall: is_sunday(wall) and last_week(wall), fixed=True),
    Spec(
        "30 2 * 3,11 7#2", some(30), some(2), lambda w: w.month in (3, 11) and is_sunday(w) and 8 <= w.day <= 14, True
    ),
    Spec("30 2 29-31 * SUN", some(30), some(2), lambda wall: wall.day >= 29 or is_sunday(wall), fixed=True),
    Spec("30 2 */2 * SUN", some(30), some(2), lambda wall: wall.day % 2 == 1 and is_sunday(wall), fixed=True),
    # With a star the clock is followed as it runs.
    Spec("*/15 * * * *", some(0, 15, 30, 45), ALL_HOURS, any_day, fixed=False),
    Spec("0 * * * *", some(0), ALL_HOURS, any_day, fixed=False),
    Spec("7 * * * SAT-MON", some(7), ALL_HOURS, lambda wall: wall.isoweekday() in (6, 7, 1), fixed=False),
    Spec("*/20 0-3 * * *", some(0, 20, 40), some(0, 1, 2, 3), any_day, fixed=False),
    Spec("30 */2 * * *", some(30), frozenset(range(0, 24, 2)), any_day, fixed=False),
    Spec("*/30 22-2 L * *", some(0, 30), some(22, 23, 0, 1, 2), last_day, fixed=False),
]


def fires(text: str, watch: Watch) -> list[datetime]:
    """What the code under test says, from the watch's start to its end."""
    found: list[datetime] = []
    fire = next_after(text, watch.start, watch.zone.key)
    while fire is not None and fire <= watch.end:
        found.append(fire)
        fire = next_after(text, fire, watch.zone.key)
    return found
