"""huey on SQLite with fsync on, its consumer's threads in this process."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final

from huey import SqliteHuey
from huey.consumer import Consumer

from benchmarks.board import Board
from benchmarks.payload import TEXT
from benchmarks.peers.python.adapter import Adapter

SQLITE: Final = "sqlite:///"
THREADS: Final = 4
POLL_SECONDS: Final = 0.01


def make(url: str, board: Board) -> Adapter:
    return HueyAdapter(url.removeprefix(SQLITE), board)


class _Consumer(Consumer):  # type: ignore[misc] # untyped
    def _set_signal_handlers(self) -> None:
        """The process it lives in has its own."""


class HueyAdapter(Adapter):
    def __init__(self, path: str, board: Board) -> None:
        self._huey = SqliteHuey(filename=path, fsync=True, results=False, timeout=30)

        turn = threading.Lock()

        @self._huey.task(name="work")
        def work(number: int, text: str) -> None:
            with turn:  # the board is written by one at a time in each process
                board.mark(number)

        self._task = work

    async def install(self) -> None:
        """Made with the object."""

    async def submit(self, number: int) -> None:
        self._task(number, TEXT)

    async def submit_many(self, numbers: range) -> None:
        for number in numbers:
            self._task(number, TEXT)

    @asynccontextmanager
    async def serving(self) -> AsyncGenerator[None, None]:
        consumer = _Consumer(
            self._huey, workers=THREADS, periodic=False, initial_delay=POLL_SECONDS, max_delay=POLL_SECONDS
        )
        consumer.start()
        try:
            yield
        finally:
            await asyncio.to_thread(consumer.stop, graceful=True)

    async def close(self) -> None:
        self._huey.storage.close()
