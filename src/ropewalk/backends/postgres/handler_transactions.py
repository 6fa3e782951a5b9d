"""The transaction of a handler on PostgreSQL (backends/sql/handler_transactions.py).

It takes no lock of ropewalk's before the settlement, which is the last thing before the commit.
"""

from __future__ import annotations

from typing import Any

import psycopg
from psycopg.errors import SerializationFailure
from psycopg.pq import TransactionStatus

from ropewalk.backends.postgres.connections import Clock, Connector, beginning
from ropewalk.backends.postgres.faults import is_of_a_users_statement, translated
from ropewalk.backends.postgres.statements import CAREFUL, SQL
from ropewalk.backends.postgres.tx import Connection, Tx
from ropewalk.backends.postgres.wire.transaction import UserTransactionWire
from ropewalk.backends.sql import completion, leases
from ropewalk.backends.sql.handler_transactions import HandlerTransaction
from ropewalk.backends.sql.lanes import LaneBook
from ropewalk.domain.jobs.transition import Settlement
from ropewalk.domain.time import SECOND, Instant, Span
from ropewalk.ports.runtime import Runtime
from ropewalk.ports.store.consequences import Consequences
from ropewalk.ports.store.leases import Settled, Settlements
from ropewalk.ports.store.user_transactions import SqlValues


class PostgresTransaction(HandlerTransaction[Connection]):
    """A transaction of a handler, on a connection of its own to the same database."""

    _driver_errors = psycopg.Error
    _reason_for_limit = "others wait for what it has locked"

    def __init__(self, runtime: Runtime, connector: Connector, *, clock: Clock, limit_us: Span) -> None:
        super().__init__(runtime, limit_us=limit_us)
        self._connector = connector
        self._clock = clock

    def _begin(self) -> Connection:
        # It is remembered before BEGIN, so that `_give_up` can cancel a statement that hangs.
        self._db = db = self._connector.open()
        db.execute(b"BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE")
        return db

    def _run(self, db: Connection, sql: str, values: SqlValues) -> list[tuple[Any, ...]]:
        cursor = db.execute(sql.encode(), values or None)
        return cursor.fetchall() if cursor.description is not None else []

    def _is_open(self, db: Connection) -> bool:
        return db.info.transaction_status is not TransactionStatus.IDLE

    def _settle(self, db: Connection, owner: str, settlement: Settlement) -> Settlements:
        try:
            tx = Tx(UserTransactionWire(db, self._enter(db)), LaneBook(), SQL, CAREFUL)
            answers = completion.settle(tx, LaneBook(), owner, [settlement])
        except SerializationFailure:
            # Another transaction changed a job while this one waited for it. Everything is undone; if the job was the
            # one of this attempt, the answer says that its lease is lost.
            db.execute(b"ROLLBACK")
            lost = self._lost(db, owner, settlement)
            if lost is None:
                raise
            return Settlements(settled=[lost], consequences=Consequences())
        [answer] = answers.settled
        if answer.move is None:
            db.execute(b"ROLLBACK")
            return answers
        try:
            done = db.execute(b"COMMIT").statusmessage
        except psycopg.Error as error:
            raise translated(error, self._connector.address.shown, committing=True) from error
        assert done == "COMMIT", f"a transaction in which a statement had failed was committed: {done}"
        return answers

    def _lost(self, db: Connection, owner: str, settlement: Settlement) -> Settled | None:
        """Returns the answer for a lost lease; None if the lease is not lost."""
        db.execute(b"BEGIN ISOLATION LEVEL READ COMMITTED READ ONLY")
        tx = Tx(UserTransactionWire(db, self._enter(db)), LaneBook(), SQL, CAREFUL)
        reason = leases.why_lost(tx, owner, settlement.seq, settlement.fence)
        db.execute(b"ROLLBACK")
        return None if reason is None else Settled(seq=settlement.seq, fence=settlement.fence, lost=reason)

    def _enter(self, db: Connection) -> Instant:
        """Makes the settings that ropewalk's statements need, and returns the time. From here on, names of tables mean
        those of ropewalk."""
        found = db.execute(beginning(self._connector.address.schema)).fetchone()
        assert found is not None
        now: Instant = self._runtime.now() if self._clock == "runtime" else found[0]
        return now

    def _give_up(self) -> None:
        self._too_long = True
        if self._db is not None:
            self._runtime.spawn(self._cancel(self._db), name="ropewalk-postgres-rollback")

    async def _cancel(self, db: Connection) -> None:
        await self._runtime.in_thread(lambda: db.cancel_safe(timeout=self._limit_us / SECOND))
        await self.rollback()

    def _translated(self, error: Exception, *, of_user: bool) -> Exception:
        return error if of_user and is_of_a_users_statement(error) else translated(error, self._connector.address.shown)
