"""A user's own writes and the completion of a job in one commit, on a connection of their own to the same file.

SQLite has one writer: while this transaction is open, nobody else commits, renewals included. So it begins with its
first statement and is rolled back when it takes longer than its limit, which is far below a lease.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from ropewalk.backends.sql import completion
from ropewalk.backends.sql.lanes import LaneBook
from ropewalk.backends.sqlite.library import is_of_a_users_statement, sqlite, translated
from ropewalk.backends.sqlite.opening import open_for_user
from ropewalk.backends.sqlite.tx import Tx
from ropewalk.domain.jobs.transition import Settlement
from ropewalk.domain.time import SECOND, Span
from ropewalk.errors import InvalidInput, WaitTimeout
from ropewalk.ports.runtime import Runtime, Timer
from ropewalk.ports.store.leases import Settlements
from ropewalk.ports.store.user_transactions import SqlValues, UserTransaction

T = TypeVar("T")


class SqliteTransaction(UserTransaction):
    def __init__(self, path: Path, runtime: Runtime, *, limit_us: Span) -> None:
        self._path = path
        self._runtime = runtime
        self._limit_us = limit_us
        self._db: sqlite.Connection | None = None
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

    async def _in_thread(self, work: Callable[[sqlite.Connection], T], *, of_user: bool = False) -> T:
        if self._timer is None and not self._over:
            self._timer = self._runtime.after(self._limit_us / SECOND, self._give_up)
        return await self._runtime.in_thread(lambda: self._work(work, of_user=of_user))

    def _work(self, work: Callable[[sqlite.Connection], T], *, of_user: bool) -> T:
        with self._one_at_a_time:
            self._check_open()
            try:
                return work(self._begun())
            except sqlite.Error as error:
                self._check_open()  # it was interrupted: say why
                if of_user and is_of_a_users_statement(error):
                    raise
                raise translated(error, self._path) from error

    def _begun(self) -> sqlite.Connection:
        if self._db is None:
            self._db = open_for_user(self._path, wait_ms=self._limit_us // 1000)
            self._db.execute("BEGIN IMMEDIATE")
        return self._db

    def _check_open(self) -> None:
        if self._too_long:
            raise WaitTimeout(
                f"the transaction was open for more than {self._limit_us / SECOND:g} s and is rolled back: while it is "
                "open nobody else can write to the file; do slow work before it"
            )
        if self._over:
            raise InvalidInput("this transaction is over: it ends with its `async with` block")

    def _execute(self, db: sqlite.Connection, sql: str, values: SqlValues) -> list[tuple[Any, ...]]:
        rows: list[tuple[Any, ...]] = db.execute(sql, values).fetchall()
        if not db.in_transaction:
            self._over = True
            raise InvalidInput(f"{sql!r} ended the transaction: leave COMMIT and ROLLBACK to ropewalk", field="sql")
        return rows

    def _settle(self, db: sqlite.Connection, owner: str, settlement: Settlement) -> Settlements:
        answers = completion.settle(Tx(db, self._runtime.now()), LaneBook(), owner, [settlement])
        [answer] = answers.settled
        try:
            db.execute("COMMIT" if answer.move is not None else "ROLLBACK")
        except sqlite.Error as error:  # whether it happened is not known
            raise translated(error, self._path, committing=True) from error
        return answers

    def _give_up(self) -> None:
        """On the loop, while a statement may be running in a thread: it is interrupted, then undone."""
        self._too_long = True
        if self._db is not None:
            self._db.interrupt()
        self._runtime.spawn(self.rollback(), name="ropewalk-sqlite-rollback")

    def _close(self) -> None:
        with self._one_at_a_time:
            db, self._db = self._db, None
            if db is not None:
                db.close()  # what was not committed is undone with it
