"""procrastinate on its asynchronous psycopg connector, many jobs at once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from typing import Final

import procrastinate

from benchmarks.board import Board
from benchmarks.payload import TEXT
from benchmarks.peers.python.adapter import Adapter

CONCURRENCY: Final = 100
POOL: Final = 20


def make(url: str, board: Board) -> Adapter:
    return ProcrastinateAdapter(url, board)


class ProcrastinateAdapter(Adapter):
    def __init__(self, url: str, board: Board) -> None:
        connector = procrastinate.PsycopgConnector(conninfo=url, min_size=1, max_size=POOL)
        self._app = procrastinate.App(connector=connector)
        self._is_open = False

        @self._app.task(name="work")
        async def work(number: int, text: str) -> int:
            board.mark(number)
            return number

        self._task = work

    async def install(self) -> None:
        await self._open()
        await self._app.schema_manager.apply_schema_async()

    async def submit(self, number: int) -> None:
        await self._open()
        await self._task.defer_async(number=number, text=TEXT)

    async def submit_many(self, numbers: range) -> None:
        await self._open()
        await self._task.batch_defer_async(*({"number": number, "text": TEXT} for number in numbers))

    @asynccontextmanager
    async def serving(self) -> AsyncGenerator[None, None]:
        await self._open()
        running = asyncio.create_task(
            self._app.run_worker_async(concurrency=CONCURRENCY, install_signal_handlers=False)
        )
        try:
            yield
        finally:
            running.cancel()
            with suppress(asyncio.CancelledError):
                await running

    async def close(self) -> None:
        if self._is_open:
            await self._app.close_async()

    async def _open(self) -> None:
        if not self._is_open:
            self._is_open = True
            await self._app.open_async()
