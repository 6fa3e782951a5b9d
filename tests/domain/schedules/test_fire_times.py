"""T2: next_after, by hand where a reader can check it, and against the oracle where nobody would."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo, available_timezones

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from ropewalk.domain.schedules.cron import parse_cron
from ropewalk.domain.schedules.fire_times import next_after, zone_of
from ropewalk.errors import InvalidInput
from tests.budget import BUDGET
from tests.domain.schedules.clocks import Spec, Watch, changes, changes_of
from tests.domain.schedules.cron_draws import specs
from tests.domain.schedules.cron_specs import SPECS, fires

MINUTE = timedelta(minutes=1)


def local(zone: str, since: str, expression: str, count: int) -> list[str]:
    """The next fires after a wall time, as the wall clock shows them, with the offset it has then."""
    after = datetime.fromisoformat(since).replace(tzinfo=ZoneInfo(zone))
    told: list[str] = []
    for _ in range(count):
        fire = next_after(expression, after, zone)
        assert fire is not None
        assert fire.tzinfo is UTC
        after = fire
        told.append(fire.astimezone(ZoneInfo(zone)).strftime("%d %H:%M%z"))
    return told


@pytest.mark.parametrize(
    ("zone", "since", "expression", "expected"),
    [
        # Oslo, 29 March 2026: 02:00 becomes 03:00.
        ("Europe/Oslo", "2026-03-28", "30 2 * * *", ["28 02:30+0100", "29 03:00+0200", "30 02:30+0200"]),
        ("Europe/Oslo", "2026-03-28T12:00", "0,30 2 * * *", ["29 03:00+0200", "30 02:00+0200", "30 02:30+0200"]),
        ("Europe/Oslo", "2026-03-28T12:00", "0 2,3 * * *", ["29 03:00+0200", "30 02:00+0200", "30 03:00+0200"]),
        ("Europe/Oslo", "2026-03-28T12:00", "0 30 2 * * *", ["29 03:00+0200", "30 02:30+0200"]),
        ("Europe/Oslo", "2026-03-29T00:30", "0 * * * *", ["29 01:00+0100", "29 03:00+0200", "29 04:00+0200"]),
        ("Europe/Oslo", "2026-03-29T01:40", "*/15 * * * *", ["29 01:45+0100", "29 03:00+0200", "29 03:15+0200"]),
        ("Europe/Oslo", "2026-03-28T12:00", "*/30 2 * * *", ["30 02:00+0200", "30 02:30+0200"]),
        # Oslo, 25 October 2026: 03:00 becomes 02:00.
        ("Europe/Oslo", "2026-10-24T12:00", "30 2 * * *", ["25 02:30+0200", "26 02:30+0100"]),
        ("Europe/Oslo", "2026-10-25T01:30", "0 * * * *", ["25 02:00+0200", "25 02:00+0100", "25 03:00+0100"]),
        ("Europe/Oslo", "2026-10-25T02:40", "*/30 2 * * *", ["25 02:00+0100", "25 02:30+0100", "26 02:00+0100"]),
        ("Europe/Oslo", "2026-10-25T02:40", "* 2 * * *", [f"25 02:{minute}+0200" for minute in (41, 42, 43)]),
        # Lord Howe: half an hour. Cairo: midnight itself is skipped.
        ("Australia/Lord_Howe", "2026-10-04", "15 2 * * *", ["04 02:30+1100", "05 02:15+1100"]),
        ("Australia/Lord_Howe", "2026-04-05", "45 1 * * *", ["05 01:45+1100", "06 01:45+1030"]),
        ("Africa/Cairo", "2026-04-23T12:00", "@daily", ["24 01:00+0300", "25 00:00+0300"]),
        # Samoa had no 30 December 2011, Kwajalein no 21 August 1993.
        ("Pacific/Apia", "2011-12-29", "0 12 * * *", ["29 12:00-1000", "31 00:00+1400", "31 12:00+1400"]),
        ("Pacific/Apia", "2011-12-29", "0 0 30 12 *", ["31 00:00+1400", "30 00:00+1400"]),
        ("Pacific/Apia", "2011-12-29T12:00", "0 */6 * * *", ["29 18:00-1000", "31 00:00+1400", "31 06:00+1400"]),
        ("Pacific/Kwajalein", "1993-08-20", "0 12 * * *", ["20 12:00-1200", "22 00:00+1200", "22 12:00+1200"]),
        # Offsets that are no whole minutes: Monrovia, 44 min 30 s until 7 January 1972.
        ("Africa/Monrovia", "1972-01-06", "0 12 * * *", ["06 12:00-004430", "07 12:00+0000"]),
        ("Africa/Monrovia", "1972-01-06T12:00", "30 0 * * *", ["07 00:44+0000", "08 00:30+0000"]),
    ],
)
def test_changes_of_the_clock_by_hand(zone: str, since: str, expression: str, expected: list[str]) -> None:
    assert local(zone, since, expression, len(expected)) == expected


def test_asked_while_the_clock_repeats_itself_a_fixed_time_does_not_come_again() -> None:
    second_time = datetime(2026, 10, 25, 1, 15, tzinfo=UTC)
    assert second_time.astimezone(ZoneInfo("Europe/Oslo")).strftime("%H:%M %Z") == "02:15 CET"
    assert next_after("30 2 * * *", second_time, "Europe/Oslo") == datetime(2026, 10, 26, 1, 30, tzinfo=UTC)
    assert next_after("0 3 * * *", second_time, "Europe/Oslo") == datetime(2026, 10, 25, 2, 0, tzinfo=UTC)
    assert next_after("*/30 2 * * *", second_time, "Europe/Oslo") == datetime(2026, 10, 25, 1, 30, tzinfo=UTC)


@pytest.mark.parametrize("spec", SPECS, ids=str)
@pytest.mark.parametrize(
    ("zone", "year"),
    [
        ("Pacific/Apia", 2011),
        ("Pacific/Kwajalein", 1993),
        ("Pacific/Kwajalein", 1969),
        ("Pacific/Kiritimati", 1994),
        ("Antarctica/Davis", 1969),
        ("Antarctica/Vostok", 1994),
        ("Asia/Kathmandu", 1985),
        ("Asia/Pyongyang", 2018),
        ("America/Caracas", 2007),
        ("America/Caracas", 2016),
        ("Pacific/Chatham", 2045),
    ],
)
def test_rare_changes(zone: str, year: int, spec: Spec) -> None:
    """Days that were left out or repeated, quarters of an hour; and a year behind the tables, where rules go on."""
    where = ZoneInfo(zone)
    found = list(changes_of(where, datetime(year, 1, 1, tzinfo=UTC), datetime(year + 1, 1, 2, tzinfo=UTC)))
    assert found
    for change in found:
        watch = Watch(where, change - timedelta(hours=50), change + timedelta(hours=50))
        assert fires(spec.text, watch) == watch.fires(spec)


@pytest.mark.parametrize(("zone", "year"), [("Africa/Monrovia", 1972), ("Europe/Dublin", 1916)])
def test_offsets_of_odd_seconds(zone: str, year: int) -> None:
    where = ZoneInfo(zone)
    for change in changes_of(where, datetime(year, 1, 1, tzinfo=UTC), datetime(year + 1, 1, 1, tzinfo=UTC)):
        watch = Watch(where, change - timedelta(hours=5), change + timedelta(hours=5), step=timedelta(seconds=1))
        for spec in SPECS:
            assert fires(spec.text, watch) == watch.fires(spec), str(spec)


zones = st.sampled_from(sorted(available_timezones() - {"localtime"})).map(ZoneInfo)  # `zone_of` refuses that name
# From 1973 on every offset is of whole minutes.
ordinary = st.tuples(
    zones,
    st.datetimes(datetime(1973, 1, 1), datetime(2200, 1, 1), timezones=st.just(UTC)),  # noqa: DTZ001 -- bounds are naive by contract
)
near_changes = st.deferred(
    lambda: st.tuples(st.sampled_from(changes(2026)), st.timedeltas(timedelta(hours=-4), timedelta(hours=4))).map(
        lambda drawn: (drawn[0][0], drawn[0][1] + drawn[1])
    )
)
places = ordinary | near_changes


@settings(max_examples=300 * BUDGET)
@given(specs(), places)
def test_random_expressions(spec: Spec, place: tuple[ZoneInfo, datetime]) -> None:
    check(spec, place, before=timedelta(hours=5), behind=timedelta(hours=12), step=MINUTE)


@given(specs(with_seconds=True), places)
def test_random_expressions_with_seconds(spec: Spec, place: tuple[ZoneInfo, datetime]) -> None:
    check(spec, place, before=timedelta(minutes=35), behind=timedelta(minutes=35), step=timedelta(seconds=1))


def check(spec: Spec, place: tuple[ZoneInfo, datetime], before: timedelta, behind: timedelta, step: timedelta) -> None:
    zone, after = place
    start = (after - before).replace(second=0, microsecond=0)
    assume(can_come(spec))
    assume(start.astimezone(zone).fold == 0)  # the oracle must have seen the clock being put back
    watch = Watch(zone, start, after + behind, step)
    expected = watch.fires(spec)
    assert fires(spec.text, watch) == expected
    answer = next_after(spec.text, after, zone.key)
    later = [fire for fire in expected if fire > after]
    assert answer == later[0] if later else answer is None or answer > watch.end


@given(specs(), st.dates(date(1980, 1, 1), date(2100, 1, 1)))
def test_days_far_away(spec: Spec, since: date) -> None:
    """Without zones, day by day: leap years, ends of months, weekdays that come fifth."""
    assume(can_come(spec))
    after = datetime(since.year, since.month, since.day, tzinfo=UTC) - timedelta(microseconds=1)
    days = (datetime(since.year, since.month, since.day, tzinfo=UTC) + timedelta(days=n) for n in range(42 * 366))
    day = next(day for day in days if spec.fits_day(day))
    first = timedelta(hours=min(spec.hours), minutes=min(spec.minutes))
    assert next_after(spec.text, after) == day + first


@given(specs(), places)
def test_fires_go_on_and_on_in_order(spec: Spec, place: tuple[ZoneInfo, datetime]) -> None:
    zone, after = place
    assume(can_come(spec))
    cron = parse_cron(spec.text)
    for _ in range(30):
        fire = next_after(cron, after, zone.key)
        assert fire is not None
        assert fire > after
        # Between the two there is nothing: asked from just before, the answer is the same.
        assert next_after(cron, fire - timedelta(microseconds=1), zone.key) == fire
        after = fire


def can_come(spec: Spec) -> bool:
    try:
        parse_cron(spec.text)
    except InvalidInput as error:
        assert "never comes" in str(error)
        assert not any(spec.fits_day(datetime(2000, 1, 1) + timedelta(days=n)) for n in range(40 * 366))  # noqa: DTZ001 -- a calendar has no zone
        return False
    return True


@pytest.mark.parametrize("expression", ["0 0 30 2 *", "0 0 31 4,6,9,NOV *", "0 0 */20 * 1L"])
def test_a_date_that_never_comes(expression: str) -> None:
    """T2: a question about it has an answer; as the timing of a schedule it is refused."""
    assert next_after(expression, datetime(2026, 1, 1, tzinfo=UTC), "Europe/Oslo") is None
    with pytest.raises(InvalidInput, match="never comes"):
        parse_cron(expression)


def test_the_rest_is_checked_also_where_the_date_never_comes() -> None:
    with pytest.raises(InvalidInput, match="timezone"):
        next_after("0 0 30 2 *", datetime(2026, 1, 1, tzinfo=UTC), "Europe/Nowhere")
    with pytest.raises(InvalidInput, match="after"):
        next_after("0 0 30 2 *", datetime(2026, 1, 1))  # noqa: DTZ001 -- naive on purpose


def test_leap_years_and_far_away() -> None:
    after = datetime(2096, 3, 1, tzinfo=UTC)
    assert next_after("0 0 29 2 *", after) == datetime(2104, 2, 29, tzinfo=UTC)  # 2100 is no leap year
    assert next_after("0 0 * 2 MON#5", datetime(2073, 1, 1, tzinfo=UTC)) == datetime(2112, 2, 29, tzinfo=UTC)


@pytest.mark.parametrize("zone", ["UTC", "Pacific/Kiritimati", "Pacific/Pago_Pago"])
@pytest.mark.parametrize("expression", ["* * * * *", "0 0 1 1 *", "59 59 23 31 12 *"])
def test_the_end_of_the_calendar(zone: str, expression: str) -> None:
    last = datetime(9996, 12, 25, tzinfo=UTC)
    fire: datetime | None = last
    while fire is not None:
        last, fire = fire, next_after(expression, fire + timedelta(days=40), zone)
    assert last.year >= 9997
    assert next_after(expression, datetime.max.replace(tzinfo=UTC), zone) is None


def test_the_beginning_of_the_calendar() -> None:
    assert next_after("0 0 * * *", datetime(2, 1, 1, tzinfo=UTC), "America/New_York")
    with pytest.raises(InvalidInput, match="before the year 2") as refused:
        next_after("0 0 * * *", datetime.min.replace(tzinfo=UTC), "America/New_York")
    assert refused.value.field == "after"


def test_fractions_of_a_second() -> None:
    noon = datetime(2026, 6, 1, 12, tzinfo=UTC)
    tick = timedelta(microseconds=1)
    assert next_after("0 12 * * *", noon - tick) == noon
    assert next_after("0 12 * * *", noon) == next_after("0 12 * * *", noon + tick) == noon + timedelta(days=1)
    assert next_after("* * * * * *", noon) == next_after("* * * * * *", noon + tick) == noon + timedelta(seconds=1)
    early = datetime(1969, 12, 31, 23, 59, 59, 500_000, tzinfo=UTC)
    assert next_after("* * * * * *", early) == datetime(1970, 1, 1, tzinfo=UTC)


def test_after_is_the_same_instant_in_any_zone() -> None:
    after = datetime(2026, 10, 25, 1, 15, tzinfo=UTC)
    answers = {
        next_after("*/10 * * * *", after.astimezone(ZoneInfo(zone)), "Europe/Oslo") for zone in ("UTC", "Asia/Tokyo")
    }
    assert answers == {datetime(2026, 10, 25, 1, 20, tzinfo=UTC)}
    # In the zone itself, too, and there the second 02:15 is told from the first.
    assert next_after("30 2 * * *", after.astimezone(ZoneInfo("Europe/Oslo")), "Europe/Oslo") == datetime(
        2026, 10, 26, 1, 30, tzinfo=UTC
    )


@pytest.mark.parametrize(
    "zone",
    ["Europe/Olso", "", "Europe", "../Europe/Oslo", "localtime", "right/UTC", "posix/UTC", "x" * 300, "a\0b", 7, None],
)
def test_what_is_no_zone(zone: Any) -> None:
    with pytest.raises(InvalidInput, match=r"^timezone=.*not in the tz database: give a name like") as refused:
        next_after("@daily", datetime(2026, 1, 1, tzinfo=UTC), zone)
    assert refused.value.field == "timezone"


def test_utc_needs_no_tz_database() -> None:
    assert zone_of("UTC") is UTC


def test_a_naive_time_is_refused() -> None:
    with pytest.raises(InvalidInput, match="no time zone") as refused:
        next_after("@daily", datetime(2026, 1, 1))  # noqa: DTZ001 -- naive on purpose
    assert refused.value.field == "after"
