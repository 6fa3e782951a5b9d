"""What it costs to enqueue inside the user's own transaction: `python -m benchmarks.joining`.

Beside every driver stands an ordinary enqueue on the same store. Medians, in milliseconds: one job a transaction, its
commit included; from that commit to the start of the job in another app's worker; ten thousand jobs in one.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from pathlib import Path
from statistics import median

from tests.joining.drivers import EVERY, Driver
from tests.servers.binaries import postgres_binaries
from tests.servers.databases import fresh_database
from tests.servers.postgres import Postgres, Settings

from ropewalk import App, job

ROUNDS = 200
WAKES = 30
MANY = 10_000

started: dict[str, float] = {}


@job
async def nothing(number: int) -> None: ...


@job
async def stamp(name: str) -> None:
    started[name] = time.perf_counter()


async def main() -> None:
    print(f"{'':28}{'one job':>9}{'wake-up':>9}{'10 000':>9}")
    with (
        tempfile.TemporaryDirectory() as place,
        Postgres(postgres_binaries("newest"), Settings(durable=True)) as server,
    ):
        for number, kind in enumerate(EVERY):
            if kind.store == "sqlite":
                file = str(Path(place) / f"{number}.db")
                await measure(kind, f"sqlite:///{file}", file)
            else:
                with fresh_database(server) as dsn:
                    await measure(kind, f"{dsn}?schema=jobs", dsn)


async def measure(kind: type[Driver], url: str, dsn: str) -> None:
    driver = kind()
    async with App(url, jobs=[nothing, stamp]) as app, App(url, jobs=[stamp]) as elsewhere:
        await app.count()
        await driver.open(dsn)
        ordinary = [await timed(app) for _ in range(ROUNDS)]
        joined = [await timed(app, driver) for _ in range(ROUNDS)]
        async with elsewhere.worker(poll=60):
            waits = [await woken(app, driver, f"{number}") for number in range(WAKES)]
        began = time.perf_counter()
        await driver.enqueue_many(app, [nothing(number) for number in range(MANY)])
        await driver.commit()
        many = time.perf_counter() - began
        await driver.close()
    figures = "".join(f"{1000 * seconds:9.2f}" for seconds in (median(joined), median(waits), many))
    print(f"{kind.__name__:28}{figures}   (ordinary enqueue: {1000 * median(ordinary):.2f})", flush=True)


async def timed(app: App, driver: Driver | None = None) -> float:
    began = time.perf_counter()
    if driver is None:
        await app.enqueue(nothing(1))
    else:
        await driver.enqueue(app, nothing(1))
        await driver.commit()
    return time.perf_counter() - began


async def woken(app: App, driver: Driver, name: str) -> float:
    handle = await driver.enqueue(app, stamp(name))
    await driver.commit()
    committed = time.perf_counter()
    await handle.result(timeout=30)
    return max(0.0, started[name] - committed)


if __name__ == "__main__":
    asyncio.run(main())
