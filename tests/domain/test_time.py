"""Time at the edge: what people write becomes whole µs, and what nobody can mean is refused."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ropewalk.domain.jobs.retry import Backoff
from ropewalk.domain.time import (
    DAY,
    HOUR,
    INSTANT_MAX,
    INSTANT_MIN,
    MINUTE,
    SECOND,
    SPAN_MAX,
    to_datetime,
    to_delay,
    to_instant,
    to_seconds,
    to_span,
)
from ropewalk.errors import InvalidInput


class Zoneless(tzinfo):
    """A time zone that does not know its offset: what it stamps is as naive as without it."""

    def utcoffset(self, dt: datetime | None) -> None:
        return None

    def dst(self, dt: datetime | None) -> None:
        return None

    def tzname(self, dt: datetime | None) -> None:
        return None


def test_units() -> None:
    assert [to_seconds(unit) for unit in (SECOND, MINUTE, HOUR, DAY)] == [1, 60, 3600, 86_400]


@given(st.datetimes(datetime(2, 1, 1), datetime(9998, 1, 1), timezones=st.timezones()))  # noqa: DTZ001 -- bounds are naive by contract
def test_instants_round_trip(moment: datetime) -> None:
    # Compared in UTC: in the hour a zone repeats, equal wall clocks are not equal times.
    assert to_datetime(to_instant(moment, "at")) == moment.astimezone(UTC)


@given(st.integers(0, 250 * 365 * DAY))
def test_every_microsecond_is_a_moment_of_its_own(instant: int) -> None:
    """Also where a float of seconds stands between."""
    assert to_datetime(instant) == datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=instant)


def test_zones_name_the_same_instant() -> None:
    oslo = datetime(2030, 7, 1, 12, tzinfo=ZoneInfo("Europe/Oslo"))
    assert to_instant(oslo, "at") == to_instant(datetime(2030, 7, 1, 10, tzinfo=UTC), "at")
    assert to_instant(datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC), "at") == SECOND
    assert to_instant(datetime(1970, 1, 1, tzinfo=timezone(timedelta(hours=1))), "at") == -HOUR


@given(st.integers(0, SPAN_MAX))
def test_spans_round_trip(span: int) -> None:
    assert to_span(timedelta(microseconds=span), "delay") == span
    assert to_span(to_seconds(span), "delay") == span


@pytest.mark.parametrize(
    ("value", "span"),
    [
        (0, 0),
        (0.0, 0),
        (1.5, 1_500_000),
        (30, 30 * SECOND),
        (timedelta(days=1), DAY),
        (timedelta(days=36_525), SPAN_MAX),
        (36_525 * 86_400, SPAN_MAX),
    ],
)
def test_durations(value: Any, span: int) -> None:
    assert to_span(value, "delay") == span


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (-1, "negative"),
        (-1e-9, "negative"),
        (timedelta(microseconds=-1), "negative"),
        (float("nan"), "not a duration"),
        (float("inf"), "not a duration"),
        (float("-inf"), "not a duration"),
        (True, "not a duration"),
        ("5", "not a duration"),
        (None, "not a duration"),
        (36_525 * 86_400 + 1, "over 100 years"),
        (timedelta.max, "over 100 years"),
        (1e308, "over 100 years"),
        (10**400, "over 100 years"),
    ],
)
def test_what_is_no_duration(value: Any, told: str) -> None:
    with pytest.raises(InvalidInput, match=f"^delay=.*{told}") as refused:
        to_span(value, "delay")
    assert refused.value.field == "delay"


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (datetime(2030, 1, 1), "no time zone"),  # noqa: DTZ001 -- naive on purpose
        (datetime(2030, 1, 1, tzinfo=Zoneless()), "no time zone"),
        (date(2030, 1, 1), "not a datetime"),
        (1_893_456_000, "not a datetime"),
        ("2030-01-01T00:00:00Z", "not a datetime"),
    ],
)
def test_what_is_no_instant(value: Any, told: str) -> None:
    with pytest.raises(InvalidInput, match=f"^run_at=.*{told}") as refused:
        to_instant(value, "run_at")
    assert refused.value.field == "run_at"


@pytest.mark.parametrize(
    "beyond",
    [
        datetime.max.replace(tzinfo=ZoneInfo("America/New_York")),
        datetime.min.replace(tzinfo=ZoneInfo("Asia/Tokyo")),
        datetime.max.replace(tzinfo=timezone(timedelta(microseconds=-1))),
    ],
)
def test_what_no_datetime_in_utc_can_say_is_refused(beyond: datetime) -> None:
    with pytest.raises(InvalidInput, match=r"^deadline=.* is outside the years 1 to 9999 in UTC$") as refused:
        to_instant(beyond, "deadline")
    assert refused.value.field == "deadline"


@pytest.mark.parametrize("last", [datetime.max.replace(tzinfo=UTC), datetime.min.replace(tzinfo=UTC)])
def test_the_first_and_the_last_instant_can_be_given_back(last: datetime) -> None:
    instant = to_instant(last, "at")
    assert instant in (INSTANT_MIN, INSTANT_MAX)
    assert to_datetime(instant) == last


def test_a_span_that_is_given_in_microseconds_has_the_same_bound() -> None:
    """So a sum with the time of a clock is an instant that can be stored."""
    assert Backoff(initial_us=SPAN_MAX, max_us=SPAN_MAX).max_us == SPAN_MAX
    with pytest.raises(InvalidInput, match=r"^initial=\d+ must be between 0 and"):
        Backoff(initial_us=SPAN_MAX + 1)


@pytest.mark.parametrize("secret", [{"password": "hunter2"}, [{"token": "hunter2"}]])
def test_a_refused_time_shows_no_secret(secret: Any) -> None:
    for convert in (to_span, to_delay, to_instant):
        with pytest.raises(InvalidInput) as refused:
            convert(secret, "at")
        assert "[hidden]" in str(refused.value)
        assert "hunter2" not in str(refused.value)
