"""A user's own writes and the completion of a job in one commit, on a connection of their own to the same database.

No lock of ours is taken before the settlement, which is the last thing before the commit. It is rolled back when it
takes longer than its limit: what it has locked others wait for.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, TypeVar

import psycopg
from psycopg.errors import SerializationFailure
from psycopg.pq import TransactionStatus

from ropewalk.backends.postgres.connections import Clock, Connector, beginning
from ropewalk.backends.postgres.faults import is_of_a_users_statement, translated
from ropewalk.backends.postgres.statements import CAREFUL, SQL
from ropewalk.backends.postgres.tx import Connection, Tx
from ropewalk.backends.postgres.wire.transaction import UserTransactionWire
from ropewalk.backends.sql import completion, leases
from ropewalk.backends.sql.lanes import LaneBook
from ropewalk.domain.jobs.transition import Settlement
from ropewalk.domain.time import SECOND, Instant, Span
from ropewalk.errors import InvalidInput, WaitTimeout
from ropewalk.ports.runtime import Runtime, Timer
from ropewalk.ports.store.consequences import Consequences
from ropewalk.ports.store.leases import Settled, Settlements
from ropewalk.ports.store.user_transactions import SqlValues, UserTransaction

T = TypeVar("T")


class PostgresTransaction(UserTransaction):
    def __init__(self, runtime: Runtime, door: Connector, *, clock: Clock, limit_us: Span) -> None:
        self._runtime = runtime
        self._door = door
        self._clock = clock
        self._limit_us = limit_us
        self._db: Connection | None = None
        self._timer: Timer | None = None
        self._one_at_a_time = threading.Lock()
        self._too_long = False
        self._over = False

    async def execute(self, sql: str, values: SqlValues = ()) -> list[tuple[Any, ...]]:
        return await self._in_thread(lambda db: self._execute(db, sql, values), of_user=True)

    async def settle(self, owner: str, settlement: Settlement) -> Settlements:
        try:
            return await self._in_thread(lambda db: self._settle(db, owner, settlement))
        finally:
            await self.rollback()

    async def rollback(self) -> None:
        self._over = True
        if self._timer is not None:
            self._timer.cancel()
        if self._db is not None:
            await self._runtime.in_thread(self._close)

    async def _in_thread(self, work: Callable[[Connection], T], *, of_user: bool = False) -> T:
        if self._timer is None and not self._over:
            self._timer = self._runtime.after(self._limit_us / SECOND, self._give_up)
        return await self._runtime.in_thread(lambda: self._work(work, of_user=of_user))

    def _work(self, work: Callable[[Connection], T], *, of_user: bool) -> T:
        with self._one_at_a_time:
            self._check_open()
            try:
                return work(self._begun())
            except psycopg.Error as error:
                self._check_open()  # it was interrupted: say why
                if of_user and is_of_a_users_statement(error):
                    raise
                raise translated(error, self._door.address.shown) from error

    def _begun(self) -> Connection:
        if self._db is None:
            self._db = self._door.open()
            self._db.execute(b"BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE")
        return self._db

    def _check_open(self) -> None:
        if self._too_long:
            raise WaitTimeout(
                f"the transaction was open for more than {self._limit_us / SECOND:g} s and is rolled back: what it has "
                "locked others wait for; do slow work before it"
            )
        if self._over:
            raise InvalidInput("this transaction is over: it ends with its `async with` block")

    def _execute(self, db: Connection, sql: str, values: SqlValues) -> list[tuple[Any, ...]]:
        cursor = db.execute(sql.encode(), values or None)
        rows = cursor.fetchall() if cursor.description is not None else []
        if db.info.transaction_status is TransactionStatus.IDLE:
            self._over = True
            raise InvalidInput(f"{sql!r} ended the transaction: leave COMMIT and ROLLBACK to ropewalk", field="sql")
        return rows

    def _settle(self, db: Connection, owner: str, settlement: Settlement) -> Settlements:
        try:
            answers = completion.settle(
                Tx(UserTransactionWire(db, self._enter(db)), LaneBook(), SQL, CAREFUL), LaneBook(), owner, [settlement]
            )
        except SerializationFailure:
            # A job was moved while we waited for it. Undone is undone; if it was this one, say so.
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
            raise translated(error, self._door.address.shown, committing=True) from error
        assert done == "COMMIT", f"a transaction in which a statement had failed was committed: {done}"
        return answers

    def _lost(self, db: Connection, owner: str, settlement: Settlement) -> Settled | None:
        db.execute(b"BEGIN ISOLATION LEVEL READ COMMITTED READ ONLY")
        tx = Tx(UserTransactionWire(db, self._enter(db)), LaneBook(), SQL, CAREFUL)
        reason = leases.why_lost(tx, owner, settlement.seq, settlement.fence)
        db.execute(b"ROLLBACK")
        return None if reason is None else Settled(seq=settlement.seq, fence=settlement.fence, lost=reason)

    def _enter(self, db: Connection) -> Instant:
        """From here on our names mean our tables. The time."""
        found = db.execute(beginning(self._door.address.schema)).fetchone()
        assert found is not None
        now: Instant = self._runtime.now() if self._clock == "runtime" else found[0]
        return now

    def _give_up(self) -> None:
        """On the loop, while a statement may be running in a thread: it is interrupted, then undone."""
        self._too_long = True
        if self._db is not None:
            self._runtime.spawn(self._cancel(self._db), name="ropewalk-postgres-rollback")

    async def _cancel(self, db: Connection) -> None:
        await self._runtime.in_thread(lambda: db.cancel_safe(timeout=self._limit_us / SECOND))
        await self.rollback()

    def _close(self) -> None:
        with self._one_at_a_time:
            db, self._db = self._db, None
            if db is not None:
                db.close()  # what was not committed is undone with it
