"""Enqueues jobs through a user's own connection to the same file, in the thread of that connection.

The writer (connections.py) cannot be used for that, because it might wait for a lock that the user's transaction holds.
Only SQLAlchemy reports when the transaction commits; otherwise workers see that the file has changed (listening.py).
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, TypeVar

from ropewalk.backends.sql import quotas, sqlalchemy_sessions
from ropewalk.backends.sql.user_transactions import ConnectionLocks, kinds_of, submit_all, unknown
from ropewalk.backends.sqlite.library import sqlite, translated
from ropewalk.backends.sqlite.opening import check_user_connection
from ropewalk.backends.sqlite.tx import Tx
from ropewalk.errors import InvalidInput, Unsupported, WeakDurability
from ropewalk.ports.runtime import Runtime
from ropewalk.ports.store.submission import Submission
from ropewalk.ports.store.user_transactions import AfterCommit, Answers, Blocking, Join, UserConnection

T = TypeVar("T")

WANTED: Final = (
    f"a connection made by ropewalk.sqlite3.connect(...), or of SQLAlchemy on such {sqlalchemy_sessions.WANTED}"
)

_DRIVERS: Final = ("sqlite3", "pysqlite3", "_sqlite3", "aiosqlite", "apsw", "sqlean")
_FULL: Final = 2
_TABLES_HIDDEN: Final = """
SELECT name FROM temp.sqlite_master WHERE name IN (SELECT name FROM main.sqlite_master WHERE type = 'table')
"""


class SqliteJoining:
    """Checks connections of users, and enqueues jobs in their transactions."""

    def __init__(self, path: Path, runtime: Runtime, *, allow_weaker_durability: bool) -> None:
        self._path = path
        self._runtime = runtime
        self._allow_weaker_durability = allow_weaker_durability
        self._watches = sqlalchemy_sessions.Watches()
        self._locks = ConnectionLocks()

    def join(self, connection: UserConnection) -> Join:
        if sqlalchemy_sessions.is_awaited(connection):
            raise Unsupported(
                f"connection={type(connection).__name__} cannot be joined on SQLite: its driver brings an SQLite "
                "library of its own, and two in one process drop each other's locks; use a Session"
            )
        if not sqlalchemy_sessions.is_blocking(connection):
            _checked(connection)
        return Blocking(lambda submissions, after: self._enqueue(connection, submissions, after))

    def _enqueue(self, connection: object, submissions: Sequence[Submission], after_commit: AfterCommit) -> Answers:
        with self._locks.blocking(connection):
            begun = sqlalchemy_sessions.begun(connection)
            answers = self._submit(_checked(begun.driver), submissions)
            self._watches.after_commit(begun.session, lambda: after_commit(answers))
            return answers

    def _submit(self, db: sqlite.Connection, submissions: Sequence[Submission]) -> Answers:
        try:
            with _plain_rows(db):
                return self._in_transaction(db, lambda tx: submit_all(tx, submissions, quotas.admission))
        except sqlite.Error as error:
            translation = translated(error, self._path)
            if translation is error:
                raise
            raise translation from error

    def _in_transaction(self, db: sqlite.Connection, work: Callable[[Tx], T]) -> T:
        self._check_file(db)
        self._check_schema(db)
        with _begun(db):
            tx = Tx(db, self._runtime.now())
            with tx.savepoint():
                return work(tx)

    def _check_file(self, db: sqlite.Connection) -> None:
        """Raises if the connection leads to another file or is less durable. The file is compared by its name and
        number alone: opening and closing it here would drop the locks of this process."""
        [name] = [file for _, schema, file in db.execute("PRAGMA main.database_list") if schema == "main"]
        if not name or not self._path.exists() or not self._path.samefile(name):
            raise InvalidInput(
                f"connection= leads to {name or 'no file'}: pass one whose main file is {self._path}, where jobs go",
                field="connection",
            )
        [level] = db.execute("PRAGMA main.synchronous").fetchone()
        if level < _FULL and not self._allow_weaker_durability:
            raise WeakDurability(
                f"connection= could lose acknowledged jobs: its synchronous is {level}. Say PRAGMA synchronous = FULL "
                "when it is opened, or pass allow_weaker_durability=True to the app"
            )

    def _check_schema(self, db: sqlite.Connection) -> None:
        check_user_connection(db, self._path)
        shadows = [name for (name,) in db.execute(_TABLES_HIDDEN)]
        if shadows:
            raise InvalidInput(
                f"connection= has temporary tables that hide ropewalk's: {', '.join(shadows)}; give them other names",
                field="connection",
            )


def _checked(connection: Any) -> sqlite.Connection:
    if isinstance(connection, sqlite.Connection):
        return connection
    if any("Connection" in kinds_of(connection, driver) for driver in _DRIVERS):
        raise InvalidInput(
            f"connection= was made by {type(connection).__module__}, while this store uses {sqlite.__name__}: two "
            "SQLite libraries in one process drop each other's locks, and the file can be corrupted. Make it with "
            "ropewalk.sqlite3.connect(...), or create_engine(..., module=ropewalk.sqlite3)",
            field="connection",
        )
    raise unknown(connection, WANTED)


@contextmanager
def _plain_rows(db: sqlite.Connection) -> Generator[None]:
    """Has the connection return rows as tuples and text as str inside this context, whatever the user chose."""
    rows, text = db.row_factory, db.text_factory
    db.row_factory, db.text_factory = None, str
    try:
        yield
    finally:
        db.row_factory, db.text_factory = rows, text


@contextmanager
def _begun(db: sqlite.Connection) -> Generator[None]:
    """Begins the transaction, if the driver would begin one before a write: a savepoint alone would commit at its end.

    If the work then fails, the transaction that was begun here is rolled back: otherwise nobody else could write until
    the user ended it.
    """
    if db.in_transaction:
        yield
        return
    if db.isolation_level is None or getattr(db, "autocommit", None) is True:
        raise InvalidInput(
            "connection= is in no transaction (it commits every statement): execute BEGIN IMMEDIATE first, or leave "
            "connection= out",
            field="connection",
        )
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        db.rollback()
        raise
