"""ropewalk under measurement: the public API with documented options, nothing else."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import Final

from benchmarks.board import Board
from benchmarks.payload import TEXT
from benchmarks.subjects.subject import Answering
from ropewalk import App, Filter, State, job

CONCURRENCY: Final = 100

_board: Board | None = None


@job
async def work(number: int, text: str) -> int:
    assert _board is not None
    _board.mark(number)
    return number


class Ropewalk(Answering):
    def __init__(self, url: str, board: Board) -> None:
        global _board  # noqa: PLW0603  a handler is a module-level function: this is how it finds the board
        _board = board
        self._app = App(url, jobs=[work])

    async def open(self) -> None:
        await self._app.__aenter__()

    async def close(self) -> None:
        await self._app.close()

    async def submit(self, number: int) -> None:
        await self._app.enqueue(work(number=number, text=TEXT))

    async def submit_many(self, numbers: range) -> None:
        await self._app.enqueue_many(work(number=number, text=TEXT) for number in numbers)

    def serving(self) -> AbstractAsyncContextManager[object]:
        return self._app.worker(concurrency=CONCURRENCY)

    async def unfinished(self) -> int:
        return sum(sum(queue.counts.values()) for queue in await self._app.queues())

    async def submitted(self) -> int:
        return await self._app.count()

    async def completed(self) -> int:
        return await self._app.count(Filter(states=(State.COMPLETED,)))

    async def round_trip(self, number: int) -> int:
        return await self._app.enqueue(work(number=number, text=TEXT)).result()
