"""Sessions and connections of SQLAlchemy: finds the driver's connection inside their transaction, and calls back when
the transaction is committed.

They are recognized by the names of their types and used through their public methods, so SQLAlchemy need not be
installed.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from importlib import import_module
from typing import Any, Final
from weakref import WeakKeyDictionary

from msgspec import Struct

from ropewalk.backends.sql.user_transactions import kinds_of, run_to_completion

PACKAGE: Final = "sqlalchemy"
_BLOCKING: Final = frozenset({"Session", "scoped_session", "Connection"})
_AWAITED: Final = frozenset({"AsyncSession", "async_scoped_session", "AsyncConnection"})
WANTED: Final = "a Session, AsyncSession, Connection or AsyncConnection"

_BEGIN: Final = "SELECT 1"
"""This runs through SQLAlchemy itself, which begins a transaction with its first statement."""


class Begun(Struct, frozen=True):
    """A transaction that has begun."""

    driver: Any
    """The driver's connection inside of the transaction."""
    session: Any | None
    """The commit of this session commits the transaction; None if no session reports the commit."""


def is_blocking(connection: object) -> bool:
    """Whether this is a blocking session or connection of SQLAlchemy."""
    return bool(kinds_of(connection, PACKAGE) & _BLOCKING)


def is_awaited(connection: object) -> bool:
    """Whether this is an asynchronous session or connection of SQLAlchemy."""
    return bool(kinds_of(connection, PACKAGE) & _AWAITED)


def begun(connection: Any) -> Begun:
    """Begins the transaction of a connection. A connection that is not of SQLAlchemy is the driver's own already."""
    if not is_blocking(connection):
        return Begun(connection, None)
    session = _session(connection, "scoped_session", "Session")
    core = connection if session is None else session.connection()
    core.exec_driver_sql(_BEGIN)
    return Begun(core.connection.driver_connection, _owner(session))


async def begun_async(connection: Any) -> Begun:
    """Begins the transaction of an asynchronous connection. A connection that is not of SQLAlchemy is the driver's own
    already."""
    if not is_awaited(connection):
        return Begun(connection, None)
    session = _session(connection, "async_scoped_session", "AsyncSession")
    core = connection if session is None else await session.connection()
    await run_to_completion(
        core.exec_driver_sql(_BEGIN)
    )  # SQLAlchemy gives up a connection whose statement was cancelled
    raw = await core.get_raw_connection()
    return Begun(raw.driver_connection, None if session is None else _owner(session.sync_session))


class Watches:
    """The watches of all sessions in which jobs were enqueued, as long as the sessions live."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._of: WeakKeyDictionary[Any, Watch] = WeakKeyDictionary()

    def after_commit(self, session: Any | None, call: Callable[[], None]) -> None:
        """Has `call` called after the session commits. Without a session there is no report of the commit, and nothing
        is called."""
        if session is None:
            return
        with self._lock:
            watch = self._of.get(session)
            if watch is None:
                watch = self._of[session] = Watch()
                watch.listen(session)
        watch.add(session, call)


class Watch:
    """The functions to call when the transaction of a session commits. It has no reference to the session, because it
    must not keep it alive."""

    def __init__(self) -> None:
        self._waiting: list[tuple[list[Any], Callable[[], None]]] = []
        """Each function, with the savepoints and the transaction in which it was added; the innermost comes first."""

    def listen(self, session: Any) -> None:
        """Has SQLAlchemy report the ends of transactions of this session."""
        event = import_module("sqlalchemy.event")
        event.listen(session, "after_commit", self._committed)
        event.listen(session, "after_soft_rollback", self._rolled_back)
        event.listen(session, "after_transaction_end", self._ended)

    def add(self, session: Any, call: Callable[[], None]) -> None:
        inside: list[Any] = []
        transaction = session.get_nested_transaction() or session.get_transaction()
        while transaction is not None:
            inside.append(transaction)
            transaction = transaction.parent
        self._waiting.append((inside, call))

    def _committed(self, session: Any) -> None:
        if session.get_nested_transaction() is None:  # SQLAlchemy reports the end of a savepoint as a commit, too.
            waiting, self._waiting = self._waiting, []
            for _, call in waiting:
                call()

    def _rolled_back(self, _: Any, transaction: Any) -> None:
        self._waiting = [
            (inside, call) for inside, call in self._waiting if all(each is not transaction for each in inside)
        ]

    def _ended(self, _: Any, transaction: Any) -> None:
        if transaction.parent is None:
            self._waiting = []  # The transaction was closed without a commit or a rollback.


def _session(connection: Any, scoped: str, kind: str) -> Any | None:
    """Returns the session itself; None for a connection."""
    kinds = kinds_of(connection, PACKAGE)
    if scoped in kinds:
        return connection()
    return connection if kind in kinds else None


def _owner(session: Any | None) -> Any | None:
    """Returns the session whose commit commits the transaction. A session that is bound to a connection has joined
    another transaction, so that its own commit may not be the end of it: None is returned."""
    return session if session is not None and "Engine" in kinds_of(session.get_bind(), PACKAGE) else None
