"""Schemas made once and emptied for whoever comes next: tables are made in 50 ms, and emptied in 5.

Knows nothing of what is in them. Nothing that was written stays: no row, no number a sequence has counted to; what the
making had put there is put back. A transaction left open in one is an error.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import Any, Final, LiteralString, TypeAlias

import psycopg
from psycopg.sql import SQL, Composed, Identifier

LOCK_WAIT: Final = "5s"
SMALL_BYTES_MAX: Final = 64 * 1024
"""Deleting a few rows is faster than truncating their table; of many it would leave a table full of nothing."""

_WRITTEN: Final = """
SELECT relname, pg_relation_size(oid) > %s FROM pg_class
WHERE relnamespace = %s::regnamespace AND relkind = 'r' AND pg_relation_size(oid) > 0
"""
_RESTART: Final = """
SELECT setval(seqrelid, seqstart, false) FROM pg_sequence JOIN pg_class ON pg_class.oid = seqrelid
WHERE relnamespace = %s::regnamespace
"""

Connection: TypeAlias = psycopg.Connection[tuple[Any, ...]]


class Schemas:
    """Of one database. `make` gets the name of a schema that does not exist and makes it, with its tables."""

    def __init__(self, dsn: str, make: Callable[[str], object]) -> None:
        self._dsn = dsn
        self._make = make
        self._free: list[str] = []
        self._db: Connection | None = None

    def take(self) -> str:
        """The name of one that is as it was made, until it is given back."""
        if self._db is None:
            self._db = psycopg.connect(self._dsn, autocommit=True)
        if not self._free:
            return self._made(self._db)
        schema = self._free.pop()  # one that cannot be emptied is not used again
        _empty(self._db, schema)
        return schema

    def give_back(self, schema: str) -> None:
        """Nobody uses it any more."""
        self._free.append(schema)

    def run(self, statement: Composed, *values: int) -> None:
        """Run a statement of a test that has taken a schema."""
        assert self._db is not None, "no schema has been taken yet"
        self._db.execute(statement, values)

    def close(self) -> None:
        if self._db is not None:
            self._db.close()

    def _made(self, db: Connection) -> str:
        schema = f"test_{secrets.token_hex(6)}"
        self._make(schema)
        db.execute(SQL("CREATE SCHEMA {}").format(Identifier(_first(schema))))
        for table in _written(db, schema):
            _run(db, "CREATE TABLE {} AS TABLE {}", (_first(schema), table), (schema, table))
        return schema


def _empty(db: Connection, schema: str) -> None:
    with db.transaction():
        db.execute(f"SET LOCAL lock_timeout = '{LOCK_WAIT}'".encode())
        for table, large in _written(db, schema).items():
            _run(db, "TRUNCATE {}" if large else "DELETE FROM {}", (schema, table))
        for table in _written(db, _first(schema)):
            _run(db, "INSERT INTO {} TABLE {}", (schema, table), (_first(schema), table))
        db.execute(_RESTART, (schema,))


def _first(schema: str) -> str:
    """Where that is kept which was in it at first."""
    return f"{schema}_first"


def _written(db: Connection, schema: str) -> dict[str, bool]:
    """Tables that hold, or held, anything, and whether that is much."""
    return dict(db.execute(_WRITTEN, (SMALL_BYTES_MAX, schema)).fetchall())


def _run(db: Connection, statement: LiteralString, *tables: tuple[str, str]) -> None:
    db.execute(SQL(statement).format(*(Identifier(*table) for table in tables)))
