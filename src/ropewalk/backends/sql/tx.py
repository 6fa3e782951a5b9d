"""A transaction as the verbs see it: statements in, values out, and the store's clock inside it.

The verbs of this package are Python for every SQL store; the statements they name are each store's own (`sql`), with
the same parameters and the same answers: many rows come as one value of JSON.
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
    """What was to be inserted is there: an id, a spawn key, a place in a chain."""


class TooMuch(Exception):
    """More was asked for than fits into one value: ask for less."""


class Tx(Protocol):
    @property
    def now(self) -> Instant: ...

    @property
    def given_now(self) -> Instant | None:
        """The same for a statement that can find it out itself; None where asking first would be a trip for nothing."""
        ...

    sql: Statements
    careful: bool
    """rows that cannot be decoded are met one by one (damage.py)"""
    known_damage: frozenset[int] | None
    """damaged jobs that this work may meet while it reads carefully; None means all"""

    passed_over: frozenset[tuple[str, int]]
    """records, by kind and number, that this work leaves as they are, because changing them raised an error"""

    left_out: set[str]
    """the tables of which rows were left out meanwhile"""

    @property
    def careful_sql(self) -> Statements:
        """The same statements, where junk in a column lets none of them fail."""
        ...

    @property
    def lanes(self) -> LaneBook:
        """Of this connection: another one may know lanes that were never committed."""
        ...

    def run(self, sql: str, values: Values = ()) -> int:
        """Change something; answers how many rows."""
        ...

    def run_rows(self, block: str, rows: Sequence[Row], *rest: SqlValue) -> int:
        """The same for many rows at once; `rest` follows them in the statement. Raises AlreadyThere."""
        ...

    def run_rows_later(self, block: str, rows: Sequence[Row], *rest: SqlValue) -> None:
        """The same by the end of the transaction, for a block that surely changes one of each: nobody waits for it.

        Where a round trip is time, it travels with what follows, with the commit at the latest.
        """
        ...

    def told_rows(self, block: str, rows: Sequence[Row], *rest: SqlValue) -> list[list[int]]:
        """The same, of at least one, for a block that tells of the rows it changed, column by column."""
        ...

    def row(self, sql: str, values: Values = ()) -> tuple[Any, ...] | None:
        """Raises TooMuch."""
        ...

    def rows(self, block: str, values: Row) -> list[tuple[Any, ...] | None]:
        """The first row of each statement of a block, in one trip where trips cost."""
        ...

    def last_row(self, sql: str, values: Values = ()) -> tuple[Any, ...] | None:
        """The same, and with it the transaction ends, in the same trip: what follows is in another one."""
        ...

    def value(self, sql: str, values: Values = ()) -> Any:
        """The first column of the first row; None without one."""
        ...

    def blob(self, data: bytes | None) -> SqlValue:
        """Bytes as this driver binds them fastest."""
        ...

    def take_seqs(self, count: int) -> Sequence[int]:
        """`count` fresh numbers for jobs, in order."""
        ...

    def take_numbers(self, count: int) -> tuple[Sequence[int], int]:
        """The same, at least one, and `control`, which counts up whenever a limit or a quota changes."""
        ...

    @property
    def numbers_inserted(self) -> bool:
        """Whether an insert can number its rows itself, in their order."""
        ...

    def insert_block(self, columns: Sequence[str], *, own: int) -> str:
        """An INSERT into job: of the first `own` columns every row has its own values, the rest is bound once.

        With `own` equal to the number of columns every row has all of its own. Without `seq` (`numbers_inserted`) rows
        are numbered, and a `control` follows them: where another one holds, nothing is inserted.
        """
        ...

    def savepoint(self) -> AbstractContextManager[None]:
        """What is done inside is undone when it raises; the transaction goes on."""
        ...
