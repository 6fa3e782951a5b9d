"""A transaction as the verbs use it: it runs statements and returns values, and it knows the time of the store.

The verbs of this package are written in Python for every SQL store. Each store has its own statements (`sql`), with the
same parameters and the same answers; many rows are returned as one JSON value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from ropewalk.backends.sql.statements import Statements
from ropewalk.domain.time import Instant

if TYPE_CHECKING:
    from ropewalk.backends.sql.lanes import LaneBook

SqlValue: TypeAlias = int | float | str | bytes | bytearray | None
Row: TypeAlias = Sequence[SqlValue]
Values: TypeAlias = Row | Mapping[str, SqlValue]


class AlreadyThere(Exception):
    """The row to insert exists already: its id, its spawn key, or its place in a chain."""


class TooMuch(Exception):
    """The answer does not fit into one value: the caller has to ask for less."""


class Tx(Protocol):
    """An open transaction of a SQL store."""

    @property
    def now(self) -> Instant:
        """The time of the transaction by the store's clock."""
        ...

    @property
    def known_now(self) -> Instant | None:
        """The time for a statement that can read the clock itself; None if reading it before would cost a round
        trip."""
        ...

    sql: Statements
    careful: bool
    """Whether rows are read one by one, because one of them cannot be decoded (damage.py)."""
    known_damage: frozenset[int] | None
    """While the transaction reads carefully, it may read these damaged jobs; None means all."""

    passed_over: frozenset[tuple[str, int]]
    """These records, by kind and number, stay as they are, because changing them raised an error."""

    left_out: set[str]
    """These are the tables of which damaged rows were left out in this transaction."""

    @property
    def careful_sql(self) -> Statements:
        """The careful variants of the statements, which do not fail because of junk in a column."""
        ...

    @property
    def lanes(self) -> LaneBook:
        """The lanes that this connection knows. They are not shared, because another one may know uncommitted lanes."""
        ...

    def run(self, sql: str, values: Values = ()) -> int:
        """Runs a statement that changes rows, and returns their number."""
        ...

    def run_rows(self, block: str, rows: Sequence[Row], *rest: SqlValue) -> int:
        """Runs a statement for many rows at once, and returns the number of changed rows. The values of `rest` follow
        the rows in the statement. Raises AlreadyThere."""
        ...

    def run_rows_later(self, block: str, rows: Sequence[Row], *rest: SqlValue) -> None:
        """Runs a statement for many rows at any time before the end of the transaction. Each of them surely changes one
        row.

        If round trips cost time, the statement is sent together with the next one, with the commit at the latest.
        """
        ...

    def run_returning(self, block: str, rows: Sequence[Row], *rest: SqlValue) -> list[list[int]]:
        """Runs a statement for at least one row, and returns the rows that it changed, column by column."""
        ...

    def row(self, sql: str, values: Values = ()) -> tuple[Any, ...] | None:
        """Runs a statement and returns its first row. Raises TooMuch."""
        ...

    def rows(self, block: str, values: Row) -> list[tuple[Any, ...] | None]:
        """Runs all statements of a block, in one round trip if those cost time, and returns the first row of each."""
        ...

    def row_and_commit(self, sql: str, values: Values = ()) -> tuple[Any, ...] | None:
        """Runs a statement, returns its first row, and commits, all in one round trip. Later statements run in another
        transaction."""
        ...

    def value(self, sql: str, values: Values = ()) -> Any:
        """Runs a statement and returns the first column of its first row; None if there is no row."""
        ...

    def blob(self, data: bytes | None) -> SqlValue:
        """Returns bytes in the form that this driver binds fastest."""
        ...

    def take_seqs(self, count: int) -> Sequence[int]:
        """Returns `count` new numbers for jobs, in order."""
        ...

    def take_numbers(self, count: int) -> tuple[Sequence[int], int]:
        """Returns at least one new number for jobs, and the control counter (lanes.py)."""
        ...

    @property
    def numbers_inserted(self) -> bool:
        """Whether an insert can number its rows itself, in their order."""
        ...

    def insert_block(self, columns: Sequence[str], *, own: int) -> str:
        """Returns an INSERT into the job table: each row has its own values in the first `own` columns, and all rows
        share the values of the others, which are bound once.

        If `seq` is not among the columns (`numbers_inserted`), the INSERT numbers the rows, and a value of the control
        counter follows them: if the counter has another value, nothing is inserted.
        """
        ...

    def savepoint(self) -> AbstractContextManager[None]:
        """Undoes everything that is done inside this context if it raises; the transaction goes on."""
        ...
