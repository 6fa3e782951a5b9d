"""litequeue: a table and its verbs; put, pop, done."""

from __future__ import annotations

import json
from contextlib import AbstractAsyncContextManager
from typing import Final

from litequeue import LiteQueue

from benchmarks.board import Board
from benchmarks.payload import TEXT
from benchmarks.peers.python.adapter import Adapter
from benchmarks.peers.python.polled import polling

SQLITE: Final = "sqlite:///"


def make(url: str, board: Board) -> Adapter:
    return LiteQueueAdapter(url.removeprefix(SQLITE), board)


class LiteQueueAdapter(Adapter):
    def __init__(self, path: str, board: Board) -> None:
        self._queue = LiteQueue(path, timeout=30)
        self._board = board

    async def install(self) -> None:
        """Made with the object."""

    async def submit(self, number: int) -> None:
        self._queue.put(json.dumps({"number": number, "text": TEXT}))

    async def submit_many(self, numbers: range) -> None:
        for number in numbers:
            await self.submit(number)

    def serving(self) -> AbstractAsyncContextManager[object]:
        return polling(self._step)

    def _step(self) -> bool:
        message = self._queue.pop()
        if message is None:
            return False
        self._board.mark(json.loads(message.data)["number"])
        self._queue.done(message.message_id)
        return True

    async def close(self) -> None:
        self._queue.conn.close()
