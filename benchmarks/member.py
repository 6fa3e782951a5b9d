"""One worker process of a crew: `python -m benchmarks.member KIND URL BOARD INDEX`. Started by crew.py."""

from __future__ import annotations

import asyncio
import sys
from contextlib import AsyncExitStack
from pathlib import Path

from benchmarks.board import Board
from benchmarks.subjects.make import make_local
from benchmarks.subjects.subject import Kind


async def main(kind: Kind, url: str, board: Path, index: int) -> None:
    subject = make_local(kind, url, Board(board, worker=index))
    await subject.open()
    orders = await _orders()
    serving = AsyncExitStack()
    _answer("ready")
    async for line in orders:
        match line.decode().strip():
            case "go":
                await serving.enter_async_context(subject.serving())
            case "stop":
                await serving.aclose()
                _answer("stop")
            case _:
                break
    await serving.aclose()
    await subject.close()


async def _orders() -> asyncio.StreamReader:
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    return reader


def _answer(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    kind, url, board, index = sys.argv[1:]
    asyncio.run(main(kind, url, Path(board), int(index)))
