"""Jobs that stand in a row: what they have in common is said once, and one UPDATE runs over all of them.

Jobs that were submitted together have numbers that count up, and so they are mostly claimed and settled. A block of SQL
may say how such rows are changed (`-- neighbours: up, same, bytes`): column by column their values count up, are the
same, or are bytes of one length. Then SQLite walks through a range of the table; with a list of rows it writes down the
list first, then everything it is going to change, and then changes it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, Final, Literal, TypeAlias, cast

from msgspec import Struct

from ropewalk.backends.sql.tx import Row, SqlValue

Alike: TypeAlias = Literal["up", "same", "bytes"]
Column: TypeAlias = tuple[Any, ...]

FEWEST: Final = 16
"""rows that are worth a statement of their own"""
BYTES_MAX: Final = 1024
"""of a row; more is not worth being copied once more"""

_OTHER_WAY: Final = re.compile(r"^-- neighbours: (.*)\n", re.MULTILINE)


class Ways(Struct, frozen=True):
    """How a block changes rows: any rows, and those in a row where it tells."""

    of_any: str
    of_neighbours: str = ""
    alike: tuple[Alike, ...] = ()


@lru_cache(maxsize=512)
def ranges_of(block: str) -> Ways:
    of_any, *other = _OTHER_WAY.split(block)
    if not other:
        return Ways(block)
    alike, of_neighbours = other
    return Ways(of_any.strip(), of_neighbours.strip(), cast("tuple[Alike, ...]", tuple(alike.split(", "))))


def parted(rows: Sequence[Row], alike: Sequence[Alike]) -> tuple[list[Row], Sequence[Row]]:
    """What is said of those that are neighbours, a row for every piece of them; and the others, one by one."""
    if not alike:
        return [], rows
    pieces: list[Row] = []
    others: list[Row] = []
    for piece, said in _pieces(rows, alike):
        if said is None:
            others += piece
        else:
            pieces.append(said)
    return pieces, others


def _pieces(rows: Sequence[Row], alike: Sequence[Alike]) -> Iterator[tuple[Sequence[Row], Row | None]]:
    said = _together(rows, alike) if len(rows) >= FEWEST else None
    if said is not None or len(rows) < 2 * FEWEST:
        yield rows, said
        return
    half = len(rows) // 2
    yield from _pieces(rows[:half], alike)
    yield from _pieces(rows[half:], alike)


def _together(rows: Sequence[Row], alike: Sequence[Alike]) -> Row | None:
    """The values of the first row, of bytes those of all, and how many rows; None where they are no neighbours."""
    first: Any = rows[0][0]
    if rows[-1][0] != first + len(rows) - 1:
        return None  # most that are not show it here
    said: list[SqlValue] = []
    for column, how in zip(zip(*rows, strict=True), alike, strict=True):
        if not _FITS[how](column):
            return None
        said.append(b"".join(column) if how == "bytes" and column[0] is not None else column[0])
    return (*said, len(rows))


def _counts_up(column: Column) -> bool:
    return column == tuple(range(column[0], column[0] + len(column)))


def _is_the_same(column: Column) -> bool:
    return column.count(column[0]) == len(column)


def _is_as_long(column: Column) -> bool:
    if None in column:
        return _is_the_same(column)
    # SQLite makes NULL of a piece of nothing.
    return 0 < len(column[0]) <= BYTES_MAX and _is_the_same(tuple(map(len, column)))


_FITS: Final = {"up": _counts_up, "same": _is_the_same, "bytes": _is_as_long}
