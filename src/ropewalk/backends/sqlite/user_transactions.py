"""Enqueueing through a user's own connection to the same file, in the thread it belongs to.

Never by way of the writer (connections.py): whoever is in a transaction may hold the lock it would wait for. Nothing is
said when the transaction commits, except by SQLAlchemy: workers see the file change (listening.py).
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, TypeVar

from ropewalk.backends.sql import quotas, sqlalchemy_sessions
from ropewalk.backends.sql.user_transactions import ConnectionLocks, kinds_of, submit_all, unknown
from ropewalk.backends.sqlite.library import sqlite, translated
from ropewalk.backends.sqlite.opening import check_visited
from ropewalk.backends.sqlite.tx import Tx
from ropewalk.errors import InvalidInput, Unsupported, WeakDurability
from ropewalk.ports.runtime import Runtime
from ropewalk.ports.store.submission import Submission
from ropewalk.ports.store.user_transactions import AfterCommit, Answers, Blocking, Join, UserConnection

T = TypeVar("T")

WANTED: Final = (
    f"a connection made by ropewalk.sqlite3.connect(...), or of SQLAlchemy on such {sqlalchemy_sessions.WANTED}"
)

_LIBRARIES: Final = ("sqlite3", "pysqlite3", "_sqlite3", "aiosqlite", "apsw", "sqlean")
_FULL: Final = 2
_SHADOWS: Final = """
SELECT name FROM temp.sqlite_master WHERE name IN (SELECT name FROM main.sqlite_master WHERE type = 'table')
"""


class SqliteJoining:
    def __init__(self, path: Path, runtime: Runtime, *, allow_weaker_durability: bool) -> None:
        self._path = path
        self._runtime = runtime
        self._allow_weaker_durability = allow_weaker_durability
        self._watches = sqlalchemy_sessions.Watches()
        self._turns = ConnectionLocks()

    def join(self, connection: UserConnection) -> Join:
        if sqlalchemy_sessions.is_awaited(connection):
            raise Unsupported(
                f"connection={type(connection).__name__} cannot be joined on SQLite: its driver brings an SQLite "
                "library of its own, and two in one process drop each other's locks; use a Session"
            )
        if not sqlalchemy_sessions.is_blocking(connection):
            _checked(connection)
        return Blocking(lambda submissions, after: self._here(connection, submissions, after))

    def _here(self, connection: object, submissions: Sequence[Submission], after_commit: AfterCommit) -> Answers:
        with self._turns.blocking(connection):
            begun = sqlalchemy_sessions.begun(connection)
            answers = self._submit(_checked(begun.driver), submissions)
            self._watches.after_commit(begun.session, lambda: after_commit(answers))
            return answers

    def _submit(self, db: sqlite.Connection, submissions: Sequence[Submission]) -> Answers:
        try:
            with _as_we_read(db):
                return self._visit(db, lambda tx: submit_all(tx, submissions, quotas.admission))
        except sqlite.Error as error:
            told = translated(error, self._path)
            if told is error:
                raise
            raise told from error

    def _visit(self, db: sqlite.Connection, work: Callable[[Tx], T]) -> T:
        self._check_file(db)
        self._check_schema(db)
        with _begun(db):
            tx = Tx(db, self._runtime.now())
            with tx.savepoint():
                return work(tx)

    def _check_file(self, db: sqlite.Connection) -> None:
        """By name and number alone: opening and closing the file here would drop this process's locks on it."""
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
        check_visited(db, self._path)
        shadows = [name for (name,) in db.execute(_SHADOWS)]
        if shadows:
            raise InvalidInput(
                f"connection= has temporary tables that hide ropewalk's: {', '.join(shadows)}; give them other names",
                field="connection",
            )


def _checked(connection: Any) -> sqlite.Connection:
    if isinstance(connection, sqlite.Connection):
        return connection
    if any("Connection" in kinds_of(connection, library) for library in _LIBRARIES):
        raise InvalidInput(
            f"connection= was made by {type(connection).__module__}, while this store uses {sqlite.__name__}: two "
            "SQLite libraries in one process drop each other's locks, and the file can be corrupted. Make it with "
            "ropewalk.sqlite3.connect(...), or create_engine(..., module=ropewalk.sqlite3)",
            field="connection",
        )
    raise unknown(connection, WANTED)


@contextmanager
def _as_we_read(db: sqlite.Connection) -> Generator[None]:
    """Rows as tuples and text as str, whatever the user made of them."""
    rows, text = db.row_factory, db.text_factory
    db.row_factory, db.text_factory = None, str
    try:
        yield
    finally:
        db.row_factory, db.text_factory = rows, text


@contextmanager
def _begun(db: sqlite.Connection) -> Generator[None]:
    """Where the driver would begin a transaction before a write, do so: a savepoint alone would commit at its end.

    What was begun here for nothing ends here: nobody else could write until the user thought of it.
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
