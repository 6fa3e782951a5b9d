"""What a rule says: how bad it is, what about, what is the case, and what to do."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct


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
