"""By which times a schedule fires: a cron expression, an interval, or a function that somebody registered."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final, TypeAlias

from msgspec import Struct

from ropewalk.domain.schedules.cron import parse_cron
from ropewalk.domain.schedules.fire_times import fire_after
from ropewalk.domain.schedules.zone import zone_of
from ropewalk.domain.time import SECOND, Instant, Span
from ropewalk.errors import InvalidInput

Following: TypeAlias = Callable[[Instant], Instant | None]
"""the fire that follows an instant; None: there is none, the schedule has ended"""
Functions: TypeAlias = Mapping[str, Following]
"""what this process has registered, by name"""

NO_FUNCTIONS: Final[Functions] = {}
INTERVAL_US_MIN: Final[Span] = SECOND // 10


class ByCron(Struct, frozen=True, tag="cron"):
    expression: str
    timezone: str = "UTC"


class Every(Struct, frozen=True, tag="every"):
    """At anchor, anchor + interval, anchor + 2 × interval …: however late one fires, the next is where it was."""

    interval_us: Span
    anchor: Instant | None = None
    """None: the moment the schedule is stored"""


class ByFunction(Struct, frozen=True, tag="next"):
    """At the times a registered function tells, one after the other. Only a process that has it can go on."""

    function: str


Timing: TypeAlias = ByCron | Every | ByFunction


def following(timing: Timing, functions: Functions) -> Following | None:
    """How to come from one fire to the next; None where only another process knows."""
    match timing:
        case ByCron(expression=expression, timezone=timezone):
            cron, zone = parse_cron(expression), zone_of(timezone)
            return lambda after: fire_after(cron, after, zone)
        case Every(interval_us=interval, anchor=anchor):
            assert anchor is not None, "a stored interval has its anchor"
            return partial(every_after, anchor, interval)
        case ByFunction(function=name):
            function = functions.get(name)
            return None if function is None else partial(_asked, name, function)


def every_after(anchor: Instant, interval_us: Span, after: Instant) -> Instant:
    """The smallest anchor + k × interval after `after`, k from 0 up."""
    if after < anchor:
        return anchor
    return anchor + ((after - anchor) // interval_us + 1) * interval_us


def settled(timing: Timing, stored: Timing | None, now: Instant) -> Timing:
    """As it is to be stored: checked, and an interval with its anchor, which it keeps while it stays the same."""
    match timing:
        case ByCron(expression=expression, timezone=timezone):
            parse_cron(expression)
            zone_of(timezone)
            return timing
        case Every(interval_us=interval, anchor=anchor):
            if interval < INTERVAL_US_MIN:
                least = f"{INTERVAL_US_MIN / SECOND} s"
                raise InvalidInput(f"every={interval / SECOND} is too short: give at least {least}", field="every")
            if isinstance(stored, Every) and stored.interval_us == interval and anchor is None:
                return stored
            return Every(interval, now if anchor is None else anchor)
        case ByFunction():
            return timing


def _asked(name: str, function: Following, after: Instant) -> Instant | None:
    answer = function(after)
    if answer is not None and answer <= after:
        raise InvalidInput(f"next={name!r} told {answer} when asked for a time after {after}", field="next")
    return answer
