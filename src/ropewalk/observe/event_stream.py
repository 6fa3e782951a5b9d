"""A bounded mailbox for events, between whoever tells of them and one reader."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ropewalk.observe.events import Event


class EventStream:
    """A bounded mailbox between any thread and one reader's loop."""

    def __init__(self, limit: int) -> None:
        self._loop = asyncio.get_running_loop()
        self._events: deque[Event] = deque(maxlen=limit)
        self._arrived = asyncio.Event()
        self._called = False
        """the reader is about to look: one call for all that comes until then"""

    def put(self, event: Event) -> None:
        self._events.append(event)
        if not self._called and not self._loop.is_closed():
            self._called = True
            self._loop.call_soon_threadsafe(self._call)

    async def get(self) -> Event:
        while not self._events:
            self._arrived.clear()
            await self._arrived.wait()
        return self._events.popleft()

    def _call(self) -> None:
        self._called = False
        self._arrived.set()
