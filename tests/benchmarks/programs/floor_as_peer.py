"""A process of a peer that is the floor on SQLite: what is said to peers is tried without any being installed."""

from __future__ import annotations

import asyncio
import sys
from contextlib import AbstractAsyncContextManager
from pathlib import Path

from benchmarks.board import Board
from benchmarks.floors.sqlite import SqliteFloor
from benchmarks.payload import TEXT
from benchmarks.peers.python.adapter import Adapter
from benchmarks.peers.python.serve import serve


class FloorAdapter(Adapter):
    def __init__(self, path: Path, board: Board) -> None:
        async def handle(*, number: int, text: str) -> None:
            board.mark(number)

        self._floor = SqliteFloor(path, handle)

    async def install(self) -> None:
        print("a library that says something")

    async def submit(self, number: int) -> None:
        await self._floor.submit([{"number": number, "text": TEXT}])

    async def submit_many(self, numbers: range) -> None:
        await self._floor.submit([{"number": number, "text": TEXT} for number in numbers])

    def serving(self) -> AbstractAsyncContextManager[object]:
        return self._floor.serving()

    async def close(self) -> None:
        await self._floor.close()


async def main(url: str, board: str, index: int) -> None:
    await serve(FloorAdapter(Path(url.removeprefix("sqlite:///")), Board(Path(board), worker=index)))


if __name__ == "__main__":
    _, url, board, index = sys.argv[1:]
    asyncio.run(main(url, board, int(index)))
