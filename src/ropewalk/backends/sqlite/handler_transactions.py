"""The transaction of a handler on a SQLite file (backends/sql/handler_transactions.py).

SQLite has one writer: while this transaction is open, nobody else commits, not even renewals of leases. So its limit is
far below the length of a lease.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ropewalk.backends.sql import completion
from ropewalk.backends.sql.handler_transactions import HandlerTransaction
from ropewalk.backends.sql.lanes import LaneBook
from ropewalk.backends.sqlite.library import is_of_a_users_statement, sqlite, translated
from ropewalk.backends.sqlite.opening import open_for_user
from ropewalk.backends.sqlite.tx import Tx
from ropewalk.domain.jobs.transition import Settlement
from ropewalk.domain.time import Span
from ropewalk.ports.runtime import Runtime
from ropewalk.ports.store.leases import Settlements
from ropewalk.ports.store.user_transactions import SqlValues


class SqliteTransaction(HandlerTransaction[sqlite.Connection]):
    """A transaction of a handler, on a connection of its own to the same file."""

    _driver_errors = sqlite.Error
    _reason_for_limit = "while it is open nobody else can write to the file"

    def __init__(self, path: Path, runtime: Runtime, *, limit_us: Span) -> None:
        super().__init__(runtime, limit_us=limit_us)
        self._path = path

    def _begin(self) -> sqlite.Connection:
        # It is remembered before BEGIN, so that `_give_up` can interrupt the wait for the lock.
        self._db = db = open_for_user(self._path, wait_ms=self._limit_us // 1000)
        db.execute("BEGIN IMMEDIATE")
        return db

    def _run(self, db: sqlite.Connection, sql: str, values: SqlValues) -> list[tuple[Any, ...]]:
        rows: list[tuple[Any, ...]] = db.execute(sql, values).fetchall()
        return rows

    def _is_open(self, db: sqlite.Connection) -> bool:
        return db.in_transaction

    def _settle(self, db: sqlite.Connection, owner: str, settlement: Settlement) -> Settlements:
        answers = completion.settle(Tx(db, self._runtime.now()), LaneBook(), owner, [settlement])
        [answer] = answers.settled
        try:
            db.execute("COMMIT" if answer.move is not None else "ROLLBACK")
        except sqlite.Error as error:  # Nobody knows whether the commit has happened.
            raise translated(error, self._path, committing=True) from error
        return answers

    def _give_up(self) -> None:
        self._too_long = True
        if self._db is not None:
            self._db.interrupt()
        self._runtime.spawn(self.rollback(), name="ropewalk-sqlite-rollback")

    def _translated(self, error: Exception, *, of_user: bool) -> Exception:
        return error if of_user and is_of_a_users_statement(error) else translated(error, self._path)
