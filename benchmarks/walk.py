"""How many of the library's files and functions a job goes through on its way.

`python -m benchmarks.walk [URL ...]` runs three workflows in a warm app with a worker in the same process and counts
the functions that the interpreter enters, in every thread (`sys.setprofile`). What a worker does on its own now and
then is entered as well, so each figure is the smallest of several walks.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Final

import ropewalk
from ropewalk import App, Backoff, Context, job

SOURCE: Final = str(Path(ropewalk.__file__).parent)
WALKS_PER_FIGURE: Final = 9


@job
async def add(a: int, b: int) -> int:
    return a + b


@job(max_attempts=2, backoff=Backoff.constant(0.01))
async def fail_once(ctx: Context) -> int:
    if ctx.attempt == 1:
        raise ValueError("the first attempt fails")
    return ctx.attempt


@job
async def spawn_one(ctx: Context) -> None:
    await ctx.spawn(add(1, 2))


async def _result(app: App) -> None:
    await app.enqueue(add(1, 2)).result()


async def _retry(app: App) -> None:
    await app.enqueue(fail_once()).result()


async def _group(app: App) -> None:
    await app.enqueue(spawn_one()).group()


WALKS: Final[dict[str, Callable[[App], Awaitable[None]]]] = {
    "enqueue → result": _result,
    "one retry": _retry,
    "a group closes": _group,
}


class Footprints:
    """The functions of the library that were entered since the last call of `take`."""

    def __init__(self) -> None:
        self._entered: set[CodeType] = set()

    def __enter__(self) -> Footprints:
        threading.setprofile(self._note)  # for threads that start from now on
        sys.setprofile(self._note)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)
        threading.setprofile(None)

    def take(self) -> set[CodeType]:
        entered, self._entered = self._entered, set()
        return entered

    def _note(self, frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(SOURCE):
            self._entered.add(frame.f_code)


async def measure(url: str) -> dict[str, tuple[int, int]]:
    """(files, functions) of each walk."""
    found: dict[str, tuple[int, int]] = {}
    with Footprints() as footprints:
        async with App(url, jobs=[add, fail_once, spawn_one]) as app, app.worker():
            for name, walk in WALKS.items():
                counts: list[tuple[int, int]] = []
                for _ in range(WALKS_PER_FIGURE):
                    footprints.take()
                    await walk(app)
                    entered = footprints.take()
                    counts.append((len({code.co_filename for code in entered}), len(entered)))
                found[name] = min(counts)
    return found


async def main(urls: list[str]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        for url in urls or ["memory://", f"sqlite:///{directory}/walk.db"]:
            print(url.split(":")[0])
            for name, (files, functions) in (await measure(url)).items():
                print(f"  {name:18} {files:4} files {functions:5} functions")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
