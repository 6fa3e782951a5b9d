"""How the fields of a record become columns: structured ones are JSON text, NULL where they are empty."""

from __future__ import annotations

from typing import Final

import msgspec

JSON_COLUMNS: Final = ("backoff", "tags", "on_failure", "origin", "gate")
"""structured fields a job is born with; `progress`, `error` and `cancel` come later"""

_encode = msgspec.json.Encoder().encode


def json_text(value: object) -> str | None:
    """A structured value as JSON text; None and {} are kept as NULL."""
    return _encode(value).decode() if value else None
