"""What a connection of a user's driver offers: it runs statements, which are written as psycopg takes them (`%s`,
`%(name)s`). Whatever the driver, its errors are raised as those of psycopg."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol, TypeAlias

import psycopg
from msgspec import Struct
from psycopg import errors

_UNSENDABLE: Final = "22000"
"""The code that asyncpg gives a value that it cannot send. The server has more exact codes for wrong values."""

Given: TypeAlias = "Sequence[Any] | Mapping[str, Any] | None"


class Answer(Struct, frozen=True):
    """The answer of a statement."""

    rowcount: int
    rows: list[tuple[Any, ...]]

    def fetchone(self) -> tuple[Any, ...] | None:
        return self.rows[0] if self.rows else None


class DriverConnection(Protocol):
    """A connection whose calls block."""

    def execute(self, sql: str, values: Given = None, *, binary: bool = False) -> Answer: ...

    def execute_uninterrupted(self, sql: str) -> None:
        """Runs a statement that begins or ends the work in a transaction, and that no cancellation may interrupt."""
        ...


class AsyncDriverConnection(Protocol):
    """A connection that belongs to an event loop."""

    async def execute(self, sql: str, values: Given = None, *, binary: bool = False) -> Answer: ...


class PlainDriverConnection:
    """A user's connection in the form that UserTransactionWire needs (PlainConnection)."""

    closed = False

    def __init__(self, connection: DriverConnection) -> None:
        self._driver_connection = connection

    def execute(self, sql: bytes, values: Given = None, *, prepare: bool = False, binary: bool = False) -> Answer:
        """Runs a statement without preparing it, because a prepared statement would stay on the user's connection,
        which may also lead through a pooler."""
        del prepare
        return self._driver_connection.execute(sql.decode(), values, binary=binary)


def as_psycopg_error(error: Exception) -> psycopg.Error:
    """Translates an error of another driver. An error without a code is one of the connection itself."""
    code = getattr(error, "sqlstate", None)
    if code == _UNSENDABLE:
        return psycopg.DataError(str(error))
    if not isinstance(code, str):
        return psycopg.OperationalError(f"{type(error).__name__}: {error}")
    try:
        return errors.lookup(code)(str(error))
    except KeyError:
        return psycopg.DatabaseError(f"{error} (SQLSTATE {code})")
