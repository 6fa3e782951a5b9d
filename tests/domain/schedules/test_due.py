"""T1, T2: what fires when a scheduler looks: on time, late, after a year asleep. Never twice; `all` loses nothing."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from ropewalk.domain.jobs.record import NewJob
from ropewalk.domain.schedules.due import FIRES_MAX, ON_TIME_US, Due, advance, due, upcoming
from ropewalk.domain.schedules.schedule import (
    ByCron,
    ByFunction,
    Every,
    Missed,
    Plan,
    Schedule,
    Timing,
    begin,
    pause,
    resume,
)
from ropewalk.domain.time import DAY, HOUR, MINUTE, SECOND

START = 20_000 * DAY
REPORT = NewJob(id="", type="report", input=b"{}")
POLICIES: tuple[Missed, ...] = ("skip", "once", "all")


def hourly(missed: Missed, timing: Timing | None = None) -> Schedule:
    return begin("x", Plan(timing=timing or ByCron("0 * * * *"), work=REPORT, missed=missed), START)


@pytest.mark.parametrize("missed", POLICIES)
@pytest.mark.parametrize("late", [0, 1, SECOND, ON_TIME_US])
def test_on_time_is_on_time_whatever_the_policy(missed: Missed, late: int) -> None:
    assert due(hourly(missed), START + HOUR - 1) == Due((), START + HOUR)
    assert due(hourly(missed), START + HOUR + late) == Due((START + HOUR,), START + 2 * HOUR)


@pytest.mark.parametrize(
    ("missed", "late", "hours"),
    [
        ("skip", ON_TIME_US + 1, []),
        ("once", ON_TIME_US + 1, [5]),
        ("all", ON_TIME_US + 1, [1, 2, 3, 4, 5]),
        ("skip", SECOND, [5]),
        ("once", SECOND, [5]),
        ("all", SECOND, [1, 2, 3, 4, 5]),
    ],
)
@pytest.mark.parametrize(
    "timing", [ByCron("0 * * * *"), Every(HOUR), ByFunction("hourly")], ids=["cron", "every", "next"]
)
def test_after_a_downtime(missed: Missed, late: int, hours: Sequence[int], timing: Timing) -> None:
    functions = {"hourly": lambda after: after + HOUR}
    schedule = begin("x", Plan(timing=timing, work=REPORT, missed=missed), START, functions=functions)
    taken = due(schedule, START + 5 * HOUR + late, functions)
    assert taken == Due(tuple(START + hour * HOUR for hour in hours), START + 6 * HOUR)


@pytest.mark.parametrize("timing", [ByCron("* * * * * *"), Every(SECOND)], ids=["cron", "every"])
def test_a_year_asleep_is_no_flood_and_takes_no_time(timing: Timing) -> None:
    now = START + 365 * DAY + 1
    seconds = [START + 365 * DAY - SECOND * before for before in range(365 * 24)]
    counts: dict[Missed, int] = {"all": FIRES_MAX, "once": 60, "skip": 60}
    for missed, count in counts.items():
        taken = due(hourly(missed, timing), now)
        assert taken == Due(tuple(reversed(seconds[:count])), START + 365 * DAY + SECOND)


def test_the_newest_of_many_are_found_between_quiet_times() -> None:
    """Every second of the first hour of a year, then nothing: looked at in its summer."""
    schedule = hourly("all", ByCron("* * 0 1 1 *"))
    assert schedule.next_fire is not None
    end = schedule.next_fire + HOUR - SECOND
    now = schedule.next_fire + 200 * DAY
    assert due(schedule, now).fires == tuple(end - SECOND * before for before in reversed(range(FIRES_MAX)))
    assert due(structs.replace(schedule, plan=structs.replace(schedule.plan, missed="once")), now).fires == (end,)


@pytest.mark.parametrize("count", [FIRES_MAX - 1, FIRES_MAX, FIRES_MAX + 1])
def test_both_sides_of_the_cap(count: int) -> None:
    taken = due(hourly("all"), START + count * HOUR)
    first = max(1, count - FIRES_MAX + 1)
    assert taken.fires == tuple(START + hour * HOUR for hour in range(first, count + 1))


@pytest.mark.parametrize("missed", POLICIES)
@pytest.mark.parametrize("timing", [ByCron("*/20 * * * * *"), Every(20 * SECOND), ByFunction("fast")])
def test_all_that_are_on_time_fire(missed: Missed, timing: Timing) -> None:
    """More come within a minute than a scheduler looks: none of them was missed."""
    functions = {"fast": lambda after: after + 20 * SECOND}
    schedule = begin("x", Plan(timing=timing, work=REPORT, missed=missed), START, functions=functions)
    taken = due(schedule, START + 50 * SECOND, functions)
    assert taken == Due((START + 20 * SECOND, START + 40 * SECOND), START + 60 * SECOND)
    assert advance(schedule, taken).last_fire == START + 40 * SECOND


def test_a_function_asked_too_often_goes_on_from_now() -> None:
    now = START + DAY
    functions = {"fast": lambda after: after + MINUTE}
    schedule = begin("x", Plan(timing=ByFunction("fast"), work=REPORT, missed="all"), START, functions=functions)
    taken = due(schedule, now, functions)
    assert taken.fires == tuple(START + MINUTE * number for number in range(1, FIRES_MAX + 1))
    assert taken.next_fire == now + MINUTE


def test_a_function_is_asked_once_for_every_fire() -> None:
    asked: list[int] = []

    def tides(after: int) -> int | None:
        asked.append(after)
        return after + 6 * HOUR if after < START + 12 * HOUR else None

    functions = {"tides": tides}
    schedule = begin("x", Plan(timing=ByFunction("tides"), work=REPORT, missed="all"), START, functions=functions)
    taken = due(schedule, START + DAY, functions)
    assert taken == Due((START + 6 * HOUR, START + 12 * HOUR), None)
    assert asked == [START, START + 6 * HOUR, START + 12 * HOUR]
    assert due(advance(schedule, taken), START + 9 * DAY, functions) == Due((), None)


def test_a_function_of_another_process_is_left_to_it() -> None:
    functions = {"tides": lambda after: after + HOUR}
    schedule = begin("x", Plan(timing=ByFunction("tides"), work=REPORT), START, functions=functions)
    assert due(schedule, START + DAY) == Due((), START + HOUR)


def test_a_paused_schedule_goes_on_silently() -> None:
    schedule = pause(hourly("all"))
    taken = due(schedule, START + 5 * HOUR)
    assert taken == Due((), START + 6 * HOUR)
    assert advance(schedule, taken).last_fire is None
    resumed = resume(advance(schedule, taken), START + 5 * HOUR + 1)
    assert due(resumed, START + 6 * HOUR).fires == (START + 6 * HOUR,)


def test_a_fire_that_new_rules_of_a_zone_no_longer_know_is_left_out() -> None:
    """The stored time was told by other tz data: what counts is what the zone says now."""
    schedule = structs.replace(hourly("all"), next_fire=START + HOUR // 2)
    assert due(schedule, START + 2 * HOUR) == Due((START + HOUR, START + 2 * HOUR), START + 3 * HOUR)


def test_advancing_keeps_the_last_fire() -> None:
    schedule = hourly("skip")
    fired = advance(schedule, due(schedule, START + HOUR))
    assert (fired.last_fire, fired.next_fire) == (START + HOUR, START + 2 * HOUR)
    skipped = advance(fired, due(fired, START + 10 * HOUR - SECOND))
    assert (skipped.last_fire, skipped.next_fire) == (START + HOUR, START + 10 * HOUR)


# Beside each timing, all its fires in the order a child would list them.
LISTED: list[tuple[Timing, list[int]]] = [
    (ByCron("* * * * *"), [START + MINUTE * number for number in range(1, 60_000)]),
    (ByCron("*/20 * * * * *"), [START + 20 * SECOND * number for number in range(1, 180_000)]),
    (ByCron("0 */6 * * *"), [START + 6 * HOUR * number for number in range(1, 200)]),
    (Every(7 * SECOND + 1, START), [START + (7 * SECOND + 1) * number for number in range(1, 500_000)]),
    (Every(DAY, START), [START + DAY * number for number in range(1, 50)]),
]


@given(
    st.sampled_from(LISTED),
    st.sampled_from(POLICIES),
    st.lists(st.integers(0, 5 * SECOND) | st.integers(0, HOUR) | st.integers(0, 5 * DAY), max_size=8),
)
def test_any_looks_at_any_times(listed: tuple[Timing, list[int]], missed: Missed, waits: list[int]) -> None:
    timing, fires = listed
    schedule, now, last = hourly(missed, timing), START, START
    taken: list[int] = []
    for wait in waits:
        now += wait
        answer = due(schedule, now)
        owed = between(fires, last, now)
        on_time = [fire for fire in owed if fire >= now - MINUTE]
        expected = {"all": owed, "once": on_time or owed[-1:], "skip": on_time}[missed]
        assert list(answer.fires) == expected[-FIRES_MAX:]
        assert answer.next_fire is not None and answer.next_fire > now
        schedule, last = advance(schedule, answer), now
        taken.extend(answer.fires)
    assert taken == sorted(set(taken)), "one fired twice, or out of order"


def between(fires: list[int], after: int, until: int) -> list[int]:
    return fires[bisect_right(fires, after) : bisect_right(fires, until)]


@given(st.sampled_from(LISTED), st.sampled_from(POLICIES), st.integers(0, DAY))
def test_whoever_looks_second_finds_nothing(listed: tuple[Timing, list[int]], missed: Missed, wait: int) -> None:
    """Of two schedulers one wins the compare-and-set; the other reads what is left at the same moment."""
    schedule = hourly(missed, listed[0])
    left = advance(schedule, due(schedule, START + wait))
    assert due(left, START + wait) == Due((), left.next_fire)


def test_the_fires_to_come() -> None:
    """T2, T3: from the stored one on, also where it is overdue; of a function that is not here, only that one."""
    schedule = hourly("skip")
    assert upcoming(schedule, 3) == [START + hour * HOUR for hour in (1, 2, 3)]
    assert upcoming(schedule, 0) == []
    assert upcoming(structs.replace(schedule, next_fire=None), 3) == []
    tides = structs.replace(schedule, plan=Plan(timing=ByFunction("tides"), work=REPORT))
    assert upcoming(tides, 3) == [START + HOUR]
    once_more = {"tides": lambda after: after + HOUR if after < START + 2 * HOUR else None}
    assert upcoming(tides, 3, once_more) == [START + HOUR, START + 2 * HOUR]
