"""Lines a handler logged, kept with its job. Bounded: the newest of a job, and of each line so much."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec
from msgspec import Struct

from ropewalk.domain.failure import clipped
from ropewalk.domain.time import Instant

LINES_MAX: Final = 1000
"""kept of a job: the newest"""
LINE_CHARS_MAX: Final = 2000
"""of a message, and of its fields as JSON"""

_STARTS: Final = (1 << 32) - 1
"""the part of a fence that counts the starts of a job"""


class LogLine(Struct, frozen=True, kw_only=True, array_like=True):
    """What one start of a job logged. `position` counts within that start, from 1: sent twice, it is kept once."""

    position: int
    attempt: int
    at: Instant
    """by the store's clock, as far as the worker knows it"""
    level: int
    """as in `logging`"""
    message: str
    fields: str | None = None
    """a JSON object"""


def text(message: str) -> str:
    """As much of a message as is kept, in characters every store can keep."""
    return clipped(message.replace("\x00", "\\x00"), LINE_CHARS_MAX)


def fields_json(fields: Mapping[str, object]) -> str | None:
    """Fields as JSON, None where there are none; what JSON cannot hold is written out."""
    if not fields:
        return None
    try:
        encoded = msgspec.json.encode(fields, enc_hook=str).decode()
    except (TypeError, ValueError, RecursionError):
        encoded = msgspec.json.encode({text(str(name)): text(repr(value)) for name, value in fields.items()}).decode()
    if len(encoded) > LINE_CHARS_MAX:
        return msgspec.json.encode({"dropped": f"fields of {len(encoded)} characters"}).decode()
    return encoded


def may_be_too_many(fence: int, lines: Sequence[LogLine]) -> bool:
    """Whether the job may have more than LINES_MAX with these: a first start with few lines cannot."""
    return (fence & _STARTS) > 1 or lines[-1].position > LINES_MAX
