"""A transaction on this store's file (backends/sql/tx.py says what the verbs expect of it).

Python's driver gives up the interpreter lock around every step of a statement, and a busy interpreter lets a thread
wait 5 ms to get it back: 500 single-row updates beside a computing thread take seconds. So everything that happens in
numbers is one statement for many rows (`run_rows`), and results come as one row of JSON. Measured beside such a thread:
an updated row 4 850 → 35 µs, a row read 6 270 → 27 µs.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from itertools import chain
from operator import itemgetter
from typing import Any, Final

import msgspec

from ropewalk.backends.sql.blocks import chunk_sizes, for_rows, parts_of
from ropewalk.backends.sql.lanes import LaneBook, check_numbers, refuse_damaged
from ropewalk.backends.sql.statements import Statements
from ropewalk.backends.sql.tx import AlreadyThere, Row, SqlValue, TooMuch, Values
from ropewalk.backends.sqlite.columns import insert_block
from ropewalk.backends.sqlite.contiguous_ranges import FEWEST, Ways, parted, ranges_of
from ropewalk.backends.sqlite.library import sqlite
from ropewalk.backends.sqlite.statements import CAREFUL, SQL
from ropewalk.domain.time import Instant

ROWS_PER_STATEMENT_MAX: Final = 128

_columns = msgspec.json.Decoder(list[list[int]])
_number = itemgetter(0)


class Tx:
    __slots__ = ("_db", "careful", "known_damage", "lanes", "left_out", "now", "passed_over", "sql")

    numbers_inserted = False
    careful_sql = CAREFUL

    def __init__(self, db: sqlite.Connection, now: Instant, lanes: LaneBook | None = None) -> None:
        self._db = db
        self.now = now
        self.lanes = LaneBook() if lanes is None else lanes
        self.sql: Statements = SQL
        self.careful = False
        self.known_damage: frozenset[int] | None = frozenset()
        self.passed_over: frozenset[tuple[str, int]] = frozenset()
        self.left_out: set[str] = set()

    @property
    def given_now(self) -> Instant:
        return self.now

    def run(self, sql: str, values: Values = ()) -> int:
        """Change something; answers how many rows."""
        before = self._db.total_changes
        self._db.execute(sql, values).fetchall()
        return self._db.total_changes - before

    def run_rows(self, block: str, rows: Sequence[Row], *rest: SqlValue) -> int:
        """The same for many rows at once; `rest` follows them in the statement."""
        ways, before = ranges_of(block), self._db.total_changes
        pieces, others = parted(rows, ways.alike) if len(rows) >= FEWEST else ([], rows)
        self._run_pieces(ways, pieces, others, rest)
        return self._db.total_changes - before

    def _run_pieces(self, ways: Ways, pieces: Sequence[Row], others: Sequence[Row], rest: Row) -> None:
        for said in pieces:
            self._db.execute(ways.of_neighbours, (*said, *rest))
        done = 0
        for size in chunk_sizes(len(others), ROWS_PER_STATEMENT_MAX):
            values = [*chain.from_iterable(others[done : done + size]), *rest]
            try:
                self._db.execute(for_rows(ways.of_any, size), values)
            except sqlite.IntegrityError as error:
                raise AlreadyThere from error
            done += size

    def run_rows_later(self, block: str, rows: Sequence[Row], *rest: SqlValue) -> None:
        """The same, at once: a statement is no trip here."""
        changed = self.run_rows(block, rows, *rest)
        assert changed == len(rows), f"{len(rows)} rows were to be changed, {changed} were"

    def told_rows(self, block: str, rows: Sequence[Row], *rest: SqlValue) -> list[list[int]]:
        """The same, of at least one, for a block that tells of the rows it changed, column by column.

        It is two statements: one tells, of rows named by their first two values; the other changes them.
        """
        which, change = map(ranges_of, parts_of(block))
        pieces, others = parted(sorted(rows, key=_number), which.alike) if len(rows) >= FEWEST else ([], rows)
        answers = [self.value(which.of_neighbours, (*said, *rest)) for said in pieces]
        if others:
            asked = msgspec.json.encode({row[0]: row[1] for row in others}).decode()
            answers.append(self.value(which.of_any, (asked, *rest)))
        told = [[*chain.from_iterable(column)] for column in zip(*map(_columns.decode, answers), strict=True)]
        if told[0]:
            before = self._db.total_changes
            self._run_pieces(change, pieces, others, rest)
            changed = self._db.total_changes - before
            assert changed == len(told[0]), f"{len(told[0])} rows were to be changed, {changed} were"
        return told

    def row(self, sql: str, values: Values = ()) -> tuple[Any, ...] | None:
        try:
            found = self._db.execute(sql, values).fetchall()
        except sqlite.DataError as error:
            raise TooMuch from error
        return found[0] if found else None

    def rows(self, block: str, values: Row) -> list[tuple[Any, ...] | None]:
        """The first row of each statement of a block."""
        return [self.row(part, values) for part in parts_of(block)]

    def last_row(self, sql: str, values: Values = ()) -> tuple[Any, ...] | None:
        """The same: a commit is no trip here, and comes anyway."""
        return self.row(sql, values)

    def value(self, sql: str, values: Values = ()) -> Any:
        """The first column of the first row; None without one."""
        found = self.row(sql, values)
        return None if found is None else found[0]

    def blob(self, data: bytes | None) -> SqlValue:
        return None if data is None else bytearray(data)  # bound without a detour, unlike bytes

    def take_seqs(self, count: int) -> range:
        return self.take_numbers(count)[0]

    def take_numbers(self, count: int) -> tuple[range, int]:
        found = self.row(SQL.take_numbers, (count,))
        if found is None:
            refuse_damaged("last_seq")
        last, control = found
        check_numbers(0, control)
        return range(last - count + 1, last + 1), control

    def insert_block(self, columns: Sequence[str], *, own: int) -> str:
        return insert_block(tuple(columns), own)

    @contextmanager
    def savepoint(self) -> Generator[None]:
        """What is done inside is undone when it raises; the transaction goes on."""
        self._db.execute("SAVEPOINT part")
        try:
            yield
        except BaseException:
            if self._db.in_transaction:  # some errors end the whole transaction
                self._db.execute("ROLLBACK TO part")
                self._db.execute("RELEASE part")
            raise
        self._db.execute("RELEASE part")
