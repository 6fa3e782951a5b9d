"""One statement and its answer, as they travel: parameters are numbered, values are in the driver's own form."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple, TypeAlias

from psycopg.abc import Buffer, Transformer
from psycopg.adapt import PyFormat
from psycopg.pq import Format
from psycopg.pq.abc import PGresult

Given: TypeAlias = Sequence[Any] | Mapping[str, Any] | None

_MARK: Final = re.compile(rb"%(?:(?P<percent>%)|s|\((?P<name>\w+)\)s)")


class Statement(NamedTuple):
    """Written as the driver takes it: `%s`, `%(name)s`. Without values it is sent as it is."""

    statement: bytes
    values: Given = None

    def bound(self, transformer: Transformer) -> BoundStatement:
        """For the server."""
        if self.values is None:
            return BoundStatement(self.statement, None, (), None)
        statement, names = _numbered(self.statement)
        values = [self.values[name] for name in names] if isinstance(self.values, Mapping) else self.values
        dumped = transformer.dump_sequence(values, [PyFormat.AUTO] * len(values))
        return BoundStatement(statement, dumped, transformer.types or (), transformer.formats)


class BoundStatement(NamedTuple):
    """With numbered parameters, and values as they travel."""

    statement: bytes
    values: Sequence[Buffer | None] | None
    types: tuple[int, ...]
    formats: Sequence[Format] | None


class Reply:
    """The rows are decoded by whoever asks for them."""

    __slots__ = ("_result", "_transformer")

    def __init__(self, result: PGresult, transformer: Transformer) -> None:
        self._result = result
        self._transformer = transformer

    @property
    def rowcount(self) -> int:
        return self._result.command_tuples or 0

    @property
    def status(self) -> bytes | None:
        """What was done: `UPDATE 3`."""
        return self._result.command_status

    def fetchone(self) -> tuple[Any, ...] | None:
        if not self._result.ntuples:
            return None
        self._transformer.set_pgresult(self._result)
        row: tuple[Any, ...] | None = self._transformer.load_row(0, tuple)
        return row


@lru_cache(maxsize=1024)
def _numbered(statement: bytes) -> tuple[bytes, tuple[str, ...]]:
    """With `$1`, `$2`, …, and the names of the values that belong there, each once."""
    names: list[str] = []
    unnamed = 0

    def number(mark: re.Match[bytes]) -> bytes:
        nonlocal unnamed
        if mark["percent"]:
            return b"%"
        if mark["name"] is None:
            unnamed += 1
            return b"$%d" % unnamed
        name = mark["name"].decode()
        if name not in names:
            names.append(name)
        return b"$%d" % (names.index(name) + 1)

    return _MARK.sub(number, statement), tuple(names)
