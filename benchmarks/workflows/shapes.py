"""The shapes that are measured. Each runs on a fresh SQLite file with a worker in the same process, and counts.

Plain jobs are submitted in chunks while the worker drains them, exactly as a group's root spawns its children: so a
child and a plain job differ in nothing but the group.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.payload import TEXT
from ropewalk import App, Context, Result, State, job
from ropewalk.worker.worker import Worker

CHUNK: Final = 5_000
PATIENCE_SECONDS: Final = 600.0


@job
async def plain(number: int, text: str) -> None:
    pass


@job(timeout=PATIENCE_SECONDS)
async def root(ctx: Context, children: int) -> None:
    for start in range(0, children, CHUNK):
        await ctx.spawn_many([plain(number, TEXT) for number in range(start, min(start + CHUNK, children))])


@job
async def gathered(ctx: Context) -> int:
    return len(ctx.dependencies)


@job
async def link(ctx: Context, left: int) -> Result[int, int]:
    return ctx.continue_with(link(left - 1)) if left else ctx.result(0)


@dataclass(frozen=True, slots=True)
class Shape:
    name: str
    about: str
    sizes: Sequence[int]
    quick_sizes: Sequence[int]
    run: Callable[[App, Worker, int], Awaitable[None]]
    """raises AssertionError where the jobs do not add up"""
    compared: bool = False
    """its cost a job is compared with that of a plain job in the same round"""


async def _plain(app: App, worker: Worker, jobs: int) -> None:
    for start in range(0, jobs, CHUNK):
        await app.enqueue_many([plain(number, TEXT) for number in range(start, min(start + CHUNK, jobs))])
    await worker.idle()


async def _group(app: App, worker: Worker, jobs: int) -> None:
    handle = await app.enqueue(root(jobs))
    await handle.group(timeout=PATIENCE_SECONDS)
    group = await app.group(handle.group_id)
    counted = (group.completed, group.failed, group.open, group.generation)
    assert counted == (jobs + 1, 0, 0, 1), f"{jobs} children closed as {counted}"


async def _fan_in(app: App, worker: Worker, jobs: int) -> None:
    parents = [plain(number, TEXT) for number in range(jobs)]
    child = gathered()
    await app.enqueue_many([*parents, child.using(depends_on=parents)])
    seen = await app.handle(child.id, gathered).result(timeout=PATIENCE_SECONDS)
    assert seen == jobs, f"{jobs} parents, {seen} seen"


async def _chain(app: App, worker: Worker, jobs: int) -> None:
    first = await app.enqueue(link(jobs - 1))
    await first.chain(timeout=PATIENCE_SECONDS)
    last = (await app.chain(first.id))[-1]
    assert last.state is State.COMPLETED and last.arguments == {"left": 0}


async def _round_trips(app: App, worker: Worker, jobs: int) -> None:
    for number in range(jobs):
        await app.enqueue(plain(number, TEXT)).result(timeout=PATIENCE_SECONDS)


PLAIN = Shape(
    "plain", "jobs without a group, submitted while they are drained", (1_000, 10_000, 100_000), (200,), _plain
)
SHAPES = (
    PLAIN,
    Shape(
        "group",
        "children of one job, spawned while they are drained",
        (1_000, 10_000, 100_000),
        (200,),
        _group,
        compared=True,
    ),
    Shape("fan-in", "one job behind so many parents, one submission", (10, 100, 1_000), (20,), _fan_in, compared=True),
    Shape("round-trip", "plain jobs one after another, each awaited", (1_000,), (20,), _round_trips),
    Shape("chain", "links of one chain, each started by the one before", (100, 1_000, 10_000), (20,), _chain),
)


async def measure(shape: Shape, size: int, directory: Path | None) -> float:
    """Seconds a job, everything included."""
    async with _ready(directory) as (app, worker):
        await _plain(app, worker, 300)  # caches, statements and code paths as in a long life
        began = time.perf_counter()
        await shape.run(app, worker, size)
        return (time.perf_counter() - began) / size


@asynccontextmanager
async def _ready(directory: Path | None) -> AsyncGenerator[tuple[App, Worker]]:
    with tempfile.TemporaryDirectory(prefix="rw-", dir=directory) as where:
        app = App(f"sqlite:///{where}/jobs.db", jobs=[plain, root, gathered, link])
        async with app, app.worker(concurrency=100) as worker:
            yield app, worker
