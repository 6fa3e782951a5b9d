"""Time as whole microseconds, so that every store agrees to the last digit.

An instant is a number of µs since 1970 in UTC, and a span is a number of µs. People write seconds, timedeltas and
datetimes; only this module converts them.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from typing import Annotated, Final, TypeAlias

from msgspec import Meta

from ropewalk.domain.shown_values import shown
from ropewalk.errors import InvalidInput

Instant: TypeAlias = int
Span: TypeAlias = int
Seconds: TypeAlias = float | timedelta

INSTANT_MIN: Final = -62_135_596_800_000_000
INSTANT_MAX: Final = 253_402_300_799_999_999
"""The last microsecond that a datetime in UTC can express; INSTANT_MIN is the first. Every stored instant lies between
them."""
SMALL_MAX: Final = (1 << 31) - 1
"""The largest number that fits into a column of four bytes."""
StoredInstant: TypeAlias = Annotated[Instant, Meta(ge=INSTANT_MIN, le=INSTANT_MAX)]
StoredSpan: TypeAlias = Annotated[Span, Meta(ge=0)]
StoredCount: TypeAlias = Annotated[int, Meta(ge=0)]
StoredSmall: TypeAlias = Annotated[int, Meta(ge=0, le=SMALL_MAX)]
StoredPriority: TypeAlias = Annotated[int, Meta(ge=-SMALL_MAX - 1, le=SMALL_MAX)]
"""Stored numbers must lie in the ranges of these types. Decoding refuses anything else (backends/sql/damage.py)."""

SECOND: Span = 1_000_000
MINUTE: Span = 60 * SECOND
HOUR: Span = 60 * MINUTE
DAY: Span = 24 * HOUR
SPAN_MAX: Span = 36_525 * DAY
"""No span is longer than this. Therefore the sum of a present time and a span is never after INSTANT_MAX, and fits into
the 53 bits by which some stores sort."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_EXACT_BELOW: Instant = 200 * 365 * DAY
"""Below this instant a float of seconds still distinguishes one microsecond from the next."""


def to_span(value: Seconds, field: str) -> Span:
    """Converts seconds or a timedelta into a span. Raises InvalidInput if the value is negative, longer than a hundred
    years, or not a number."""
    if isinstance(value, timedelta):
        span: float = value // _MICROSECOND
    elif isinstance(value, bool) or not isinstance(value, int | float) or not -math.inf < value < math.inf:
        raise InvalidInput(f"{field}={shown(value)} is not a duration: give seconds or a timedelta", field=field)
    else:
        span = value * SECOND
    if span < 0:
        raise InvalidInput(f"{field}={shown(value)} is negative: give 0 or more seconds", field=field)
    if span > SPAN_MAX:
        raise InvalidInput(f"{field}={shown(value)} is over 100 years: leave it out if it means for ever", field=field)
    return round(span)


def to_delay(value: Seconds, field: str) -> Span:
    """Converts a wait into a span. A negative wait is over already, so it becomes 0."""
    if isinstance(value, timedelta):
        value = max(value, timedelta())
    elif isinstance(value, int | float) and -math.inf < value < 0:
        value = 0
    return to_span(value, field)


def to_instant(value: datetime, field: str) -> Instant:
    """Converts an aware datetime into an instant.

    Raises InvalidInput for a naive datetime, because nobody knows which zone it means, and for one that lies outside
    the years 1 to 9999 in UTC, such as `datetime.max` west of Greenwich, because it could not be converted back.
    """
    if not isinstance(value, datetime):
        raise InvalidInput(f"{field}={shown(value)} is not a datetime", field=field)
    if value.utcoffset() is None:
        raise InvalidInput(
            f"{field}={shown(value)} has no time zone: use datetime.now(UTC) or .replace(tzinfo=...)", field=field
        )
    instant = (value - _EPOCH) // _MICROSECOND
    if not INSTANT_MIN <= instant <= INSTANT_MAX:
        raise InvalidInput(f"{field}={shown(value)} is outside the years 1 to 9999 in UTC", field=field)
    return instant


def to_datetime(instant: Instant) -> datetime:
    if 0 <= instant < _EXACT_BELOW:  # This takes less than half the time of the other way.
        return datetime.fromtimestamp(instant / SECOND, UTC)
    return _EPOCH + timedelta(microseconds=instant)


def to_seconds(span: Span) -> float:
    return span / SECOND
