"""What workers hear from the store an app uses."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from ropewalk import App
from ropewalk.backends.sqlite.listening import Marks
from ropewalk.backends.sqlite.notifier import FileNotifier
from ropewalk.ports.notifier import Hint

SECONDS_MAX = 10
"""for whatever is waited for"""


class Heard:
    def __init__(self) -> None:
        self.queues: set[str] = set()
        self.anything = asyncio.Event()
        self._loop = asyncio.get_running_loop()

    def hear(self, hint: Hint) -> None:
        """On any thread."""
        self._loop.call_soon_threadsafe(self._hear, hint)

    def _hear(self, hint: Hint) -> None:
        self.queues.update(hint.ready)
        self.anything.set()

    async def queue(self, name: str) -> None:
        async with asyncio.timeout(SECONDS_MAX):
            while name not in self.queues:
                self.anything.clear()
                await self.anything.wait()


async def looked_once(app: App) -> None:
    """Until a listener of an SQLite store has read the file's marks: it notices what is committed from then on."""
    notifier = app._app_state.store.notifier
    if not isinstance(notifier, FileNotifier) or notifier._listening is None:
        return
    looked = asyncio.Event()
    loop, listener, marks = asyncio.get_running_loop(), notifier._listening, notifier._listening._marks

    async def counted() -> Marks | None:
        found = await marks()
        loop.call_soon_threadsafe(looked.set)
        return found

    listener._marks = counted
    async with asyncio.timeout(SECONDS_MAX):
        await looked.wait()


@contextmanager
def listening(app: App) -> Iterator[Heard]:
    heard = Heard()
    unsubscribe = app._app_state.store.notifier.subscribe(heard.hear)
    try:
        yield heard
    finally:
        unsubscribe()
