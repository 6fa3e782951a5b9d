"""Shows a value from users in a message."""

from __future__ import annotations

from typing import Final

from ropewalk.domain.redaction import message_value

SHOWN_CHARS_MAX: Final = 80
"""A value in a message is cut to this many characters."""


def shown(value: object) -> str:
    """Returns the text of a value for a message: its secrets are hidden, and it is cut if it is long."""
    if isinstance(value, str | bytes) and len(value) > SHOWN_CHARS_MAX:
        return f"{value[:SHOWN_CHARS_MAX]!r}... ({len(value):,} long)"
    try:
        whole = repr(message_value(value))
    except ValueError:  # The value contains an int with more digits than Python writes.
        whole = "a number with very many digits"
    return whole if len(whole) <= SHOWN_CHARS_MAX else f"{whole[:SHOWN_CHARS_MAX]}..."
