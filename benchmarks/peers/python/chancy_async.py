"""chancy on its asyncio executor, looking for more as soon as a job is done, its updates sent often."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final

from chancy import Chancy, Queue, Worker, job

from benchmarks.board import Board
from benchmarks.payload import TEXT
from benchmarks.peers.python.adapter import Adapter

CONCURRENCY: Final = 500
UPDATES_APART_SECONDS: Final = 0.05

_board: Board | None = None


@job()
async def work(*, number: int, text: str) -> int:
    assert _board is not None
    _board.mark(number)
    return number


def make(url: str, board: Board) -> Adapter:
    global _board  # noqa: PLW0603  a job is found by the path of a module-level function
    _board = board
    return ChancyAdapter(url)


class ChancyAdapter(Adapter):
    def __init__(self, url: str) -> None:
        self._chancy = Chancy(url, log=logging.getLogger("chancy"))
        self._is_open = False

    async def install(self) -> None:
        await self._open()
        await self._chancy.migrate()
        queue = Queue(
            "default",
            concurrency=CONCURRENCY,
            executor=Chancy.Executor.Async,
            polling_interval=1,
            eager_polling=True,
        )
        await self._chancy.declare(queue)

    async def submit(self, number: int) -> None:
        await self._open()
        await self._chancy.push(work.job.with_kwargs(number=number, text=TEXT))

    async def submit_many(self, numbers: range) -> None:
        await self._open()
        jobs = [work.job.with_kwargs(number=number, text=TEXT) for number in numbers]
        async for _ in self._chancy.push_many(jobs):
            pass

    @asynccontextmanager
    async def serving(self) -> AsyncGenerator[None, None]:
        await self._open()
        worker = Worker(self._chancy, register_signal_handlers=False)
        worker.send_outgoing_interval = UPDATES_APART_SECONDS
        async with worker:
            yield

    async def close(self) -> None:
        if self._is_open:
            await self._chancy.__aexit__(None, None, None)

    async def _open(self) -> None:
        if not self._is_open:
            self._is_open = True
            await self._chancy.__aenter__()
