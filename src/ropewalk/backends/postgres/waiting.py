"""The connections of requests that wait for the open transaction of somebody else."""

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
"""A store has this many such connections at most. Further requests wait behind others."""


class WaitingSessions:
    """Gives each waiting request a session to itself, as long as there are not too many, so that it delays no other
    request. All sessions but the first are closed after their request."""

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
    """A session for one waiting request at a time, if possible."""

    def __init__(self, runtime: Runtime, connector: Connector, name: str, *, clock: Clock, stays: bool) -> None:
        self.asked = 0
        """The number of callers that wait for an answer."""
        self._stays = stays
        """Whether the connection stays open after an answer."""
        super().__init__(runtime, connector, name, clock=clock)

    def _after_answer(self) -> None:
        if self._stays:
            super()._after_answer()
        else:
            self._disconnect()
            self._connector.durability.closed(self)
