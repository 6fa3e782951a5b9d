"""Spans, sizes and lists in a sentence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ropewalk.domain.time import Span, to_seconds

NAMED_MAX: Final = 5


def lasting(span: Span) -> str:
    """A span in the unit a person would say it in."""
    seconds = to_seconds(span)
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s" if seconds >= 10 else f"{seconds:.1f} s"


def sized(count: int) -> str:
    """Bytes, in the unit a person would say it in."""
    for power, unit in ((3, "GiB"), (2, "MiB"), (1, "KiB")):
        if count >= 1024**power:
            return f"{count / 1024**power:.1f} {unit}"
    return f"{count} bytes"


def number_of(count: int, thing: str) -> str:
    """`1 job`, `2 jobs`."""
    return f"{count:,} {thing}" if count == 1 else f"{count:,} {thing}s"


def named(names: Sequence[str]) -> str:
    """The first few of them."""
    more = f" and {len(names) - NAMED_MAX} more" if len(names) > NAMED_MAX else ""
    return ", ".join(names[:NAMED_MAX]) + more
