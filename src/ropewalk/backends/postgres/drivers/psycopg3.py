"""Connections of psycopg, blocking and asynchronous ones, whatever row factory, cursor factory or JSON loader the user
chose."""

from __future__ import annotations

from typing import Any, Final, TypeGuard

import psycopg
from psycopg.pq import PipelineStatus, TransactionStatus
from psycopg.rows import tuple_row

from ropewalk.backends.postgres.drivers.driver import Answer, AsyncDriverConnection, DriverConnection, Given
from ropewalk.backends.postgres.tx import Raw
from ropewalk.errors import InvalidInput

_WRONG: Final = {
    TransactionStatus.ACTIVE: "is running a statement of somebody else: wait for it, or use another one",
    TransactionStatus.INERROR: "is in a transaction in which a statement failed: roll it back first",
    TransactionStatus.UNKNOWN: "is closed or broken: use another one",
}


class PsycopgConnection(DriverConnection):
    """A blocking connection of psycopg that is inside a transaction."""

    def __init__(self, db: psycopg.Connection[Any]) -> None:
        check(db)
        self._db = db

    def execute(self, sql: str, values: Given = None, *, binary: bool = False) -> Answer:
        with psycopg.Cursor(self._db, row_factory=tuple_row) as cursor:
            cursor.adapters.register_loader("json", Raw)
            cursor.execute(sql.encode(), values, binary=binary, prepare=False)
            return Answer(cursor.rowcount, [] if cursor.description is None else cursor.fetchall())

    def execute_uninterrupted(self, sql: str) -> None:
        self.execute(sql)


class AsyncPsycopgConnection(AsyncDriverConnection):
    """An asynchronous connection of psycopg that is inside a transaction."""

    def __init__(self, db: psycopg.AsyncConnection[Any]) -> None:
        check(db)
        self._db = db

    async def execute(self, sql: str, values: Given = None, *, binary: bool = False) -> Answer:
        async with psycopg.AsyncCursor(self._db, row_factory=tuple_row) as cursor:
            cursor.adapters.register_loader("json", Raw)
            await cursor.execute(sql.encode(), values, binary=binary, prepare=False)
            return Answer(cursor.rowcount, [] if cursor.description is None else await cursor.fetchall())


def is_blocking(connection: object) -> TypeGuard[psycopg.Connection[Any]]:
    return isinstance(connection, psycopg.Connection)


def is_awaited(connection: object) -> TypeGuard[psycopg.AsyncConnection[Any]]:
    return isinstance(connection, psycopg.AsyncConnection)


def check(db: psycopg.Connection[Any] | psycopg.AsyncConnection[Any]) -> None:
    """Raises InvalidInput if the connection is in no transaction. Without autocommit, psycopg begins one with the first
    statement."""
    status = db.info.transaction_status
    if status in _WRONG:
        raise InvalidInput(f"connection= {_WRONG[status]}", field="connection")
    if status is TransactionStatus.IDLE and db.autocommit:
        raise InvalidInput(
            "connection= is in no transaction (autocommit is on): enqueue inside `with connection.transaction():`, or "
            "leave connection= out",
            field="connection",
        )
    if db.pgconn.pipeline_status != PipelineStatus.OFF:
        raise InvalidInput(
            "connection= is in pipeline mode, where a refusal would fail the whole pipeline: enqueue outside "
            "`with connection.pipeline():`",
            field="connection",
        )
