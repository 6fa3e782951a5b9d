"""saq on its PostgreSQL queue. It has no call for many jobs: they are submitted at once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, Final

from psycopg_pool import AsyncConnectionPool
from saq import Worker
from saq.queue.postgres import PostgresQueue

from benchmarks.board import Board
from benchmarks.payload import TEXT
from benchmarks.peers.python.adapter import Adapter

CONCURRENCY: Final = 100
POOL: Final = 20


def make(url: str, board: Board) -> Adapter:
    return SaqAdapter(url, board)


class SaqAdapter(Adapter):
    def __init__(self, url: str, board: Board) -> None:
        self._url, self._board = url, board
        self._pool: Any = None

    async def install(self) -> None:
        await self._open()

    async def submit(self, number: int) -> None:
        await (await self._open()).enqueue("work", number=number, text=TEXT)

    async def submit_many(self, numbers: range) -> None:
        await asyncio.gather(*(self.submit(number) for number in numbers))

    @asynccontextmanager
    async def serving(self) -> AsyncGenerator[None, None]:
        async def work(ctx: object, *, number: int, text: str) -> int:
            self._board.mark(number)
            return number

        worker: Any = Worker(
            await self._open(), functions=[("work", work)], concurrency=CONCURRENCY, shutdown_grace_period_s=5
        )
        worker.SIGNALS = []
        running = asyncio.create_task(worker.start())
        try:
            yield
        finally:
            await worker.stop()
            await running

    async def close(self) -> None:
        if self._pool is not None:
            await self._queue.disconnect()
            await self._pool.close()

    async def _open(self) -> PostgresQueue:
        if self._pool is None:
            self._pool = AsyncConnectionPool(
                self._url, min_size=1, max_size=POOL, open=False, kwargs={"autocommit": True}
            )
            await self._pool.open()
            self._queue = PostgresQueue(pool=self._pool)
            await self._queue.connect()
        return self._queue
