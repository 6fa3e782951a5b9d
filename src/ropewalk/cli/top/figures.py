"""Numbers as a person reads them at a glance: three digits that matter, and a unit.

Bars of a time line, several characters high, in eighths of one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ropewalk.domain.time import Instant, Span, to_datetime


def count(number: int) -> str:
    """1234 → 1,234; 1234567 → 1.23 M."""
    if number < 100_000:
        return f"{number:,}"
    for size, unit in ((10**9, "G"), (10**6, "M")):
        if number >= size:
            return f"{_three(number / size)} {unit}"
    return f"{number / 1000:.0f} k"


def rate(per_second: float) -> str:
    """Per second; per minute or hour where that would be nothing but zeros."""
    if per_second <= 0:
        return "0/s"
    for factor, unit in ((1, "s"), (60, "min")):
        if per_second * factor >= 1:
            return f"{_three(per_second * factor)}/{unit}"
    return f"{_three(per_second * 3600)}/h"


def span(value: Span) -> str:
    """How long something took, in the unit a person would say it in."""
    if value < 1000:
        return f"{value} µs"
    for size, unit in ((86_400_000_000, "d"), (3_600_000_000, "h"), (60_000_000, "min")):
        if value >= 2 * size:
            return f"{_three(value / size)} {unit}"
    return f"{_three(value / 1_000_000)} s" if value >= 1_000_000 else f"{_three(value / 1000)} ms"


def age(value: Span) -> str:
    """How long ago: no more digits than change slowly enough to be read."""
    for size, unit in ((86_400_000_000, "d"), (3_600_000_000, "h"), (60_000_000, "min")):
        if value >= 2 * size:
            return f"{value / size:.0f} {unit}"
    return f"{value / 1_000_000:.0f} s" if value >= 9_950_000 else f"{value / 1_000_000:.1f} s"


def clock(at: Instant) -> str:
    return f"{to_datetime(at):%H:%M:%S}"


def _three(value: float) -> str:
    """Three digits that matter, at least the whole part."""
    return f"{value:.2f}" if value < 9.995 else f"{value:.1f}" if value < 99.95 else f"{value:,.0f}"


EIGHTHS: Final = " ▁▂▃▄▅▆▇█"


def bars(values: Sequence[float], *, height: int, thick: int) -> list[str]:
    """From top to bottom; each value `thick` characters wide. The highest reaches the top, nothing above 0 vanishes."""
    highest = max(values, default=0.0)
    full = height * 8
    filled = [0 if value <= 0 else max(1, round(full * value / highest)) for value in values]
    floors = reversed(range(height))
    return ["".join(EIGHTHS[min(8, max(0, each - 8 * floor))] * thick for each in filled) for floor in floors]


def thickness(values: int, width: int) -> int:
    """As wide as all of them fit, up to four characters each."""
    return max(1, min(4, width // max(1, values)))
