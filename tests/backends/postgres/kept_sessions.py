"""Sessions of the shared server that the stores of later tests use again.

A store opens four connections or more, and what a new session of PostgreSQL does first is slow: it reads the catalog
for every table that it meets. To open a store and run one job took 55 ms of CPU time, server and test together; with
kept sessions it takes 24. Thousands of tests open a store.

A store notices nothing: it asks for a connection and closes it as always. Then the session is reset with DISCARD ALL,
so that no setting, prepared statement, lock or LISTEN is left. A session that is in the middle of something when its
connection is closed, or that the server has ended, is not used again. This concerns only addresses that were named to
`keep`: tests of connecting, and tests that stop servers or cut connections, have servers and databases of their own.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import psycopg
import pytest
from psycopg.pq import ConnStatus, PGconn

from ropewalk.backends.postgres.wire.connection import WatchedConnection, has_input

Session = psycopg.pq.abc.PGconn

_NO_SESSION: Final = PGconn.connect_start(b"host=/nowhere")
"""What a closed connection refers to instead of its session, so that using the connection fails as usual."""
_NO_SESSION.finish()


class KeptSessions:
    """Sessions that no store uses at the moment, by the address that they lead to."""

    def __init__(self) -> None:
        self._free: dict[str, list[Session]] = {}
        self._lock = threading.Lock()
        self._pid = os.getpid()

    @contextmanager
    def used_by_stores(self) -> Iterator[None]:
        """Lets the connections of stores take sessions from here and give them back."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(WatchedConnection, "connect", self._connect)
            yield
        for session in (session for sessions in self._free.values() for session in sessions):
            session.finish()

    def keep(self, address: str) -> None:
        """Keeps the sessions of this address from now on."""
        self._free.setdefault(address, [])

    def give_back(self, address: str, session: Session) -> None:
        with self._lock:
            self._free[address].append(session)

    def are_mine(self) -> bool:
        """Says whether this is the process that began the sessions. One that was forked from it must not use them."""
        return os.getpid() == self._pid

    def _connect(self, address: str, *, prepare_threshold: int | None, **options: Any) -> KeptConnection:
        session = self._taken(address) if address in self._free and self.are_mine() else None
        if session is None:
            options["prepare_threshold"] = prepare_threshold
            connection = super(WatchedConnection, KeptConnection).connect(address, **options)
        else:
            connection = KeptConnection(session)
            connection.autocommit = options["autocommit"]
            connection.prepare_threshold = prepare_threshold
        if address in self._free:
            connection.kept_as = (self, address)
        return connection

    def _taken(self, address: str) -> Session | None:
        with self._lock:
            while self._free[address]:
                session = self._free[address].pop()
                if session.status == ConnStatus.OK and not has_input(session.socket):
                    return session
                session.finish()  # the server has ended it
        return None


class KeptConnection(WatchedConnection):
    """A connection whose session goes on when it is closed."""

    kept_as: tuple[KeptSessions, str] | None = None

    def close(self) -> None:
        session = self.pgconn
        if self.kept_as is not None and self.kept_as[0].are_mine() and self._reset():
            self.pgconn = _NO_SESSION
            sessions, address = self.kept_as
            sessions.give_back(address, session)
        super().close()

    def _reset(self) -> bool:
        """Says whether the session can be used again. It cannot in the middle of a statement or a transaction."""
        try:
            self.execute(b"DISCARD ALL")
        except psycopg.Error:
            return False
        return True
