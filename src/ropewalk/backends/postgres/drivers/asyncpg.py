"""Connections of asyncpg, also those in a proxy of its pool. asyncpg is not imported here: a user who passes such a
connection has imported it.

asyncpg numbers its parameters, and asks the server for the type of each. A value that is text here and something else
on the server, such as an array or JSON, is sent as text and cast on the server, so that no codec of the user applies to
it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from ropewalk.backends.postgres.drivers.driver import Answer, AsyncDriverConnection, Given, as_psycopg_error
from ropewalk.backends.sql.user_transactions import kinds_of
from ropewalk.errors import InvalidInput

_MARK: Final = re.compile(r"%(?:(?P<percent>%)|s|\((?P<name>\w+)\)s)(?P<cast>::)?")
_WITHOUT_ROWS: Final = ("SAVEPOINT", "ROLLBACK", "RELEASE")
_JSON: Final = frozenset({"json", "jsonb"})


class AsyncpgConnection(AsyncDriverConnection):
    """A connection of asyncpg that is inside a transaction."""

    def __init__(self, db: Any) -> None:
        if db.is_closed():
            raise InvalidInput("connection= is closed: use another one", field="connection")
        if not db.is_in_transaction():
            raise InvalidInput(
                "connection= is in no transaction: enqueue inside `async with connection.transaction():`, or leave "
                "connection= out",
                field="connection",
            )
        self._db = db

    async def execute(self, sql: str, values: Given = None, *, binary: bool = False) -> Answer:
        """Results are always binary, because asyncpg knows no other format."""
        try:
            if sql.startswith(_WITHOUT_ROWS):
                await self._db.execute(sql)  # There may be several statements in it.
                return Answer(0, [])
            return await self._fetch(sql, values or ())
        except Exception as error:
            raise as_psycopg_error(error) from error

    async def _fetch(self, sql: str, values: Sequence[Any] | Mapping[str, Any]) -> Answer:
        text, given = numbered(sql, values)
        statement = await self._db.prepare(text)
        kinds = enumerate((kind.name for kind in statement.get_parameters()), 1)
        uncast = {number: kind for number, kind in kinds if kind in _JSON}
        if uncast:
            statement = await self._db.prepare(cast_from_text(text, uncast))
        rows = [tuple(map(_undecoded, row)) for row in await statement.fetch(*given)]
        *_, count = statement.get_statusmsg().split()
        return Answer(int(count) if count.isdigit() else 0, rows)


def is_awaited(connection: object) -> bool:
    return bool(kinds_of(connection, "asyncpg") & {"Connection", "PoolConnectionProxy"})


def numbered(sql: str, values: Sequence[Any] | Mapping[str, Any]) -> tuple[str, list[Any]]:
    """Returns the statement with the parameters `$1`, `$2`, …, and their values."""
    given: list[Any] = []
    in_order = iter(() if isinstance(values, Mapping) else values)

    def number(mark: re.Match[str]) -> str:
        cast = mark["cast"] or ""
        if mark["percent"]:
            return f"%{cast}"
        given.append(values[mark["name"]] if isinstance(values, Mapping) else next(in_order))
        return f"${len(given)}" + ("::text" if cast and isinstance(given[-1], str) else "") + cast

    return _MARK.sub(number, sql), given


def cast_from_text(text: str, kinds: Mapping[int, str]) -> str:
    """Returns the statement with casts from text for these parameters."""
    for number, kind in kinds.items():
        text = re.sub(rf"\${number}(?!\d)", f"${number}::text::{kind}", text)
    return text


def _undecoded(value: Any) -> Any:
    """Returns JSON as bytes, even if the user has told asyncpg to decode it."""
    return msgspec.json.encode(value) if isinstance(value, list | dict) else value
