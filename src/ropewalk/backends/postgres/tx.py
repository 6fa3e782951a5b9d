"""A transaction on this store's database (backends/sql/tx.py says what the verbs expect of it).

What happens in numbers is one statement for any number of rows: every column travels as one array. The driver writes
arrays item by item (1 µs each); those of numbers and text are put together here.
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
        """Change something; answers how many rows."""
        return self._execute(sql, values).rowcount

    def run_rows(self, block: str, rows: Sequence[Row], *rest: SqlValue) -> int:
        """The same for many rows at once; `rest` follows them in the statement."""
        try:
            return sum(answer.rowcount for answer in self._wire.ask(_said_of_rows(block, rows, rest))) if rows else 0
        except UniqueViolation as error:
            raise AlreadyThere from error

    def run_rows_later(self, block: str, rows: Sequence[Row], *rest: SqlValue) -> None:
        """The same by the end of the transaction, for a block that changes one of each."""
        for part in _parts(block, rows):
            [update] = said(block, [*_arrays(part), *rest])
            self._wire.later(update, partial(_check_changed, len(part)))

    def run_returning(self, block: str, rows: Sequence[Row], *rest: SqlValue) -> list[list[int]]:
        """The same, of at least one, for a block that tells of the rows it changed, column by column."""
        told: list[list[list[int]]] = []
        for answer in self._wire.ask(_said_of_rows(block, rows, rest)):
            found = answer.fetchone()
            assert found is not None
            told.append(_columns.decode(found[0]))
        return [list(chain(*parts)) for parts in zip(*told, strict=True)]

    def row(self, sql: str, values: Values = ()) -> tuple[Any, ...] | None:
        return self._execute(sql, values).fetchone()

    def rows(self, block: str, values: Row) -> list[tuple[Any, ...] | None]:
        """The first row of each statement of a block."""
        return [answer.fetchone() for answer in self._wire.ask(said(block, values))]

    def row_and_commit(self, sql: str, values: Values = ()) -> tuple[Any, ...] | None:
        return self._wire.ask_last(said(sql, values))[-1].fetchone()

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
        return insert_block(tuple(columns), own, self.sql.next_seq)

    def savepoint(self) -> AbstractContextManager[None]:
        return self._wire.savepoint()

    def _execute(self, sql: str, values: Values) -> Answer:
        return self._wire.ask(said(sql, values))[-1]


def said(sql: str, values: Values | list[Any]) -> list[Statement]:
    """The statements of a block as they are sent."""
    given: Given = values
    if isinstance(values, Mapping):
        sql = _named(sql)
    elif "%(1)s" in sql:
        given = {str(number): value for number, value in enumerate(values, 1)}
    return [Statement(part, given) for part in parts_of(sql)]


def _said_of_rows(block: str, rows: Sequence[Row], rest: Sequence[SqlValue]) -> list[Statement]:
    return [each for part in _parts(block, rows) for each in said(block, [*_arrays(part), *rest])]


def _check_changed(rows: int, answer: Answer) -> None:
    assert answer.rowcount == rows, f"{rows} rows were to be changed, {answer.rowcount} were"


@lru_cache(maxsize=64)
def _named(block: str) -> str:
    return _NAMED.sub(r"%(\1)s", block)


@lru_cache(maxsize=512)
def parts_of(block: str) -> tuple[bytes, ...]:
    """A statement sees what was committed before it began, also where it then waits for a lock. A block that has to
    wait first and look afterwards is two, with the same values."""
    return tuple(part.encode() for part in blocks.statements_in(block))


def _parts(block: str, rows: Sequence[Row]) -> Iterator[Sequence[Row]]:
    """Blocks that find values by number want them in order, and not too many."""
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
