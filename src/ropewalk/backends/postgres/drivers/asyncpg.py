"""asyncpg's Connection, alone or in its pool's proxy. asyncpg itself is imported by whoever passes one.

It numbers its parameters, and asks the server for the type of each. What is text here and something else there (arrays
are put together as text, JSON is) travels as text and is cast there, so that no codec the user set has a say in it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from ropewalk.backends.postgres.drivers.driver import Answer, AsyncSpeaker, Given, as_psycopg
from ropewalk.backends.sql.user_transactions import kinds_of
from ropewalk.errors import InvalidInput

_MARK: Final = re.compile(r"%(?:(?P<percent>%)|s|\((?P<name>\w+)\)s)(?P<cast>::)?")
_WITHOUT_ROWS: Final = ("SAVEPOINT", "ROLLBACK", "RELEASE")
_JSON: Final = frozenset({"json", "jsonb"})


class AsyncpgSpeaker(AsyncSpeaker):
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
        """Always in binary: asyncpg knows no other way."""
        try:
            if sql.startswith(_WITHOUT_ROWS):
                await self._db.execute(sql)  # may be several at once
                return Answer(0, [])
            return await self._fetch(sql, values or ())
        except Exception as error:
            raise as_psycopg(error) from error

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
    """The statement with `$1`, `$2`, …, and what belongs there."""
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
    for number, kind in kinds.items():
        text = re.sub(rf"\${number}(?!\d)", f"${number}::text::{kind}", text)
    return text


def _undecoded(value: Any) -> Any:
    """JSON is decoded by whoever asked; a user may have told asyncpg to do it."""
    return msgspec.json.encode(value) if isinstance(value, list | dict) else value
