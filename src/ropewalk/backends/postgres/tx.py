"""A transaction on a PostgreSQL database (backends/sql/tx.py defines what the verbs expect of it).

Many rows are changed by one statement, to which every column is sent as one array. The driver writes arrays value by
value (1 µs each), so arrays of numbers and text are put together here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import lru_cache, partial
from itertools import chain
from operator import itemgetter
from typing import Any, Final, TypeAlias, cast

import msgspec
import psycopg
from psycopg.abc import Buffer
from psycopg.adapt import Loader
from psycopg.errors import UniqueViolation
from psycopg.pq import Format

from ropewalk.backends.postgres.columns import insert_block
from ropewalk.backends.postgres.wire.statement import Given, Statement
from ropewalk.backends.postgres.wire.transaction import Answer, Wire
from ropewalk.backends.sql import blocks
from ropewalk.backends.sql.lanes import LaneBook
from ropewalk.backends.sql.statements import Statements
from ropewalk.backends.sql.tx import AlreadyThere, Row, SqlValue, Values
from ropewalk.domain.time import Instant

Connection: TypeAlias = psycopg.Connection[tuple[Any, ...]]

_NAMED: Final = re.compile(r"(?<!:):([a-z]\w*)")
WRITTEN_OUT_BYTES_MAX: Final = 1000
"""Byte values that are larger on average are sent as they are: in hexadecimal digits they would take twice the
space."""
SET_TOGETHER_MAX: Final = 512
"""A statement that finds the values of its rows by number gets this many rows at most, because values of different
length are found by walking through their array."""

_number = itemgetter(0)
_seqs = msgspec.json.Decoder(list[int])
_columns = msgspec.json.Decoder(list[list[int]])


class Raw(Loader):
    """Leaves JSON as bytes, because msgspec decodes it."""

    format = Format.BINARY

    def load(self, data: Buffer) -> bytes:
        return bytes(data)


class Tx:
    """An open transaction. Statements are sent by its wire (wire/transaction.py)."""

    __slots__ = ("_wire", "careful", "careful_sql", "known_damage", "lanes", "left_out", "passed_over", "sql")

    def __init__(self, wire: Wire, lanes: LaneBook, sql: Statements, careful_sql: Statements) -> None:
        self._wire = wire
        self.lanes = lanes
        self.sql = sql
        self.careful_sql = careful_sql
        self.careful = False
        self.known_damage: frozenset[int] | None = frozenset()
        self.passed_over: frozenset[tuple[str, int]] = frozenset()
        self.left_out: set[str] = set()

    @property
    def now(self) -> Instant:
        return self._wire.now

    @property
    def known_now(self) -> Instant | None:
        return self._wire.known_now

    def run(self, sql: str, values: Values = ()) -> int:
        return self._execute(sql, values).rowcount

    def run_rows(self, block: str, rows: Sequence[Row], *rest: SqlValue) -> int:
        try:
            return (
                sum(answer.rowcount for answer in self._wire.run(_statements_for_rows(block, rows, rest)))
                if rows
                else 0
            )
        except UniqueViolation as error:
            raise AlreadyThere from error

    def run_rows_later(self, block: str, rows: Sequence[Row], *rest: SqlValue) -> None:
        for part in _parts(block, rows):
            [update] = statements_of(block, [*_arrays(part), *rest])
            self._wire.run_later(update, partial(_check_changed, len(part)))

    def run_returning(self, block: str, rows: Sequence[Row], *rest: SqlValue) -> list[list[int]]:
        answers: list[list[list[int]]] = []
        for answer in self._wire.run(_statements_for_rows(block, rows, rest)):
            found = answer.fetchone()
            assert found is not None
            answers.append(_columns.decode(found[0]))
        return [list(chain(*parts)) for parts in zip(*answers, strict=True)]

    def row(self, sql: str, values: Values = ()) -> tuple[Any, ...] | None:
        return self._execute(sql, values).fetchone()

    def rows(self, block: str, values: Row) -> list[tuple[Any, ...] | None]:
        return [answer.fetchone() for answer in self._wire.run(statements_of(block, values))]

    def row_and_commit(self, sql: str, values: Values = ()) -> tuple[Any, ...] | None:
        return self._wire.run_last(statements_of(sql, values))[-1].fetchone()

    def value(self, sql: str, values: Values = ()) -> Any:
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
        return insert_block(tuple(columns), own, self.sql.next_seq)

    def savepoint(self) -> AbstractContextManager[None]:
        return self._wire.savepoint()

    def _execute(self, sql: str, values: Values) -> Answer:
        return self._wire.run(statements_of(sql, values))[-1]


def statements_of(sql: str, values: Values | list[Any]) -> list[Statement]:
    """Returns the statements of a block in the form in which they are sent."""
    given: Given = values
    if isinstance(values, Mapping):
        sql = _named(sql)
    elif "%(1)s" in sql:
        given = {str(number): value for number, value in enumerate(values, 1)}
    return [Statement(part, given) for part in encoded_statements(sql)]


def _statements_for_rows(block: str, rows: Sequence[Row], rest: Sequence[SqlValue]) -> list[Statement]:
    """Returns the statements of a block for these rows."""
    return [each for part in _parts(block, rows) for each in statements_of(block, [*_arrays(part), *rest])]


def _check_changed(rows: int, answer: Answer) -> None:
    assert answer.rowcount == rows, f"{rows} rows were to be changed, {answer.rowcount} were"


@lru_cache(maxsize=64)
def _named(block: str) -> str:
    return _NAMED.sub(r"%(\1)s", block)


@lru_cache(maxsize=512)
def encoded_statements(block: str) -> tuple[bytes, ...]:
    """Returns the statements of a block. A statement sees what was committed before it began, even if it then waits for
    a lock; so a block that has to wait first and to read afterwards has two statements, with the same values."""
    return tuple(part.encode() for part in blocks.statements_in(block))


def _parts(block: str, rows: Sequence[Row]) -> Iterator[Sequence[Row]]:
    """Yields the rows in parts. A block that finds values by number needs them in order, and not too many."""
    if "%(1)s" not in block:
        if rows:
            yield rows
        return
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
    """Returns a text as an element of an array. A regular expression took 12 µs for a JSON text, this takes 0.3."""
    text = str(value).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{text}"'
