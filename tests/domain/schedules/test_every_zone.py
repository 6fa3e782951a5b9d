"""T2: in every zone of the tz database, around every change of its clock from 2024 to 2032, expressions fire as the
oracle says that watches the clock."""

from __future__ import annotations

from bisect import bisect_right
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from ropewalk.domain.schedules.fire_times import next_after
from tests.domain.schedules.clocks import Spec, Watch, changes
from tests.domain.schedules.cron_specs import SPECS, fires

AROUND = timedelta(hours=36)
NEAR = timedelta(hours=2, minutes=10)
PROBE = timedelta(minutes=13, seconds=7, microseconds=3)


@pytest.mark.parametrize("year", range(2024, 2033))
def test_every_change_of_every_zone(year: int) -> None:
    found = changes(year)
    assert len(found) > 40
    for zone, change in found:
        watch = Watch(zone, change - AROUND, change + AROUND)
        for spec in SPECS:
            expected = watch.fires(spec)
            assert fires(spec.text, watch) == expected, f"{spec} in {zone} around {change}"
            check_from_anywhere(spec, watch, change, expected)


def check_from_anywhere(spec: Spec, watch: Watch, change: datetime, expected: list[datetime]) -> None:
    """Also asked from between fires, above all while the clock repeats itself, the answer is the next one."""
    after = change - NEAR
    while after < change + NEAR:
        behind = bisect_right(expected, after)
        if behind < len(expected):
            answer = next_after(spec.text, after, watch.zone.key)
            assert answer == expected[behind], f"{spec} in {watch.zone} after {after}"
        after += PROBE


def test_the_changes_are_those_that_people_know() -> None:
    """The oracle looks where something happens: a summer time of an hour, one of half an hour, one of two."""
    sizes = {shift(zone, change) for year in (2024, 2026) for zone, change in changes(year)}
    assert {timedelta(hours=1), timedelta(hours=-1), timedelta(minutes=30), timedelta(hours=2)} <= sizes
    found = {change for _, change in changes(2026)}
    assert datetime(2026, 3, 29, 1, tzinfo=UTC) in found  # Europe
    assert datetime(2026, 11, 1, 6, tzinfo=UTC) in found  # New York


def shift(zone: ZoneInfo, change: datetime) -> timedelta:
    before, after = (change - timedelta(seconds=1)).astimezone(zone), change.astimezone(zone)
    return after.replace(tzinfo=None) - before.replace(tzinfo=None) - timedelta(seconds=1)
