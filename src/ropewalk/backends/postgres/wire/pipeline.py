"""Runs several statements in one round trip, and prepares them unless a pooler is in between.

The pipelines of the driver look for input before each statement that they send, and each look gives another thread a
chance to take the interpreter. They also end with a message that makes a pooler keep a session for this connection. So
this module uses the library below the driver: one write, and one wait for all answers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import psycopg
from psycopg.abc import PQGen
from psycopg.adapt import Transformer
from psycopg.errors import error_from_result
from psycopg.pq import ConnStatus, ExecStatus, Format, TransactionStatus
from psycopg.pq.abc import PGconn, PGresult
from psycopg.waiting import Ready, Wait

from ropewalk.backends.postgres.wire.connection import WatchedConnection
from ropewalk.backends.postgres.wire.statement import BoundStatement, Reply, Statement

Shape: TypeAlias = tuple[bytes, tuple[int, ...]]
"""A statement and the types of its values."""


class Pipeline:
    """Sends statements on one connection, on which nothing else prepares statements."""

    def __init__(self, db: WatchedConnection, *, prepared_max: int | None) -> None:
        """With `prepared_max=None`, nothing is prepared."""
        self._db = db
        self._prepared_max = prepared_max
        self._prepared: dict[Shape, bytes] = {}
        self._named = 0

    @property
    def closed(self) -> bool:
        return self._db.closed

    def run(self, statements: Sequence[Statement]) -> list[Reply]:
        """Runs the statements and returns the reply of each. If one of them fails, its error is raised, and those
        behind it do not run."""
        self._forget_prepared()
        return self._db.wait(self.round_trip(statements))

    async def run_on_loop(self, statements: Sequence[Statement]) -> list[Reply]:
        """Runs the statements like `run`, but waits on the event loop. It is meant for few distinct statements, because
        it never forgets a prepared one."""
        return await self._db.wait_on_loop(self.round_trip(statements))

    def round_trip(self, statements: Sequence[Statement]) -> PQGen[list[Reply]]:
        """Returns the generator of the conversation, for a caller that waits for the socket."""
        connection, transformer = self._db.pgconn, Transformer(self._db)
        bound = [each.bound(transformer) for each in statements]
        connection.enter_pipeline_mode()
        try:
            results = yield from self._conversation(connection, bound)
        finally:
            if connection.status == ConnStatus.OK:
                connection.exit_pipeline_mode()
        return [Reply(result, transformer) for result in results]

    def _forget_prepared(self) -> None:
        """Forgets all prepared statements if there are too many. This is possible only between transactions, because
        one that has failed accepts no command."""
        idle = self._db.pgconn.transaction_status == TransactionStatus.IDLE
        if idle and self._prepared_max is not None and len(self._prepared) > self._prepared_max:
            self._db.execute(b"DEALLOCATE ALL")
            self._prepared.clear()

    def _conversation(self, connection: PGconn, bound: Sequence[BoundStatement]) -> PQGen[list[PGresult]]:
        """Sends the statements and yields until all answers are there. Returns the results of the statements."""
        sent = [shape for each in bound for shape in self._send(connection, each)]
        connection.pipeline_sync()
        results = yield from _results(connection)
        for shape, result in zip(sent, results, strict=False):
            if shape is not None and result.status != ExecStatus.COMMAND_OK:
                self._prepared.pop(shape, None)
        for result in results:
            if result.status == ExecStatus.FATAL_ERROR:
                raise _error_in(result)
        return [result for shape, result in zip(sent, results, strict=True) if shape is None]

    def _send(self, connection: PGconn, bound: BoundStatement) -> list[Shape | None]:
        """Sends a statement. Returns which answers will come: its shape stands for an answer to preparing it, and None
        for the answer of the statement."""
        statement, values, types, formats = bound
        if self._prepared_max is None:
            connection.send_query_params(statement, values, types, formats, Format.BINARY)
            return [None]
        shape = (statement, types)
        known = self._prepared.get(shape)
        if known is not None:
            connection.send_query_prepared(known, values, formats, Format.BINARY)
            return [None]
        self._named += 1
        name = self._prepared[shape] = b"ropewalk_%d" % self._named
        connection.send_prepare(name, statement, types)
        connection.send_query_prepared(name, values, formats, Format.BINARY)
        return [shape, None]


def _results(connection: PGconn) -> PQGen[list[PGresult]]:
    """Yields until the round trip ends, and returns all results. If the connection breaks, returns the results so far,
    provided that they contain the reason."""
    results: list[PGresult] = []
    try:
        while not results or results[-1].status != ExecStatus.PIPELINE_SYNC:
            while connection.is_busy():
                ready = yield Wait.RW if connection.flush() else Wait.R
                if ready & Ready.R:
                    connection.consume_input()
            result = connection.get_result()
            if result is not None:
                results.append(result)
            elif connection.status != ConnStatus.OK:
                connection.consume_input()  # This raises the error of the connection.
    except psycopg.OperationalError:
        if not any(result.status == ExecStatus.FATAL_ERROR for result in results):
            raise
        return results
    return results[:-1]


def _error_in(result: PGresult) -> psycopg.Error:
    """Returns the error of a result. An error without a code comes from the library and not from the server, and is one
    of the connection."""
    error = error_from_result(result)
    return psycopg.OperationalError(str(error)) if error.diag.sqlstate is None else error
