"""Backoff: how long a job waits before its next attempt, and whether there is one."""

from __future__ import annotations

import math
from typing import Literal, TypeAlias, get_args

from msgspec import UNSET, Struct, UnsetType, structs

from ropewalk.domain import checks
from ropewalk.domain.time import HOUR, SECOND, Seconds, Span, to_span

Strategy: TypeAlias = Literal["constant", "linear", "exponential", "custom"]


class Backoff(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How long a job waits before its next attempt.

    A field that is not set is taken from the next level of: job, computed options, type, app, built-in.
    """

    strategy: Strategy | UnsetType = UNSET
    initial_us: Span | UnsetType = UNSET
    """The wait after the first attempt."""
    max_us: Span | UnsetType = UNSET
    """No wait is longer than this."""
    multiplier: float | UnsetType = UNSET
    """With the strategy "exponential" each wait is this many times as long as the one before."""
    jitter: float | UnsetType = UNSET
    """This part of the wait is random: 0 makes it exact, 1 makes it anything from nothing to the whole wait."""

    @classmethod
    def constant(cls, delay: Seconds, *, jitter: float = 0.0) -> Backoff:
        """A backoff with the same wait after every failure."""
        span = to_span(delay, "delay")
        return cls(strategy="constant", initial_us=span, max_us=span, jitter=jitter)

    @classmethod
    def linear(cls, initial: Seconds = 1.0, *, max: Seconds = 3600.0, jitter: float = 0.5) -> Backoff:  # noqa: A002
        """A backoff that waits initial, 2 × initial, 3 × initial, … up to max."""
        return cls(strategy="linear", initial_us=to_span(initial, "initial"), max_us=to_span(max, "max"), jitter=jitter)

    @classmethod
    def exponential(
        cls,
        initial: Seconds = 1.0,
        *,
        multiplier: float = 2.0,
        max: Seconds = 3600.0,  # noqa: A002
        jitter: float = 0.5,
    ) -> Backoff:
        """A backoff that waits initial, initial × multiplier, initial × multiplier², … up to max."""
        return cls(
            strategy="exponential",
            initial_us=to_span(initial, "initial"),
            max_us=to_span(max, "max"),
            multiplier=multiplier,
            jitter=jitter,
        )

    def __post_init__(self) -> None:
        if self.strategy is not UNSET:
            checks.choice(self.strategy, "strategy", get_args(Strategy))
        for field, span_us in (("initial", self.initial_us), ("max", self.max_us)):
            if span_us is not UNSET:
                checks.span_us_or_none(span_us, field)
        if self.multiplier is not UNSET:
            checks.number(self.multiplier, "multiplier", 1)
        if self.jitter is not UNSET:
            checks.number(self.jitter, "jitter", 0, 1)


class ResolvedBackoff(Struct, frozen=True, kw_only=True):
    """A backoff in which every field is set. Its defaults are the built-in backoff."""

    strategy: Strategy = "exponential"
    initial_us: Span = SECOND
    max_us: Span = HOUR
    multiplier: float = 2.0
    jitter: float = 0.5


BUILT_IN = ResolvedBackoff()


def resolve(*levels: Backoff | None) -> ResolvedBackoff:
    """Merges backoffs field by field. The first level that sets a field decides."""
    chosen: dict[str, object] = {}
    for level in levels:
        if level is not None:
            for name, value in structs.asdict(level).items():
                if value is not UNSET:
                    chosen.setdefault(name, value)
    return structs.replace(BUILT_IN, **chosen)


def is_last(attempt: int, max_attempts: int | None) -> bool:
    """Whether no attempt follows if this one, counted from 1, fails. `max_attempts=None` means no limit."""
    return max_attempts is not None and attempt >= max_attempts


def delay(backoff: ResolvedBackoff, attempt: int, roll: float) -> Span:
    """Returns the wait after the failure of this attempt, counted from 1. `roll` is a random number in [0, 1)."""
    match backoff.strategy:
        case "constant" | "custom":
            base = float(backoff.initial_us)
        case "linear":
            base = float(backoff.initial_us) * attempt
        case "exponential":
            # Growth past max_us changes nothing, so it stops there: infinity times an initial of 0 would be no number.
            base = backoff.initial_us * min(_power(backoff.multiplier, attempt - 1), float(backoff.max_us))
    capped = min(base, float(backoff.max_us))
    return round(capped * (1 - backoff.jitter * roll))


def _power(base: float, exponent: int) -> float:
    try:
        return float(base) ** exponent
    except OverflowError:
        return math.inf
