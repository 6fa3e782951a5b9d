"""Cursors on the wire: opaque, and valid only for the tenant, the filter and the order that they were made for."""

from __future__ import annotations

import base64
import hashlib
from typing import Final

import msgspec

from ropewalk.http.errors import DetailCode, HttpError, invalid

COUNTED_MAX: Final = 10_000
"""Totals are exact up to this many."""


def seal(cursor: str | None, *bound_to: object) -> str | None:
    """The cursor of a store, as a client gets it."""
    if cursor is None:
        return None
    return base64.urlsafe_b64encode(msgspec.json.encode((_mark(bound_to), cursor))).decode().rstrip("=")


def unseal(cursor: str | None, *bound_to: object) -> str | None:
    """The cursor of the store in a cursor that a client sends. Raises HttpError if it was made for something else."""
    if cursor is None:
        return None
    try:
        raw = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        mark, inner = msgspec.json.decode(raw, type=tuple[str, str])
    except (ValueError, msgspec.DecodeError) as error:
        raise _bad("this is not a cursor that this API returned") from error
    if mark != _mark(bound_to):
        raise _bad("this cursor belongs to another tenant, filter or order")
    return inner


def _mark(bound_to: tuple[object, ...]) -> str:
    return hashlib.blake2b(msgspec.json.encode(bound_to), digest_size=8).hexdigest()


def _bad(message: str) -> HttpError:
    return invalid(message, field="cursor", code=DetailCode.BAD_CURSOR)
