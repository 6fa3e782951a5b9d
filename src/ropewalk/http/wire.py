"""The words that many shapes share: instants, durations, priorities, and enumerations in upper case.

They are declared so that the OpenAPI document says exactly what is accepted: a duration is text with a pattern or a
number, and a whole number may be written as 8 or as 8.0, because both are integers to JSON Schema.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Final, TypeAlias

from msgspec import Meta

from ropewalk.domain.failure import Category
from ropewalk.domain.jobs.states import State
from ropewalk.domain.time import DAY, HOUR, MINUTE, SECOND, SPAN_MAX, Instant, Span, to_datetime
from ropewalk.http.errors import DetailCode, invalid

Timestamp: TypeAlias = Annotated[datetime, Meta(tz=True, description="ISO 8601 with an offset")]

_DAYS: Final = r"(?:([0-9]{1,4}|[12][0-9]{4}|3[0-4][0-9]{3})D)?"
_CLOCK: Final = r"(?:([0-9]{1,4})H)?(?:([0-9]{1,6})M)?(?:([0-9]{1,7}(?:\.[0-9]{1,6})?)S)?"
"""With these numbers of digits, no text that matches means more than the hundred years that a span may have."""
_ISO: Final = rf"^P(?=[0-9]|T[0-9]){_DAYS}(?:T(?=[0-9]){_CLOCK})?$"
_ISO_ABOVE_ZERO: Final = _ISO.replace("^P", "^P(?=.*[1-9])", 1)
_SECONDS_MAX: Final = SPAN_MAX // SECOND
_IN_WORDS: Final = "ISO 8601 in days, hours, minutes and seconds"
Duration: TypeAlias = (
    Annotated[str, Meta(pattern=_ISO, description=_IN_WORDS, examples=["PT5M"])]
    | Annotated[int, Meta(ge=0, le=_SECONDS_MAX, description="seconds")]
    | Annotated[float, Meta(ge=0, le=_SECONDS_MAX, description="seconds")]
)
DurationAboveZero: TypeAlias = (
    Annotated[str, Meta(pattern=_ISO_ABOVE_ZERO, description=_IN_WORDS, examples=["PT5M"])]
    | Annotated[int, Meta(ge=1, le=_SECONDS_MAX, description="seconds")]
    | Annotated[float, Meta(ge=0.000_001, le=_SECONDS_MAX, description="seconds")]
)
_DURATION: Final = re.compile(_ISO)

Name: TypeAlias = Annotated[str, Meta(min_length=1, max_length=256, pattern=r"^[^\u0000]*$")]
"""An id, a type, a queue, a key: something that is stored as a name."""
LimitKey: TypeAlias = Annotated[str, Meta(min_length=1, max_length=256, pattern=r"^[^\u0000]*[^*\u0000]$")]
"""The key of a limit. One that ends in an asterisk would name a family of keys."""
Tags: TypeAlias = Annotated[
    Mapping[
        Annotated[str, Meta(max_length=256, pattern=r"^[^\u0000]*$")],
        Annotated[str, Meta(max_length=256, pattern=r"^[^\u0000]*$")],
    ],
    Meta(max_length=32),
]
Cursor: TypeAlias = Annotated[str, Meta(min_length=1, pattern=r"^[A-Za-z0-9_-]+$")]
"""What an answer gave as `next_cursor`."""
Ids: TypeAlias = Annotated[list[Name], Meta(max_length=1000)]
Json: TypeAlias = Any
"""Any JSON value, as the library writes it: what JSON lacks is tagged, such as {"$rw": "bytes", "v": "aGk="}."""


class JobState(StrEnum):
    PENDING = "PENDING"
    DELAYED = "DELAYED"
    RETRYING = "RETRYING"
    SCHEDULED = "SCHEDULED"
    RUNNING = "RUNNING"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    DEAD_LETTER = "DEAD_LETTER"
    CANCELLED = "CANCELLED"

    @classmethod
    def of(cls, state: State) -> JobState:
        return cls(state.value.upper())

    @property
    def state(self) -> State:
        return State(self.value.lower())


class ErrorCategory(StrEnum):
    TEMPORARY = "TEMPORARY"
    PERMANENT = "PERMANENT"
    TIMEOUT = "TIMEOUT"
    SYSTEM = "SYSTEM"
    CANCELLED = "CANCELLED"
    RATE_LIMITED = "RATE_LIMITED"
    WORKER_LOST = "WORKER_LOST"
    EXPIRED = "EXPIRED"

    @classmethod
    def of(cls, category: Category) -> ErrorCategory:
        return cls(category.value.upper())

    @property
    def category(self) -> Category:
        return Category(self.value.lower())


class PriorityName(StrEnum):
    CRITICAL = "CRITICAL"
    HIGH = "HIGH"
    NORMAL = "NORMAL"
    LOW = "LOW"
    BULK = "BULK"


_PRIORITIES: Final = {
    PriorityName.CRITICAL: 200,
    PriorityName.HIGH: 100,
    PriorityName.NORMAL: 0,
    PriorityName.LOW: -100,
    PriorityName.BULK: -200,
}
_PRIORITY_NAMES: Final = {number: name for name, number in _PRIORITIES.items()}

Priority: TypeAlias = (
    PriorityName | Annotated[int, Meta(ge=-1000, le=1000)] | Annotated[float, Meta(ge=-1000, le=1000, multiple_of=1)]
)
ShownPriority: TypeAlias = PriorityName | int
Whole: TypeAlias = Annotated[int, Meta(ge=0, le=2**31 - 1)] | Annotated[float, Meta(ge=0, le=2**31 - 1, multiple_of=1)]
Attempts: TypeAlias = Annotated[int, Meta(ge=1, le=100)] | Annotated[float, Meta(ge=1, le=100, multiple_of=1)]


def priority_number(value: PriorityName | float) -> int:
    return _PRIORITIES[value] if isinstance(value, PriorityName) else int(value)


def shown_priority(number: int) -> ShownPriority:
    """The name of a priority that has one, else its number."""
    return _PRIORITY_NAMES.get(number, number)


def timestamp(instant: Instant) -> datetime:
    return to_datetime(instant)


def timestamp_or_none(instant: Instant | None) -> datetime | None:
    return None if instant is None else to_datetime(instant)


def seconds(value: str | float, field: str) -> float:
    """A duration as seconds, which is what the library takes."""
    if not isinstance(value, str):
        return value
    parts = _DURATION.match(value)
    if parts is None:
        told = f"{field}={value[:40]!r} is not a duration like 'PT5M' or 300"
        raise invalid(told, field=field, code=DetailCode.WRONG_TYPE)
    days, hours, minutes, rest = (float(part or 0) for part in parts.groups())
    return days * 86_400 + hours * 3_600 + minutes * 60 + rest


def iso_duration(span: Span) -> str:
    """A span in ISO 8601, with the largest units first: P1DT2H, PT0.25S, PT0S."""
    days, rest = divmod(span, DAY)
    hours, rest = divmod(rest, HOUR)
    minutes, rest = divmod(rest, MINUTE)
    whole, micros = divmod(rest, SECOND)
    fraction = f".{micros:06d}".rstrip("0") if micros else ""
    clock = f"{hours}H" * (hours > 0) + f"{minutes}M" * (minutes > 0) + f"{whole}{fraction}S" * (rest > 0)
    if not days and not clock:
        return "PT0S"
    return "P" + f"{days}D" * (days > 0) + ("T" + clock if clock else "")
