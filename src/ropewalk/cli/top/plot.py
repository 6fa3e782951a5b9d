"""Bars of a time line, several characters high, in eighths of one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

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
