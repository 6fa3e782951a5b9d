"""SQLAlchemy's sessions and connections: the driver's connection inside their transaction, and the word of its commit.

They are known by the names of their types and used through their public methods. SQLAlchemy is here only when whoever
passes one has imported it.
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
"""through SQLAlchemy itself, which begins with its first statement"""


class Begun(Struct, frozen=True):
    driver: Any
    session: Any | None
    """whose commit is the transaction's; None where nobody would tell"""


def is_blocking(connection: object) -> bool:
    return bool(kinds_of(connection, PACKAGE) & _BLOCKING)


def is_awaited(connection: object) -> bool:
    return bool(kinds_of(connection, PACKAGE) & _AWAITED)


def begun(connection: Any) -> Begun:
    """Its transaction. What is not SQLAlchemy's is the driver's own already."""
    if not is_blocking(connection):
        return Begun(connection, None)
    session = _session(connection, "scoped_session", "Session")
    core = connection if session is None else session.connection()
    core.exec_driver_sql(_BEGIN)
    return Begun(core.connection.driver_connection, _owner(session))


async def begun_async(connection: Any) -> Begun:
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
    """One for each session that ever enqueued here, as long as it lives."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._of: WeakKeyDictionary[Any, Watch] = WeakKeyDictionary()

    def after_commit(self, session: Any | None, call: Callable[[], None]) -> None:
        """Without a session nobody tells."""
        if session is None:
            return
        with self._lock:
            watch = self._of.get(session)
            if watch is None:
                watch = self._of[session] = Watch()
                watch.listen(session)
        watch.add(session, call)


class Watch:
    """What is to be called when a session's transaction commits. Knows no session: it must not keep one alive."""

    def __init__(self) -> None:
        self._waiting: list[tuple[list[Any], Callable[[], None]]] = []
        """with the transaction, innermost savepoint first, in which each came up"""

    def listen(self, session: Any) -> None:
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
        if session.get_nested_transaction() is None:  # the end of a savepoint is told as a commit, too
            waiting, self._waiting = self._waiting, []
            for _, call in waiting:
                call()

    def _rolled_back(self, _: Any, transaction: Any) -> None:
        self._waiting = [
            (inside, call) for inside, call in self._waiting if all(each is not transaction for each in inside)
        ]

    def _ended(self, _: Any, transaction: Any) -> None:
        if transaction.parent is None:
            self._waiting = []  # closed without a word


def _session(connection: Any, scoped: str, kind: str) -> Any | None:
    """The session itself; None for a connection."""
    kinds = kinds_of(connection, PACKAGE)
    if scoped in kinds:
        return connection()
    return connection if kind in kinds else None


def _owner(session: Any | None) -> Any | None:
    """A session bound to a connection joined somebody else's transaction: its commit may not be the last word."""
    return session if session is not None and "Engine" in kinds_of(session.get_bind(), PACKAGE) else None
