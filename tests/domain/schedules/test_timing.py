"""T1: intervals that do not drift, functions that go on, and what a timing must be to be stored."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ropewalk.domain.schedules.schedule import (
    INTERVAL_US_MIN,
    NO_FUNCTIONS,
    ByCron,
    ByFunction,
    Every,
    Timing,
    checked_timing,
    every_after,
    following,
)
from ropewalk.domain.time import DAY, HOUR, SECOND
from ropewalk.errors import InvalidInput

instants = st.integers(-(10**15), 10**16)
intervals = st.integers(INTERVAL_US_MIN, 400 * DAY)


@given(instants, intervals, instants)
def test_the_next_of_an_interval(anchor: int, interval: int, after: int) -> None:
    fire = every_after(anchor, interval, after)
    assert fire > after
    assert fire >= anchor
    assert (fire - anchor) % interval == 0
    assert fire == anchor or fire - interval <= after  # there is none between


def test_an_interval_does_not_drift() -> None:
    third = HOUR // 3 + 1
    fire = 0
    for number in range(1, 10_000):
        fire = every_after(0, third, fire + number % 1000)  # looked at late, now more, now less
        assert fire == number * third


def test_an_anchor_in_the_future_is_the_first_fire() -> None:
    assert every_after(anchor=DAY, interval_us=HOUR, after=0) == DAY
    assert every_after(anchor=DAY, interval_us=HOUR, after=DAY) == DAY + HOUR


def test_a_cron_expression_follows_the_clock_of_its_zone() -> None:
    times = following(ByCron("0 12 * * *", "Asia/Kolkata"), NO_FUNCTIONS)
    assert times is not None
    assert times(0) == 6 * HOUR + HOUR // 2
    assert times(6 * HOUR + HOUR // 2) == DAY + 6 * HOUR + HOUR // 2


def test_a_function_is_found_by_its_name_or_not_here() -> None:
    times = following(ByFunction("tides"), {"tides": lambda after: after + 7})
    assert times is not None
    assert times(3) == 10
    assert following(ByFunction("tides"), {"moon": lambda after: after + 7}) is None
    ended = following(ByFunction("tides"), {"tides": lambda _after: None})
    assert ended is not None
    assert ended(3) is None


@pytest.mark.parametrize("step", [0, -1])
def test_a_function_that_does_not_go_on_is_refused(step: int) -> None:
    times = following(ByFunction("tides"), {"tides": lambda after: after + step})
    assert times is not None
    with pytest.raises(InvalidInput, match=r"next='tides' returned 1970-01-01 .* must return a later time") as refused:
        times(100)
    assert refused.value.field == "next"


@pytest.mark.parametrize(
    ("timing", "stored", "expected"),
    [
        (Every(HOUR), None, Every(HOUR, 77)),
        (Every(HOUR, 5), None, Every(HOUR, 5)),
        (Every(HOUR), Every(HOUR, 3), Every(HOUR, 3)),
        (Every(HOUR), Every(DAY, 3), Every(HOUR, 77)),
        (Every(HOUR, 5), Every(HOUR, 3), Every(HOUR, 5)),
        (Every(HOUR), ByFunction("tides"), Every(HOUR, 77)),
        (Every(INTERVAL_US_MIN), None, Every(INTERVAL_US_MIN, 77)),
        (ByCron("@daily", "Europe/Oslo"), Every(HOUR, 3), ByCron("@daily", "Europe/Oslo")),
        (ByFunction("tides"), None, ByFunction("tides")),
    ],
)
def test_what_is_stored(timing: Timing, stored: Timing | None, expected: Timing) -> None:
    assert checked_timing(timing, stored, now=77) == expected


@pytest.mark.parametrize(
    ("timing", "field", "told"),
    [
        (ByCron("61 * * * *"), "cron", "out of range"),
        (ByCron("@daily", "Mars/Olympus"), "timezone", "not in the tz database"),
        (Every(INTERVAL_US_MIN - 1), "every", "too short: give at least 0.1 s"),
        (Every(0), "every", r"every=0\.0 is too short"),
        (Every(-SECOND), "every", "too short"),
    ],
)
def test_what_is_refused(timing: Timing, field: str, told: str) -> None:
    with pytest.raises(InvalidInput, match=told) as refused:
        checked_timing(timing, None, now=77)
    assert refused.value.field == field
