"""A transaction on a SQLite file (backends/sql/tx.py defines what the verbs expect of it).

Python's driver releases the interpreter lock around every step of a statement, and while another thread computes, it
waits 5 ms to get the lock back: 500 updates of single rows then take seconds. So many rows are changed by one statement
(`run_rows`), and many rows are read as one row of JSON. Beside such a thread, that reduces the time for an updated row
from 4 850 to 35 µs, and for a row that is read from 6 270 to 27 µs.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from itertools import chain
from operator import itemgetter
from typing import Any, Final

import msgspec

from ropewalk.backends.sql.blocks import chunk_sizes, for_rows, statements_in
from ropewalk.backends.sql.lanes import LaneBook, check_numbers, refuse_damaged
from ropewalk.backends.sql.statements import Statements
from ropewalk.backends.sql.tx import AlreadyThere, Row, SqlValue, TooMuch, Values
from ropewalk.backends.sqlite.columns import insert_block
from ropewalk.backends.sqlite.contiguous_ranges import ROWS_MIN, Forms, forms_of, split_ranges
from ropewalk.backends.sqlite.library import sqlite
from ropewalk.backends.sqlite.statements import CAREFUL, SQL
from ropewalk.domain.time import Instant

ROWS_PER_STATEMENT_MAX: Final = 128

_columns = msgspec.json.Decoder(list[list[int]])
_number = itemgetter(0)


class Tx:
    """An open transaction on a connection. The caller begins and ends it."""

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
    def known_now(self) -> Instant:
        return self.now

    def run(self, sql: str, values: Values = ()) -> int:
        before = self._db.total_changes
        self._db.execute(sql, values).fetchall()
        return self._db.total_changes - before

    def run_rows(self, block: str, rows: Sequence[Row], *rest: SqlValue) -> int:
        forms, before = forms_of(block), self._db.total_changes
        ranges, others = split_ranges(rows, forms.patterns) if len(rows) >= ROWS_MIN else ([], rows)
        self._run_forms(forms, ranges, others, rest)
        return self._db.total_changes - before

    def _run_forms(self, forms: Forms, ranges: Sequence[Row], others: Sequence[Row], rest: Row) -> None:
        for values_of_range in ranges:
            self._db.execute(forms.of_range, (*values_of_range, *rest))
        done = 0
        for size in chunk_sizes(len(others), ROWS_PER_STATEMENT_MAX):
            values = [*chain.from_iterable(others[done : done + size]), *rest]
            try:
                self._db.execute(for_rows(forms.of_rows, size), values)
            except sqlite.IntegrityError as error:
                raise AlreadyThere from error
            done += size

    def run_rows_later(self, block: str, rows: Sequence[Row], *rest: SqlValue) -> None:
        # The statement runs at once, because there is no round trip to save.
        changed = self.run_rows(block, rows, *rest)
        assert changed == len(rows), f"{len(rows)} rows were to be changed, {changed} were"

    def run_returning(self, block: str, rows: Sequence[Row], *rest: SqlValue) -> list[list[int]]:
        """The block has two statements: the first one reads the rows, which are named by their first two values, and
        the second one changes them."""
        reading, change = map(forms_of, statements_in(block))
        ranges, others = (
            split_ranges(sorted(rows, key=_number), reading.patterns) if len(rows) >= ROWS_MIN else ([], rows)
        )
        answers = [self.value(reading.of_range, (*values_of_range, *rest)) for values_of_range in ranges]
        if others:
            asked = msgspec.json.encode({row[0]: row[1] for row in others}).decode()
            answers.append(self.value(reading.of_rows, (asked, *rest)))
        changed_rows = [[*chain.from_iterable(column)] for column in zip(*map(_columns.decode, answers), strict=True)]
        if changed_rows[0]:
            before = self._db.total_changes
            self._run_forms(change, ranges, others, rest)
            changed = self._db.total_changes - before
            assert changed == len(changed_rows[0]), f"{len(changed_rows[0])} rows were to be changed, {changed} were"
        return changed_rows

    def row(self, sql: str, values: Values = ()) -> tuple[Any, ...] | None:
        try:
            found = self._db.execute(sql, values).fetchall()
        except sqlite.DataError as error:
            raise TooMuch from error
        return found[0] if found else None

    def rows(self, block: str, values: Row) -> list[tuple[Any, ...] | None]:
        return [self.row(part, values) for part in statements_in(block)]

    def row_and_commit(self, sql: str, values: Values = ()) -> tuple[Any, ...] | None:
        return self.row(sql, values)  # The commit follows anyway, and needs no round trip.

    def value(self, sql: str, values: Values = ()) -> Any:
        found = self.row(sql, values)
        return None if found is None else found[0]

    def blob(self, data: bytes | None) -> SqlValue:
        return (
            None if data is None else bytearray(data)
        )  # The driver binds it without the detour that it takes with bytes.

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
        self._db.execute("SAVEPOINT part")
        try:
            yield
        except BaseException:
            if self._db.in_transaction:  # Some errors end the whole transaction.
                self._db.execute("ROLLBACK TO part")
                self._db.execute("RELEASE part")
            raise
        self._db.execute("RELEASE part")
