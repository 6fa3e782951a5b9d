"""Rates told again in the plainest way, by looking at all starts there were."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from ropewalk.domain.limits.rate import Rate


def left(rate: Rate, starts: Sequence[int], now: int) -> int:
    """How many may start now, after these starts (µs, in order)."""
    window = rate.window_us
    match rate.algorithm:
        case "sliding":
            return rate.count - sum(start > now - window for start in starts)
        case "fixed":
            return rate.count - sum(start // window == now // window for start in starts)
        case "token":
            tokens, at = Fraction(rate.count), 0
            for start in starts:
                tokens = min(Fraction(rate.count), tokens + Fraction((start - at) * rate.count, window)) - 1
                at = start
            return int(min(Fraction(rate.count), tokens + Fraction((now - at) * rate.count, window)))


def exceeded(rate: Rate, starts: Sequence[int]) -> list[int]:
    """Starts for which there was no room."""
    return [start for number, start in enumerate(starts) if left(rate, starts[:number], start) < 1]
