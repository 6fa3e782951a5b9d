"""A floor under measurement: the same arguments and the same handler as ropewalk's."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

from benchmarks.board import Board
from benchmarks.floors.call import Arguments, Handler
from benchmarks.floors.memory import MemoryFloor
from benchmarks.floors.postgres import PostgresFloor
from benchmarks.floors.sqlite import SqliteFloor
from benchmarks.payload import TEXT
from benchmarks.subjects.subject import Local


class FloorSubject(Local):
    def __init__(self, make: Callable[[Handler], MemoryFloor | SqliteFloor | PostgresFloor], board: Board) -> None:
        self._make = make
        self._board = board

    async def open(self) -> None:
        self._queue = self._make(self._handle)

    async def close(self) -> None:
        await self._queue.close()

    async def submit(self, number: int) -> None:
        await self._queue.submit([_call(number)])

    async def submit_many(self, numbers: range) -> None:
        await self._queue.submit([_call(number) for number in numbers])

    def serving(self) -> AbstractAsyncContextManager[object]:
        return self._queue.serving()

    async def unfinished(self) -> int:
        submitted, completed = await self._queue.counts()
        return submitted - completed

    async def submitted(self) -> int:
        return (await self._queue.counts())[0]

    async def completed(self) -> int:
        return (await self._queue.counts())[1]

    async def _handle(self, number: int, text: str) -> int:
        self._board.mark(number)
        return number


def _call(number: int) -> Arguments:
    return {"number": number, "text": TEXT}
