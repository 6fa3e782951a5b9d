"""A floor under measurement: the same input and handler as ropewalk's, encoded by the same library."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

import msgspec

from benchmarks.board import Board
from benchmarks.floors.memory import Handler, MemoryFloor
from benchmarks.floors.sqlite import SqliteFloor
from benchmarks.payload import TEXT
from benchmarks.subjects.subject import Subject


class Input(msgspec.Struct):
    number: int
    text: str


class FloorSubject(Subject):
    def __init__(self, make: Callable[[Handler], MemoryFloor | SqliteFloor], board: Board) -> None:
        self._make = make
        self._board = board
        self._decode = msgspec.json.Decoder(Input).decode

    async def open(self) -> None:
        self._queue = self._make(self._handle)

    async def close(self) -> None:
        await self._queue.close()

    async def submit(self, number: int) -> None:
        await self._queue.submit([_payload(number)])

    async def submit_many(self, numbers: range) -> None:
        await self._queue.submit([_payload(number) for number in numbers])

    def serving(self) -> AbstractAsyncContextManager[object]:
        return self._queue.serving()

    async def unfinished(self) -> int:
        submitted, completed = await self._queue.counts()
        return submitted - completed

    async def submitted(self) -> int:
        return (await self._queue.counts())[0]

    async def completed(self) -> int:
        return (await self._queue.counts())[1]

    async def _handle(self, payload: bytes) -> None:
        self._board.mark(self._decode(payload).number)


def _payload(number: int) -> bytes:
    return msgspec.json.encode(Input(number, TEXT))
