"""The cases, measured in turn: a store that is empty but for the jobs to drain, one full of finished jobs, one where a
transaction is held open from before the jobs were submitted.
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, TypeAlias

import psycopg

from benchmarks.growth.cost import used
from benchmarks.growth.held import held_transaction
from benchmarks.harness import Teller, in_turn
from benchmarks.run import Run, prepared
from benchmarks.server import Server
from benchmarks.subjects.subject import StoreName

Case: TypeAlias = Literal["empty", "finished", "held"]
CASES: Final[tuple[Case, ...]] = ("empty", "finished", "held")
FILL_CHUNK: Final = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    rounds: int = 3
    jobs: int = 100_000
    """enough for what a held transaction keeps to be felt: rows that cannot be removed add up"""
    finished: int = 1_000_000
    directory: Path | None = None


@dataclass(frozen=True, slots=True)
class Drained:
    """Of each job."""

    wall_us: float
    cpu_us: float | None
    """of the server; None where there is none"""
    wal_bytes: float | None


async def measure(store: StoreName, plan: Plan, server: Server | None, told: Teller) -> dict[Case, list[Drained]]:
    drained: dict[Case, list[Drained]] = {case: [] for case in CASES}
    async with AsyncExitStack() as kept:
        told(f"{store}: a store for {plan.finished:,} finished jobs")
        full = await kept.enter_async_context(_fresh(store, plan.finished + plan.rounds * plan.jobs, plan, server))
        await _fill(full, plan.finished, store, told)
        for number in range(plan.rounds):
            for case in in_turn(CASES, number):
                told(f"round {number + 1}/{plan.rounds}  {store}  {case}")
                if case == "finished":
                    start = full.jobs.start + plan.finished + number * plan.jobs
                    drained[case].append(await _drain(full, range(start, start + plan.jobs), server))
                else:
                    drained[case].append(await _alone(case, store, plan, server))
        await full.verify(completed=True)
    return drained


@asynccontextmanager
async def _fresh(store: StoreName, jobs: int, plan: Plan, server: Server | None) -> AsyncGenerator[Run]:
    async with prepared("ropewalk", store, jobs=jobs, workers=1, parent=plan.directory, server=server) as run:
        yield run


async def _fill(run: Run, finished: int, store: StoreName, told: Teller) -> None:
    """Submit and work off; then do what autovacuum would sooner or later, so that it is not measured."""
    await run.crew.go()
    numbers = run.jobs[:finished]
    for begin in range(0, finished, FILL_CHUNK):
        chunk = numbers[begin : begin + FILL_CHUNK]
        await run.subject.hand_in("bulk", chunk)
        await run.until_completed(chunk.stop)
        told(f"{store}: {chunk.stop - run.jobs.start:,} of {finished:,} finished")
    await run.crew.stop()
    if store == "postgres":
        async with await psycopg.AsyncConnection.connect(run.url, autocommit=True) as connection:
            await connection.execute("VACUUM (ANALYZE)")
            await connection.execute("CHECKPOINT")


async def _alone(case: Case, store: StoreName, plan: Plan, server: Server | None) -> Drained:
    async with _fresh(store, plan.jobs, plan, server) as run:
        with held_transaction(run.url) if case == "held" else nullcontext():
            drained = await _drain(run, run.jobs, server)
            await run.verify(completed=True)
    return drained


async def _drain(run: Run, numbers: range, server: Server | None) -> Drained:
    await run.subject.hand_in("bulk", numbers)
    before = None if server is None else used(server)
    began = time.perf_counter()
    await run.crew.go()
    await run.until_completed(numbers.stop)
    seconds = time.perf_counter() - began
    after = None if server is None else used(server)
    await run.crew.stop()
    wall_us = seconds / len(numbers) * 1e6
    if before is None or after is None:
        return Drained(wall_us, None, None)
    cost = after.since(before)
    return Drained(wall_us, cost.cpu_seconds / len(numbers) * 1e6, cost.wal_bytes / len(numbers))
