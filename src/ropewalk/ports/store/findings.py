"""Findings: the lines of an examination, for people who operate a store, and how their sentences show numbers.

A store makes the findings that only its kind can make (diagnosis.py). The doctor makes those that fit every store.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Final

from msgspec import Struct

from ropewalk.domain.time import Span, to_seconds


class Level(StrEnum):
    """How bad a finding is, from the best to the worst."""

    OK = "ok"
    NOTE = "note"
    """The finding is worth knowing, and nothing has to be done."""
    WARN = "warn"
    """Jobs wait or will wait, and somebody has to do something about it."""
    BAD = "bad"
    """The store cannot be used, or it may lose acknowledged jobs."""


class Finding(Struct, frozen=True, kw_only=True):
    """One line of an examination."""

    level: Level
    subject: str
    """A word or two that monitoring can look for, such as "durability"."""
    found: str
    """What is the case."""
    advice: str | None = None
    """What to do about it; None only where the level is OK."""


def ok(subject: str, found: str) -> Finding:
    return Finding(level=Level.OK, subject=subject, found=found)


def note(subject: str, found: str, advice: str) -> Finding:
    return Finding(level=Level.NOTE, subject=subject, found=found, advice=advice)


def warn(subject: str, found: str, advice: str) -> Finding:
    return Finding(level=Level.WARN, subject=subject, found=found, advice=advice)


def bad(subject: str, found: str, advice: str) -> Finding:
    return Finding(level=Level.BAD, subject=subject, found=found, advice=advice)


def worst(findings: list[Finding]) -> Level:
    """Returns the worst level among these findings; OK if there are none."""
    order = list(Level)
    return max((each.level for each in findings), key=order.index, default=Level.OK)


NAMED_MAX: Final = 5
"""A sentence names at most this many things."""


def lasting(span: Span) -> str:
    """Returns a span in the unit that a person would use for it."""
    seconds = to_seconds(span)
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s" if seconds >= 10 else f"{seconds:.1f} s"


def sized(count: int) -> str:
    """Returns a number of bytes in the unit that a person would use for it."""
    for power, unit in ((3, "GiB"), (2, "MiB"), (1, "KiB")):
        if count >= 1024**power:
            return f"{count / 1024**power:.1f} {unit}"
    return f"{count} bytes"


def number_of(count: int, thing: str) -> str:
    """Returns a number with its noun in the singular or plural: `1 job`, `2 jobs`."""
    return f"{count:,} {thing}" if count == 1 else f"{count:,} {thing}s"


def named(names: Sequence[str]) -> str:
    """Returns the first few of these names, and how many more there are."""
    more = f" and {len(names) - NAMED_MAX} more" if len(names) > NAMED_MAX else ""
    return ", ".join(names[:NAMED_MAX]) + more
