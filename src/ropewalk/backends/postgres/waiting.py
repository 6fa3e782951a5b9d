"""Connections for those that have to wait for somebody else's transaction: each waits alone, and holds up nobody."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from operator import attrgetter
from typing import Final, TypeVar

from ropewalk.backends.postgres.connections import Clock, Connector, Session
from ropewalk.backends.sql.tx import Tx
from ropewalk.ports.runtime import Runtime
from ropewalk.ports.store.consequences import Consequences

T = TypeVar("T")

WAITING_TOGETHER_MAX: Final = 16
"""Connections of one store for those that wait; whoever comes then waits behind another one."""


class WaitingSessions:
    """Connections for those that wait for somebody else's transaction: each has one to itself, as long as there are
    enough. All but the first are closed when they are done.
    """

    def __init__(self, runtime: Runtime, connector: Connector, *, clock: Clock) -> None:
        self._make = partial(WaitingSession, runtime, connector, clock=clock)
        self.on_aside: Callable[[Consequences], object] = lambda _: None
        self._lock = threading.Lock()
        self._sessions: list[WaitingSession] = []

    async def ask(self, work: Callable[[Tx], T]) -> T:
        with self._lock:
            session = min(self._sessions, key=attrgetter("asked"), default=None)
            if session is None or (session.asked and len(self._sessions) < WAITING_TOGETHER_MAX):
                number = len(self._sessions)
                session = self._make(f"waiting-{number}", stays=number == 0)
                session.on_aside = self.on_aside
                self._sessions.append(session)
            session.asked += 1
        try:
            return await session.ask(work)
        finally:
            with self._lock:
                session.asked -= 1

    async def stop(self) -> None:
        with self._lock:
            sessions, self._sessions = self._sessions, []
        for session in sessions:
            await session.stop()


class WaitingSession(Session):
    """A connection for one that waits."""

    def __init__(self, runtime: Runtime, connector: Connector, name: str, *, clock: Clock, stays: bool) -> None:
        self.asked = 0
        """Number of those that wait for an answer."""
        self._stays = stays
        super().__init__(runtime, connector, name, clock=clock)

    def _clear_up(self) -> None:
        if self._stays:
            super()._clear_up()
        else:
            self._disconnect()
            self._connector.durability.left(self)
