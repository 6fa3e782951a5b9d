"""What a rule says: how bad it is, what about, what is the case, and what to do.

Spans, sizes and lists in a sentence.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Final

from msgspec import Struct

from ropewalk.domain.time import Span, to_seconds


class Level(StrEnum):
    OK = "ok"
    NOTE = "note"
    """worth knowing, nothing to be done"""
    WARN = "warn"
    """jobs wait, or will: something is to be done"""
    BAD = "bad"
    """the store cannot be used, or may lose acknowledged jobs"""


class Finding(Struct, frozen=True, kw_only=True):
    level: Level
    subject: str
    found: str
    advice: str | None = None
    """None only where all is well"""


def ok(subject: str, found: str) -> Finding:
    return Finding(level=Level.OK, subject=subject, found=found)


def note(subject: str, found: str, advice: str) -> Finding:
    return Finding(level=Level.NOTE, subject=subject, found=found, advice=advice)


def warn(subject: str, found: str, advice: str) -> Finding:
    return Finding(level=Level.WARN, subject=subject, found=found, advice=advice)


def bad(subject: str, found: str, advice: str) -> Finding:
    return Finding(level=Level.BAD, subject=subject, found=found, advice=advice)


def worst(findings: list[Finding]) -> Level:
    order = list(Level)
    return max((each.level for each in findings), key=order.index, default=Level.OK)


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
