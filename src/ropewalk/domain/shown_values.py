"""How messages show a value that somebody gave."""

from __future__ import annotations

from typing import Final

from ropewalk.domain.redaction import message_value

SHOWN_CHARS_MAX: Final = 80
"""Longer values are cut in messages."""


def shown(value: object) -> str:
    """A value as messages show it: secrets hidden, and cut where it is long."""
    if isinstance(value, str | bytes) and len(value) > SHOWN_CHARS_MAX:
        return f"{value[:SHOWN_CHARS_MAX]!r}... ({len(value):,} long)"
    try:
        whole = repr(message_value(value))
    except ValueError:  # an int with more digits than Python writes
        whole = "a number with very many digits"
    return whole if len(whole) <= SHOWN_CHARS_MAX else f"{whole[:SHOWN_CHARS_MAX]}..."
