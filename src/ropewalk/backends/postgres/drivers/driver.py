"""A user's connection as the statements see it. Whatever the driver, its errors come as psycopg's, known by their code.

Statements are written as psycopg takes them: `%s`, `%(name)s`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol, TypeAlias

import psycopg
from msgspec import Struct
from psycopg import errors

_UNSENDABLE: Final = "22000"
"""what asyncpg says of a value it cannot send; the server always knows better what is wrong with one"""

Given: TypeAlias = "Sequence[Any] | Mapping[str, Any] | None"


class Answer(Struct, frozen=True):
    rowcount: int
    rows: list[tuple[Any, ...]]

    def fetchone(self) -> tuple[Any, ...] | None:
        return self.rows[0] if self.rows else None


class Speaker(Protocol):
    """Of a connection whose calls block."""

    def execute(self, sql: str, values: Given = None, *, binary: bool = False) -> Answer: ...

    def surely(self, sql: str) -> None:
        """The same for the way in and the way out, which nothing may interrupt half-way."""
        ...


class AsyncSpeaker(Protocol):
    """Of a connection that belongs to a loop."""

    async def execute(self, sql: str, values: Given = None, *, binary: bool = False) -> Answer: ...


class Voice:
    """As much of a psycopg connection as a Tx uses, over any speaker."""

    closed = False

    def __init__(self, speaker: Speaker) -> None:
        self._speaker = speaker

    def execute(self, sql: bytes, values: Given = None, *, prepare: bool = False, binary: bool = False) -> Answer:
        """Never prepared: what a user's connection keeps is the user's, and may lead through a pooler."""
        del prepare
        return self._speaker.execute(sql.decode(), values, binary=binary)


def as_psycopg(error: Exception) -> psycopg.Error:
    """Another driver's error. One without a code is of the line itself."""
    code = getattr(error, "sqlstate", None)
    if code == _UNSENDABLE:
        return psycopg.DataError(str(error))
    if not isinstance(code, str):
        return psycopg.OperationalError(f"{type(error).__name__}: {error}")
    try:
        return errors.lookup(code)(str(error))
    except KeyError:
        return psycopg.DatabaseError(f"{error} (SQLSTATE {code})")
