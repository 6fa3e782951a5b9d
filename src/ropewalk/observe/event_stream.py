"""An event stream is a bounded queue between the threads that send events and the one task that reads them."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ropewalk.observe.events import Event


class EventStream:
    """A queue that any thread fills and one task reads. If it is full, the oldest event is lost."""

    def __init__(self, limit: int) -> None:
        self._loop = asyncio.get_running_loop()
        self._events: deque[Event] = deque(maxlen=limit)
        self._arrived = asyncio.Event()
        self._called = False
        """Whether the loop was already asked to wake the reader, so that events that come until then cause no further
        call."""

    def put(self, event: Event) -> None:
        """Adds an event. Any thread may call this."""
        self._events.append(event)
        if not self._called and not self._loop.is_closed():
            self._called = True
            self._loop.call_soon_threadsafe(self._call)

    async def get(self) -> Event:
        """Waits for the next event and returns it."""
        while not self._events:
            self._arrived.clear()
            await self._arrived.wait()
        return self._events.popleft()

    def _call(self) -> None:
        self._called = False
        self._arrived.set()
