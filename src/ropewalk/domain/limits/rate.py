"""Rates: at most so many starts in a span of time (the window), counted by one of three algorithms.

    sliding   never more than `count` starts in any window, wherever it begins; remembers every start of one window
    fixed     `count` starts in each of the windows that follow one another since 1970; around a boundary between two
              windows up to twice as many
    token     a bucket of `count` tokens that fills evenly; after a rest up to twice as many starts within a window

All numbers are whole, so the results are exact. These functions know neither what starts nor where a state is stored.
None is the state of a rate that has never been used.
"""

from __future__ import annotations

from typing import Final, Literal, TypeAlias, get_args

from msgspec import Struct, structs

from ropewalk.domain import checks
from ropewalk.domain.time import SECOND, Instant, Seconds, Span, to_span
from ropewalk.errors import InvalidInput

Algorithm: TypeAlias = Literal["sliding", "fixed", "token"]

ALGORITHMS: Final[tuple[Algorithm, ...]] = get_args(Algorithm)
SLIDING_COUNT_MAX: Final = 1000
"""A sliding window stores every start within it, so its count has a bound."""
RATE_EXAMPLE: Final = "Rate(100, per=60)"
"""Error messages show this example."""


class Rate(Struct, frozen=True):
    """A rate: `Rate(100, per=60)` allows at most 100 starts in any 60 seconds. `per` may be a timedelta, too."""

    count: int
    per: Seconds
    algorithm: Algorithm = "sliding"

    def __post_init__(self) -> None:
        checks.positive(self.count, "count")
        checks.choice(self.algorithm, "algorithm", ALGORITHMS)
        if self.algorithm == "sliding" and self.count > SLIDING_COUNT_MAX:
            raise InvalidInput(
                f"count={self.count} is over {SLIDING_COUNT_MAX}, as a sliding window remembers every start: "
                "name a shorter span, or algorithm='token' or 'fixed'",
                field="count",
            )
        window_us = checks.positive_span(self.per, "per")
        structs.force_setattr(self, "per", window_us / SECOND)  # a timedelta and its seconds are the same rate

    @property
    def window_us(self) -> Span:
        return to_span(self.per, "per")

    def goes_on_as(self, other: Rate | None) -> bool:
        """Whether another rate that replaces this one can go on with its state."""
        return other is not None and (self.per, self.algorithm) == (other.per, other.algorithm)


class RateState(Struct, frozen=True, array_like=True):
    """How much of a rate has been used."""

    at: Instant
    """The state is as of this instant."""
    used: int
    """With the algorithm `fixed` this is the number of starts in the window of `at`. With `token` it is what is missing
    in the bucket, in tokens times the window."""
    log: tuple[tuple[Instant, int], ...] = ()
    """With the algorithm `sliding` these are the instants of the starts and how many there were, oldest first."""


class RateGrant(Struct, frozen=True):
    """The answer of a rate to somebody who wants to start jobs."""

    granted: int
    """This many jobs may start now."""
    state: RateState
    """The state of the rate after these starts."""
    next_at: Instant | None
    """At this instant there is room for one more start; None if there is room already."""


def take(rate: Rate, state: RateState | None, now: Instant, wanted: int) -> RateGrant:
    """Takes up to `wanted` starts.

    Of two callers the later one may have read the clock first, so a time shortly before the last use counts as the time
    of that use. If `now` is more than a window before it, the clock has been set back, and the state begins anew.
    """
    if state is not None and state.at - now > rate.window_us:
        state = None
    at = now if state is None else max(now, state.at)
    match rate.algorithm:
        case "sliding":
            return _take_sliding(rate, state, at, wanted)
        case "fixed":
            return _take_fixed(rate, state, at, wanted)
        case "token":
            return _take_tokens(rate, state, at, wanted)


def used(rate: Rate, state: RateState | None, now: Instant) -> int:
    """Returns how many starts of the rate are used up."""
    return rate.count - take(rate, state, now, rate.count).granted


def room_at(rate: Rate, state: RateState | None, now: Instant, wanted: int) -> Instant:
    """Returns the instant at which `wanted` jobs (at most `count`) can start together, if nobody else uses the rate
    meanwhile."""
    if take(rate, state, now, wanted).granted == wanted:
        return now
    seen = take(rate, state, now, 0).state
    match rate.algorithm:
        case "sliding":
            return _room_in(rate, seen.log, wanted)
        case "fixed":
            return _window_of(rate, seen.at) + rate.window_us
        case "token":
            return seen.at + _refilled_us(rate, seen.used, wanted)


def idle_at(rate: Rate, state: RateState) -> Instant:
    """Returns the instant from which on this state means the same as no state."""
    match rate.algorithm:
        case "sliding":
            return state.log[-1][0] + rate.window_us if state.log else state.at
        case "fixed":
            return _window_of(rate, state.at) + rate.window_us
        case "token":
            return state.at + -(-state.used // rate.count)


def _take_sliding(rate: Rate, state: RateState | None, at: Instant, wanted: int) -> RateGrant:
    log = () if state is None else tuple(each for each in state.log if each[0] > at - rate.window_us)
    used = sum(number for _, number in log)
    granted = max(0, min(wanted, rate.count - used))
    if granted:
        log = (*log, (at, granted))
    full = used + granted >= rate.count
    return RateGrant(granted, RateState(at, 0, log), _room_in(rate, log) if full else None)


def _room_in(rate: Rate, log: tuple[tuple[Instant, int], ...], wanted: int = 1) -> Instant:
    """Returns the instant at which enough of the oldest starts have left the window. If `count` was lowered, the window
    contains more starts than that."""
    over = sum(number for _, number in log) + wanted - rate.count
    for when, number in log:
        over -= number
        if over <= 0:
            return when + rate.window_us
    raise AssertionError("a full window holds a start")


def _take_fixed(rate: Rate, state: RateState | None, at: Instant, wanted: int) -> RateGrant:
    window = _window_of(rate, at)
    used = state.used if state is not None and _window_of(rate, state.at) == window else 0
    granted = max(0, min(wanted, rate.count - used))
    full = used + granted >= rate.count
    return RateGrant(granted, RateState(at, used + granted), window + rate.window_us if full else None)


def _window_of(rate: Rate, at: Instant) -> Instant:
    return at - at % rate.window_us


def _take_tokens(rate: Rate, state: RateState | None, at: Instant, wanted: int) -> RateGrant:
    """Takes tokens out of the bucket. A token consists of as many units as the window has µs, so `count` tokens in each
    window are `count` units in each µs."""
    token = rate.window_us
    missing = 0 if state is None else max(0, state.used - (at - state.at) * rate.count)
    granted = max(0, min(wanted, (rate.count * token - missing) // token))
    missing += granted * token
    wait_us = _refilled_us(rate, missing, 1)
    return RateGrant(granted, RateState(at, missing), at + wait_us if wait_us > 0 else None)


def _refilled_us(rate: Rate, missing: int, wanted: int) -> Span:
    """Returns how long it takes until the bucket contains `wanted` tokens; 0 or less if it contains them already."""
    return -(-(missing - (rate.count - wanted) * rate.window_us) // rate.count)
