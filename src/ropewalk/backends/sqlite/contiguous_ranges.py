"""Changes jobs with consecutive numbers by one UPDATE over a range, instead of with a list of rows.

Jobs that were submitted together have consecutive numbers, and they are mostly claimed and settled together. A block of
SQL may have a second form for such rows, behind a line such as `-- range: up, same, bytes`. The line says column by
column what the values of the rows must have in common: they count up, are the same, or are bytes of one length. With a
range, SQLite only walks through the table. With a list of rows, it first writes down the list, then everything that it
is going to change, and then changes it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, Final, Literal, TypeAlias, cast

from msgspec import Struct

from ropewalk.backends.sql.tx import Row, SqlValue

Pattern: TypeAlias = Literal["up", "same", "bytes"]
"""What the values of a column have in common."""
Column: TypeAlias = tuple[Any, ...]

ROWS_MIN: Final = 16
"""A range of fewer rows is not worth a statement of its own."""
BYTES_MAX: Final = 1024
"""A row with more bytes is not worth being copied once more."""

_RANGE_FORM: Final = re.compile(r"^-- range: (.*)\n", re.MULTILINE)


class Forms(Struct, frozen=True):
    """The forms of a block: one for any list of rows, and perhaps one for a range."""

    of_rows: str
    of_range: str = ""
    patterns: tuple[Pattern, ...] = ()
    """What the rows of a range must have in common, column by column; () if there is no form for a range."""


@lru_cache(maxsize=512)
def forms_of(block: str) -> Forms:
    """Reads the forms of a block from its text."""
    of_rows, *other = _RANGE_FORM.split(block)
    if not other:
        return Forms(block)
    patterns, of_range = other
    return Forms(of_rows.strip(), of_range.strip(), cast("tuple[Pattern, ...]", tuple(patterns.split(", "))))


def split_ranges(rows: Sequence[Row], patterns: Sequence[Pattern]) -> tuple[list[Row], Sequence[Row]]:
    """Splits rows into ranges and others. Returns the values for the statement of each range, and the other rows."""
    if not patterns:
        return [], rows
    ranges: list[Row] = []
    others: list[Row] = []
    for part, values in _parts(rows, patterns):
        if values is None:
            others += part
        else:
            ranges.append(values)
    return ranges, others


def _parts(rows: Sequence[Row], patterns: Sequence[Pattern]) -> Iterator[tuple[Sequence[Row], Row | None]]:
    """Halves the rows until each part is a range or too small. Yields the values of each part as a range, or None."""
    values = _values_of_range(rows, patterns) if len(rows) >= ROWS_MIN else None
    if values is not None or len(rows) < 2 * ROWS_MIN:
        yield rows, values
        return
    half = len(rows) // 2
    yield from _parts(rows[:half], patterns)
    yield from _parts(rows[half:], patterns)


def _values_of_range(rows: Sequence[Row], patterns: Sequence[Pattern]) -> Row | None:
    """Returns the values of the first row, but of a column of bytes those of all rows in one piece, and then the number
    of rows. Returns None if the rows are no range."""
    first: Any = rows[0][0]
    if rows[-1][0] != first + len(rows) - 1:
        return None  # This is the quickest check, and most rows that are no range fail it.
    values: list[SqlValue] = []
    for column, pattern in zip(zip(*rows, strict=True), patterns, strict=True):
        if not _FITS[pattern](column):
            return None
        values.append(b"".join(column) if pattern == "bytes" and column[0] is not None else column[0])
    return (*values, len(rows))


def _counts_up(column: Column) -> bool:
    return column == tuple(range(column[0], column[0] + len(column)))


def _is_the_same(column: Column) -> bool:
    return column.count(column[0]) == len(column)


def _is_as_long(column: Column) -> bool:
    if None in column:
        return _is_the_same(column)
    # Values of no bytes do not fit: SQLite would make NULL of each.
    return 0 < len(column[0]) <= BYTES_MAX and _is_the_same(tuple(map(len, column)))


_FITS: Final = {"up": _counts_up, "same": _is_the_same, "bytes": _is_as_long}
