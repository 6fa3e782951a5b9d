"""A transaction on this store's database (backends/_sql/tx.py says what the verbs expect of it).

What happens in numbers is one statement for any number of rows: every column travels as one array. The driver writes
arrays item by item (1 µs each); those of numbers and text are put together here.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from itertools import chain
from operator import itemgetter
from typing import Any, Final, TypeAlias, cast

import msgspec
import psycopg
from psycopg.abc import Buffer
from psycopg.adapt import Loader
from psycopg.errors import UniqueViolation
from psycopg.pq import Format

from ropewalk.backends._sql import blocks
from ropewalk.backends._sql.lanes import LaneBook
from ropewalk.backends._sql.statements import Statements
from ropewalk.backends._sql.tx import AlreadyThere, Row, SqlValue, Values
from ropewalk.domain.instants import Instant

Connection: TypeAlias = psycopg.Connection[tuple[Any, ...]]

_INTEGERS: Final = frozenset({"priority", "flags", "format", "chain_index", "unmet", "depth", "place"})
_BIGINTS: Final = frozenset(
    {
        *("seq", "prio_key", "time_key", "created_at", "run_at", "updated_at", "max_attempts", "max_crashes", "lane"),
        *("timeout_us", "lease_us", "deadline", "scope_id", "wake_at"),
    }
)
_STANDING: Final = frozenset(
    {
        *("seq", "prio_key", "time_key", "created_at", "run_at", "updated_at", "max_attempts", "deadline", "wake_at"),
        *("flags", "priority", "unmet", "format", "place", "awaits", "gate"),
    }
)
"""what of a new job is in the row that moves; the rest is in the one that stays"""
_NAMED: Final = re.compile(r"(?<!:):([a-z]\w*)")
_TO_QUOTE: Final = re.compile(r'(["\\])')
WRITTEN_OUT_BYTES_MAX: Final = 1000
"""values that are larger, on average, travel as they are: written out they would take twice the room"""
SET_TOGETHER_MAX: Final = 512
"""values of different length are found by walking their array: not too many of them at once"""

_number = itemgetter(0)
_seqs = msgspec.json.Decoder(list[int])
_columns = msgspec.json.Decoder(list[list[int]])


class Raw(Loader):
    """JSON stays text: decoding it is msgspec's."""

    format = Format.BINARY

    def load(self, data: Buffer) -> bytes:
        return bytes(data)


class Tx:
    __slots__ = ("_begin", "_db", "lanes", "now", "sql")

    def __init__(
        self, db: Connection, now: Instant, lanes: LaneBook, sql: Statements, *, begin: bytes | None = None
    ) -> None:
        self._db = db
        self._begin = begin
        """how the transaction was begun, as long as nothing has happened in it that must not be undone"""
        self.now = now
        self.lanes = lanes
        self.sql = sql

    def run(self, sql: str, values: Values = ()) -> int:
        """Change something; answers how many rows."""
        return self._execute(sql, values).rowcount

    def run_rows(self, block: str, rows: Sequence[Row], *rest: SqlValue) -> int:
        """The same for many rows at once; `rest` follows them in the statement."""
        if not rows:
            return 0
        try:
            if "%(1)s" not in block:
                return self._execute(block, [*_arrays(rows), *rest]).rowcount
            return sum(self._execute(block, [*_arrays(part), *rest]).rowcount for part in _ordered_parts(rows))
        except UniqueViolation as error:
            raise AlreadyThere from error

    def told_rows(self, block: str, rows: Sequence[Row], *rest: SqlValue) -> list[list[int]]:
        """The same, of at least one, for a block that tells of the rows it changed, column by column."""
        told: list[list[list[int]]] = []
        for part in _ordered_parts(rows):
            found = self._execute(block, [*_arrays(part), *rest]).fetchone()
            assert found is not None
            told.append(_columns.decode(found[0]))
        return [list(chain(*parts)) for parts in zip(*told, strict=True)]

    def row(self, sql: str, values: Values = ()) -> tuple[Any, ...] | None:
        return self._execute(sql, values).fetchone()

    def value(self, sql: str, values: Values = ()) -> Any:
        """The first column of the first row; None without one."""
        found = self.row(sql, values)
        return None if found is None else found[0]

    def blob(self, data: bytes | None) -> SqlValue:
        return data

    def take_seqs(self, count: int) -> list[int]:
        return self.take_numbers(count)[0] if count else []

    def take_numbers(self, count: int) -> tuple[list[int], int]:
        found = self.row(self.sql.take_numbers, (count,))
        assert found is not None
        return _seqs.decode(found[0]), found[1]

    @property
    def numbers_inserted(self) -> bool:
        return bool(self.sql.next_seq)

    def insert_block(self, columns: Sequence[str], *, own: int) -> str:
        return _insert_block(tuple(columns), own, self.sql.next_seq)

    @contextmanager
    def savepoint(self) -> Generator[None]:
        """What is done inside is undone when it raises; the transaction goes on."""
        begin = self._begin
        if begin is None:
            self._db.execute(b"SAVEPOINT part")
        try:
            yield
        except BaseException:
            if not self._db.closed:
                self._db.execute(b"ROLLBACK TO part; RELEASE part" if begin is None else b"ROLLBACK; " + begin)
            raise
        if begin is None:
            self._db.execute(b"RELEASE part")

    def _execute(self, sql: str, values: Values | list[Any]) -> psycopg.Cursor[tuple[Any, ...]]:
        if isinstance(values, Mapping):
            sql = _named(sql)
        elif "%(1)s" in sql:
            values = {str(number): value for number, value in enumerate(values, 1)}
        self._begin = None
        *before, last = parts_of(sql)
        for statement in before:
            self._db.execute(statement, values, prepare=True, binary=True)
        return self._db.execute(last, values, prepare=True, binary=True)


@lru_cache(maxsize=64)
def _named(block: str) -> str:
    return _NAMED.sub(r"%(\1)s", block)


@lru_cache(maxsize=512)
def parts_of(block: str) -> tuple[bytes, ...]:
    """A statement sees what was committed before it began, also where it then waits for a lock. A block that has to
    wait first and look afterwards is two, with the same values."""
    return tuple(part.encode() for part in blocks.parts_of(block))


@lru_cache(maxsize=64)
def _insert_block(columns: tuple[str, ...], own: int, next_seq: str) -> str:
    arrays, names = ", ".join(f"%s::{_type(name)}[]" for name in columns[:own]), ", ".join(columns[:own])
    shared = ", ".join(f"%s::{_type(name)} AS {name}" for name in columns[own:])
    given = f", shared AS (SELECT {shared})" if shared else ""
    source = "own CROSS JOIN shared" if shared else "own"
    number, unchanged = "", ""
    if "seq" not in columns:
        number, columns = f"{next_seq} AS seq, ", ("seq", *columns)
        unchanged = " WHERE (SELECT control FROM meta) = %s::bigint"
    stays = ", ".join(name for name in columns if name not in _STANDING - {"seq"} and name != "lane")
    moves = ", ".join(name for name in columns if name in _STANDING)
    return (
        f"WITH own AS MATERIALIZED ("  # noqa: S608  the names are ours
        f"SELECT {number}own.* FROM unnest({arrays}) AS own ({names}){unchanged}){given}, "
        f"kept AS (INSERT INTO submitted ({stays}) SELECT {stays} FROM {source}) "
        f"INSERT INTO standing ({moves}, stream) SELECT {moves}, 2 * lane FROM {source}"
    )


def _type(column: str) -> str:
    if column in _BIGINTS:
        return "bigint"
    if column in _INTEGERS:
        return "integer"
    return "bytea" if column == "input" else "text"


def _ordered_parts(rows: Sequence[Row]) -> Iterator[Sequence[Row]]:
    ordered = sorted(rows, key=_number)
    for start in range(0, len(rows), SET_TOGETHER_MAX):
        yield ordered[start : start + SET_TOGETHER_MAX]


def _arrays(rows: Sequence[Row]) -> list[object]:
    return [_array(column) for column in zip(*rows, strict=True)]


def _array(column: Sequence[SqlValue]) -> object:
    kind = next((type(value) for value in column if value is not None), int)
    if issubclass(kind, bytes | bytearray):
        return _array_of_bytes(cast("Sequence[bytes | bytearray | None]", column))
    text = _quoted if issubclass(kind, str) else str
    return "{" + ",".join("NULL" if value is None else text(value) for value in column) + "}"


def _array_of_bytes(column: Sequence[bytes | bytearray | None]) -> object:
    if sum(map(len, filter(None, column))) > len(column) * WRITTEN_OUT_BYTES_MAX:
        return list(column)
    return "{" + ",".join("NULL" if value is None else f'"\\\\x{value.hex()}"' for value in column) + "}"


def _quoted(value: object) -> str:
    text = str(value)
    if '"' in text or "\\" in text:
        text = _TO_QUOTE.sub(r"\\\1", text)
    return f'"{text}"'
