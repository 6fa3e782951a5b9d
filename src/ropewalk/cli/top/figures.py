"""Formats numbers with three significant digits and a unit, and draws the bars of a timeline.

Bars are several characters high, in steps of an eighth of a character.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ropewalk.domain.time import Instant, Span, to_datetime


def count(number: int) -> str:
    """Format a count: 1234 becomes 1,234, and 1234567 becomes 1.23 M."""
    if number < 100_000:
        return f"{number:,}"
    for size, unit in ((10**9, "G"), (10**6, "M")):
        if number >= size:
            return f"{_three(number / size)} {unit}"
    return f"{number / 1000:.0f} k"


def rate(per_second: float) -> str:
    """Format a rate per second, or per minute or hour if it is less than 1."""
    if per_second <= 0:
        return "0/s"
    for factor, unit in ((1, "s"), (60, "min")):
        if per_second * factor >= 1:
            return f"{_three(per_second * factor)}/{unit}"
    return f"{_three(per_second * 3600)}/h"


def span(value: Span) -> str:
    """Format how long something took, in the largest unit in which it is at least 2."""
    if value < 1000:
        return f"{value} µs"
    for size, unit in ((86_400_000_000, "d"), (3_600_000_000, "h"), (60_000_000, "min")):
        if value >= 2 * size:
            return f"{_three(value / size)} {unit}"
    return f"{_three(value / 1_000_000)} s" if value >= 1_000_000 else f"{_three(value / 1000)} ms"


def age(value: Span) -> str:
    """Format how long ago something was, with so few digits that they do not change too fast to be read."""
    for size, unit in ((86_400_000_000, "d"), (3_600_000_000, "h"), (60_000_000, "min")):
        if value >= 2 * size:
            return f"{value / size:.0f} {unit}"
    return f"{value / 1_000_000:.0f} s" if value >= 9_950_000 else f"{value / 1_000_000:.1f} s"


def clock(at: Instant) -> str:
    """Format a time of day in UTC."""
    return f"{to_datetime(at):%H:%M:%S}"


def _three(value: float) -> str:
    """Format a number with three significant digits, but never less than its whole part."""
    return f"{value:.2f}" if value < 9.995 else f"{value:.1f}" if value < 99.95 else f"{value:,.0f}"


EIGHTHS: Final = " ▁▂▃▄▅▆▇█"


def bars(values: Sequence[float], *, height: int, thick: int) -> list[str]:
    """Draw values as bars and return the lines from top to bottom; each bar is `thick` characters wide.

    The bar of the largest value reaches the top, and every value above 0 has a visible bar.
    """
    highest = max(values, default=0.0)
    full = height * 8
    filled = [0 if value <= 0 else max(1, round(full * value / highest)) for value in values]
    floors = reversed(range(height))
    return ["".join(EIGHTHS[min(8, max(0, each - 8 * floor))] * thick for each in filled) for floor in floors]


def thickness(values: int, width: int) -> int:
    """Return how wide each of so many bars can be so that all fit, at most four characters."""
    return max(1, min(4, width // max(1, values)))
