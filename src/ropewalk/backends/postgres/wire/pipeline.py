"""Several statements in one round trip, prepared where the session is ours.

The driver has pipelines of its own. They look whether something came before each statement they send, and every look is
a chance for another thread to take the interpreter; and they end with a message that lets a pooler keep a session for
us. So this speaks with the library below the driver: one write, and one wait for all that is told.
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
"""a statement, and the types of its values"""


class Pipeline:
    """Belongs to one connection, on which nothing else prepares statements."""

    def __init__(self, db: WatchedConnection, *, prepared_max: int | None) -> None:
        """Without `prepared_max` nothing is prepared."""
        self._db = db
        self._prepared_max = prepared_max
        self._prepared: dict[Shape, bytes] = {}
        self._named = 0

    @property
    def closed(self) -> bool:
        return self._db.closed

    def together(self, said: Sequence[Statement]) -> list[Reply]:
        """Run them. The first one that fails is told; those behind it are not run."""
        self._forget_some()
        return self._db.wait(self.trip(said))

    async def together_on_loop(self, said: Sequence[Statement]) -> list[Reply]:
        """The same without holding up the loop that runs this. For few statements: none is ever forgotten."""
        return await self._db.wait_on_loop(self.trip(said))

    def trip(self, said: Sequence[Statement]) -> PQGen[list[Reply]]:
        """The conversation, for whoever waits."""
        talk, transformer = self._db.pgconn, Transformer(self._db)
        bound = [each.bound(transformer) for each in said]
        talk.enter_pipeline_mode()
        try:
            results = yield from self._told(talk, bound)
        finally:
            if talk.status == ConnStatus.OK:
                talk.exit_pipeline_mode()
        return [Reply(result, transformer) for result in results]

    def _forget_some(self) -> None:
        """All, when there are too many, but between transactions: in one that failed nothing could be forgotten."""
        idle = self._db.pgconn.transaction_status == TransactionStatus.IDLE
        if idle and self._prepared_max is not None and len(self._prepared) > self._prepared_max:
            self._db.execute(b"DEALLOCATE ALL")
            self._prepared.clear()

    def _told(self, talk: PGconn, bound: Sequence[BoundStatement]) -> PQGen[list[PGresult]]:
        sent = [shape for each in bound for shape in self._send(talk, each)]
        talk.pipeline_sync()
        results = yield from _results(talk)
        for shape, result in zip(sent, results, strict=False):
            if shape is not None and result.status != ExecStatus.COMMAND_OK:
                self._prepared.pop(shape, None)
        for result in results:
            if result.status == ExecStatus.FATAL_ERROR:
                raise _error_in(result)
        return [result for shape, result in zip(sent, results, strict=True) if shape is None]

    def _send(self, talk: PGconn, bound: BoundStatement) -> list[Shape | None]:
        """What will be answered: that something is prepared, or (None) the statement itself."""
        statement, values, types, formats = bound
        if self._prepared_max is None:
            talk.send_query_params(statement, values, types, formats, Format.BINARY)
            return [None]
        shape = (statement, types)
        known = self._prepared.get(shape)
        if known is not None:
            talk.send_query_prepared(known, values, formats, Format.BINARY)
            return [None]
        self._named += 1
        name = self._prepared[shape] = b"ropewalk_%d" % self._named
        talk.send_prepare(name, statement, types)
        talk.send_query_prepared(name, values, formats, Format.BINARY)
        return [shape, None]


def _results(talk: PGconn) -> PQGen[list[PGresult]]:
    """All that is told up to the end of a trip, or up to where the line broke, if the server said why."""
    results: list[PGresult] = []
    try:
        while not results or results[-1].status != ExecStatus.PIPELINE_SYNC:
            while talk.is_busy():
                ready = yield Wait.RW if talk.flush() else Wait.R
                if ready & Ready.R:
                    talk.consume_input()
            result = talk.get_result()
            if result is not None:
                results.append(result)
            elif talk.status != ConnStatus.OK:
                talk.consume_input()  # says what is wrong
    except psycopg.OperationalError:
        if not any(result.status == ExecStatus.FATAL_ERROR for result in results):
            raise
        return results
    return results[:-1]


def _error_in(result: PGresult) -> psycopg.Error:
    """Of the server. What the library itself tells has no code, and is about the line."""
    error = error_from_result(result)
    return psycopg.OperationalError(str(error)) if error.diag.sqlstate is None else error
