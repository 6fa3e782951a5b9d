"""The log lines of handlers, which are kept with their jobs. Their number and their length are bounded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec
from msgspec import Struct

from ropewalk.domain.failure import clipped
from ropewalk.domain.time import Instant

LINES_MAX: Final = 1000
"""The newest lines of a job are kept, up to this number."""
LINE_CHARS_MAX: Final = 2000
"""A message has at most this many characters, and so have its fields as JSON."""

_STARTS: Final = (1 << 32) - 1
"""This part of a fence counts the starts of the job."""


class LogLine(Struct, frozen=True, kw_only=True, array_like=True):
    """One line that a start of a job logged."""

    position: int
    """The place of the line among those of the same start, from 1. A line that is sent twice is kept once."""
    attempt: int
    at: Instant
    """The time of the line by the store's clock, as the worker estimates it."""
    level: int
    """The level as a number, as in `logging`."""
    message: str
    fields: str | None = None
    """The fields as a JSON object."""


def text(message: str) -> str:
    """Returns a message cut to what is kept, in characters that every store can keep."""
    return clipped(message.replace("\x00", "\\x00"), LINE_CHARS_MAX)


def fields_json(fields: Mapping[str, object]) -> str | None:
    """Returns the fields as JSON, or None if there are none. A value that JSON cannot express becomes text."""
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
    """Whether the job may have more than LINES_MAX lines together with these. In its first start, the position of the
    last line decides."""
    return (fence & _STARTS) > 1 or lines[-1].position > LINES_MAX
