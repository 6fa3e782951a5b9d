"""The two connection threads of a store: the reader and the writer.

The writer commits for all callers together. The requests that gathered during the last commit run in one transaction,
each inside a savepoint of its own, so that a request that fails undoes only itself. All of them are answered after one
COMMIT. Processes exclude one another by SQLite's lock. The writer waits for this lock itself, in short steps of random
length, because SQLite's own handler sleeps longer and longer.
"""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import Any, Final

from ropewalk.backends.sql.connection_thread import ConnectionThread, Request, deliver
from ropewalk.backends.sql.lanes import LaneBook
from ropewalk.backends.sqlite.checkpoint import Checkpointer
from ropewalk.backends.sqlite.library import (
    LOCKED_SECONDS_MAX,
    LockWait,
    breaks_connection,
    is_busy,
    met_damage,
    sqlite,
    translated,
)
from ropewalk.backends.sqlite.opening import open_reader, open_writer
from ropewalk.backends.sqlite.tx import Tx
from ropewalk.errors import StoreRefused, StoreUnavailable
from ropewalk.ports.runtime import Runtime


class Reader(ConnectionThread):
    """Runs every request in a short transaction of its own, on a connection that cannot write."""

    _only_reads = True

    def __init__(self, runtime: Runtime, path: Path) -> None:
        self._path = path
        self._db: sqlite.Connection | None = None
        super().__init__(runtime, "ropewalk-sqlite-reader")

    async def _serve(self, requests: list[Request[Any]]) -> None:
        for request in requests:
            with self._busy:
                self._answer(request)
            deliver([request])  # Its caller does not wait for a slow request behind it.

    def _answer(self, request: Request[Any]) -> None:
        try:
            if self._db is None:
                self._db = open_reader(self._path)
            self._db.execute("BEGIN")
            request.succeed(request.work(Tx(self._db, self._runtime.now())))
        except Exception as error:
            request.fail(translated(error, self._path))
            if breaks_connection(error):
                self._disconnect()
        if self._db is not None and not _rolled_back(self._db):
            self._disconnect()

    def _met_damage(self, error: Exception) -> bool:
        return met_damage(error)

    def _disconnect(self) -> None:
        db, self._db = self._db, None
        if db is not None:
            _close(db)


STEP_SECONDS_MAX: Final = 0.004
"""While another process holds the lock, the writer tries again after a random time up to this."""

_log = logging.getLogger("ropewalk.sqlite")


class Writer(ConnectionThread):
    """Runs the requests that have gathered in one transaction."""

    def __init__(self, runtime: Runtime, path: Path, *, allow_weaker_durability: bool, migrate: bool = True) -> None:
        self._path = path
        self._allow_weaker_durability = allow_weaker_durability
        self._migrate = migrate
        self._lanes = LaneBook()
        self._db: sqlite.Connection | None = None
        self._file: tuple[int, int] | None = None
        self.weakness: str | None = None
        """Why an acknowledged job may not survive a power loss, if the app allows that; None if it survives."""
        self._checkpointer = Checkpointer(path)
        super().__init__(runtime, "ropewalk-sqlite-writer")

    async def _serve(self, requests: list[Request[Any]]) -> None:
        if not self._try(requests):
            self._try_while_locked(requests)
        deliver(requests)
        self._checkpoint()

    def _try_while_locked(self, requests: list[Request[Any]]) -> None:
        """Tries again until the other process lets go of the lock, or the limit of time is over."""
        wait = LockWait()
        while not wait.over:
            wait.step(STEP_SECONDS_MAX * self._runtime.random())
            if self._try(requests):
                return
        self._fail(requests, StoreUnavailable(_locked(self._path)))

    def _try(self, requests: list[Request[Any]]) -> bool:
        """Runs the requests in one transaction. Returns False if another process holds the lock."""
        with self._busy:
            try:
                db = self._connection()
                db.execute("BEGIN IMMEDIATE")
            except Exception as error:
                if is_busy(error):
                    return False
                self._fail(requests, error)
            else:
                self._run(db, requests)
            return True

    def _run(self, db: sqlite.Connection, requests: list[Request[Any]]) -> None:
        tx, alone = Tx(db, self._runtime.now(), self._lanes), len(requests) == 1
        for request in requests:
            try:
                request.succeed(_run(tx, request, alone=alone))
            except Exception as error:
                if alone or breaks_connection(error) or not db.in_transaction:
                    self._fail(requests, error)
                    return
                request.fail(translated(error, self._path))
                self._lanes.forget()
        try:
            db.execute("COMMIT")
        except Exception as error:
            self._fail(requests, error, committing=True)

    def _fail(self, requests: list[Request[Any]], error: Exception, *, committing: bool = False) -> None:
        """Refuses the requests, because their transaction is over. It has changed nothing, except that nobody knows
        what a commit did if it failed."""
        refusal = translated(error, self._path, committing=committing)
        for request in requests:
            if not request.failed:
                request.fail(refusal)
        self._lanes.forget()
        if self._db is not None and (breaks_connection(error) or not _rolled_back(self._db)):
            self._disconnect()

    def _connection(self) -> sqlite.Connection:
        if self._db is None:
            opened = open_writer(
                self._path, allow_weaker_durability=self._allow_weaker_durability, migrate=self._migrate
            )
            self._db, self._file = opened.db, _identity(self._path)
            self._set_weakness(opened.weakness)
        elif _identity(self._path) != self._file:
            raise StoreRefused(
                f"{self._path} was deleted or replaced while it was in use: what is written now would be lost; "
                "put it back, or restart this process"
            )
        return self._db

    def _set_weakness(self, weakness: str | None) -> None:
        if weakness is not None and self.weakness is None:
            _log.warning("%s could lose acknowledged jobs, as allowed: %s", self._path, weakness)
        self.weakness = weakness

    def _met_damage(self, error: Exception) -> bool:
        return met_damage(error)

    def _checkpoint(self) -> None:
        with self._busy:
            if self._db is None:
                return
            try:
                self._checkpointer.after_commit(self._db)
            except sqlite.Error as error:
                if not is_busy(error):
                    self._disconnect()

    def _disconnect(self) -> None:
        db, self._db = self._db, None
        self._lanes.forget()
        if db is not None:
            _close(db)


def _run(tx: Tx, request: Request[Any], *, alone: bool) -> object:
    if alone:
        return request.work(tx)
    with tx.savepoint():
        return request.work(tx)


def _rolled_back(db: sqlite.Connection) -> bool:
    """Rolls back if a transaction is open. Returns False if even that fails."""
    try:
        if db.in_transaction:
            db.execute("ROLLBACK")
    except sqlite.Error:
        return False
    return True


def _close(db: sqlite.Connection) -> None:
    try:
        db.close()
    except sqlite.Error:
        return  # The connection is broken, and nothing on it has to be saved.


def _identity(path: Path) -> tuple[int, int] | None:
    """Returns the device and the inode of the file, by which a file that was replaced is noticed; None if it is
    gone."""
    try:
        found = os.stat(path)  # noqa: PTH116  on the hot path: a third of Path.stat's cost
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _locked(path: Path) -> str:
    return (
        f"{path} was locked by another process for {LOCKED_SECONDS_MAX:.0f} s: nothing was changed; "
        "find out which one holds a transaction open, and end it"
    )
