"""The process around an adapter: takes orders until it is told to leave. See benchmarks/peers/process.py for them."""

from __future__ import annotations

import asyncio
import json
import sys
from contextlib import AsyncExitStack
from dataclasses import asdict
from typing import cast

from benchmarks import pace
from benchmarks.pace import Pace
from benchmarks.peers.python.adapter import Adapter


async def serve(adapter: Adapter) -> None:
    sys.stdout = sys.stderr  # what a library prints is not an answer
    serving = AsyncExitStack()
    _answer("ready")
    async for line in await _orders():
        match line.decode().split():
            case ["install"]:
                await adapter.install()
                _answer("install")
            case ["submit", how, start, stop]:
                submitted = await pace.submit(adapter, cast("Pace", how), range(int(start), int(stop)))
                _answer(json.dumps(asdict(submitted)))
            case ["go"]:
                await serving.enter_async_context(adapter.serving())
            case ["stop"]:
                await serving.aclose()
                _answer("stop")
            case _:
                break
    await serving.aclose()
    await adapter.close()


async def _orders() -> asyncio.StreamReader:
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    return reader


def _answer(line: str) -> None:
    print(line, file=sys.__stdout__, flush=True)
