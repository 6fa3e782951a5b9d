"""A statement in the form in which it is sent, and its reply. Parameters are numbered, and values are in the driver's
own format."""

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
    """A statement as the driver takes it: with `%s` or `%(name)s`. Without values it is sent as it is."""

    statement: bytes
    values: Given = None

    def bound(self, transformer: Transformer) -> BoundStatement:
        """Returns the statement in the form for the server."""
        if self.values is None:
            return BoundStatement(self.statement, None, (), None)
        statement, names = _numbered(self.statement)
        values = [self.values[name] for name in names] if isinstance(self.values, Mapping) else self.values
        dumped = transformer.dump_sequence(values, [PyFormat.AUTO] * len(values))
        return BoundStatement(statement, dumped, transformer.types or (), transformer.formats)


class BoundStatement(NamedTuple):
    """A statement with numbered parameters, and values in the format in which they are sent."""

    statement: bytes
    values: Sequence[Buffer | None] | None
    types: tuple[int, ...]
    formats: Sequence[Format] | None


class Reply:
    """The reply to one statement. Its rows are decoded when somebody asks for them."""

    __slots__ = ("_result", "_transformer")

    def __init__(self, result: PGresult, transformer: Transformer) -> None:
        self._result = result
        self._transformer = transformer

    @property
    def rowcount(self) -> int:
        return self._result.command_tuples or 0

    @property
    def status(self) -> bytes | None:
        """What the statement did, such as `UPDATE 3`."""
        return self._result.command_status

    def fetchone(self) -> tuple[Any, ...] | None:
        if not self._result.ntuples:
            return None
        self._transformer.set_pgresult(self._result)
        row: tuple[Any, ...] | None = self._transformer.load_row(0, tuple)
        return row


@lru_cache(maxsize=1024)
def _numbered(statement: bytes) -> tuple[bytes, tuple[str, ...]]:
    """Returns the statement with the parameters `$1`, `$2`, …, and the names of their values, each once."""
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
