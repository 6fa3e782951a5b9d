"""`python -m benchmarks.statistics`: a week of finished jobs, and how long it takes to ask what happened in it.

The jobs are submitted, claimed and settled by the store's own verbs, minute by minute of a clock that is put forward,
and their counters folded now and then, as workers do. Then `stats` is asked many times over.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager, nullcontext
from pathlib import Path
from typing import Final, TypeAlias

from benchmarks import machine, report, server
from benchmarks.server import Server
from ropewalk.backends.postgres import PostgresStore
from ropewalk.backends.sqlite import SqliteStore
from ropewalk.domain.jobs.record import NewJob
from ropewalk.domain.jobs.states import Move
from ropewalk.domain.jobs.transition import Settlement
from ropewalk.domain.statistics.aggregation import StatsQuery
from ropewalk.domain.time import DAY, HOUR, SECOND
from ropewalk.ports.store.capabilities import STATISTICS
from ropewalk.ports.store.claims import ClaimRequest
from ropewalk.ports.store.core import Store
from ropewalk.ports.store.submission import Submission
from ropewalk.runtime.system import SystemRuntime

STORES: Final = ("sqlite", "postgres")
TYPES: Final = tuple(f"type_{number}" for number in range(10))
MINUTES: Final = 7 * 24 * 60
RANGES: Final = {"1 h": HOUR, "24 h": DAY, "7 d": 7 * DAY}
TARGET_MS: Final = 100.0
ASKED: Final = 30
FOLDED_EVERY: Final = 60
"""minutes; workers do so every few seconds, so at the end only the last minute is left"""

Figures: TypeAlias = dict[str, list[tuple[float, float]]]
"""by range: milliseconds, and those of them in which this process computed"""


class WeekRuntime(SystemRuntime):
    """The system's, but for a wall clock that is put forward by hand."""

    def __init__(self) -> None:
        super().__init__()
        self.at = super().now() - 7 * DAY

    def now(self) -> int:
        return self.at


async def fill(store: Store, runtime: WeekRuntime, jobs: int) -> None:
    """Spread over a week; each waits some seconds and runs for some more."""
    leases = dict.fromkeys(TYPES, HOUR)
    for minute in range(MINUTES):
        wanted = jobs * (minute + 1) // MINUTES - jobs * minute // MINUTES
        new = [NewJob(id=f"{minute}-{n}", type=TYPES[n % 10], queue=f"q{n % 2}", input=b"{}") for n in range(wanted)]
        await store.submit([Submission(jobs=new)])
        runtime.at += (minute % 17 + 1) * SECOND
        request = ClaimRequest(owner="w", types=leases, limit=wanted, slots=wanted, first_ticket=1, started_upto=wanted)
        claimed = (await store.claim(request)).jobs if wanted else []
        runtime.at += (minute % 23 + 1) * SECOND
        await store.settle("w", [Settlement(seq=job.seq, fence=job.fence, move=Move.COMPLETE) for job in claimed])
        runtime.at += (60 - minute % 17 - minute % 23 - 2) * SECOND
        if minute % FOLDED_EVERY == FOLDED_EVERY - 2:
            await STATISTICS.of(store).fold_counters(30 * DAY, 100_000)


async def measure(store: Store, jobs: int) -> Figures:
    figures: Figures = {}
    for name, last_us in RANGES.items():
        asked = StatsQuery(last_us=last_us, by="both")
        for _ in range(ASKED):
            begun, computed = time.perf_counter(), time.process_time()
            await STATISTICS.of(store).stats("default", asked)
            took = (time.perf_counter() - begun) * 1000, (time.process_time() - computed) * 1000
            figures.setdefault(name, []).append(took)
    told = await STATISTICS.of(store).stats("default", StatsQuery(last_us=DAY))
    assert sum(told.states.values()) == jobs, f"{told.states}, but {jobs} were finished"
    return figures


async def measured(kind: str, jobs: int, directory: Path | None) -> Figures:
    with server.started() if kind == "postgres" else nullcontext() as running, _url(running, directory) as url:
        runtime = WeekRuntime()
        async with _opened(url, runtime) as store:
            begun = time.perf_counter()
            await fill(store, runtime, jobs)
            print(f"{kind}: {jobs} finished in {time.perf_counter() - begun:.0f} s", file=sys.stderr, flush=True)
            return await measure(store, jobs)


@contextmanager
def _url(running: Server | None, directory: Path | None) -> Generator[str]:
    if running is not None:
        with running.fresh_database() as dsn:
            yield dsn
        return
    with tempfile.TemporaryDirectory(dir=directory) as place:
        yield f"{place}/week.db"


@asynccontextmanager
async def _opened(url: str, runtime: WeekRuntime) -> AsyncGenerator[Store]:
    store: Store = SqliteStore(Path(url), runtime)
    if url.startswith("postgresql:"):
        store = PostgresStore(url, runtime, clock="runtime")
    await store.open()
    try:
        yield store
    finally:
        await store.close()


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.statistics", description="A week of jobs, summed up.")
    parser.add_argument("--only", nargs="+", choices=STORES, default=STORES, metavar="STORE", help="sqlite, postgres")
    parser.add_argument("--jobs", type=int, default=1_000_000, help="finished jobs to have there (1 000 000)")
    parser.add_argument("--directory", type=Path, help="where files are put (the system's temporary directory)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures there")
    asked = parser.parse_args(arguments)
    print(machine.look(asked.directory))
    results = {kind: asyncio.run(measured(kind, asked.jobs, asked.directory)) for kind in asked.only}
    rows = [_row(kind, name, took) for kind, figures in results.items() for name, took in figures.items()]
    print("\n".join(report.aligned([["store", "range", "median", "slowest", "CPU", f"of {TARGET_MS:.0f} ms"], *rows])))
    if asked.json is not None:
        asked.json.write_text(json.dumps({"jobs": asked.jobs, "milliseconds": results}) + "\n")
    return 0


def _row(kind: str, name: str, took: list[tuple[float, float]]) -> list[str]:
    walls, cpus = zip(*took, strict=True)
    median = statistics.median(walls)
    figures = [f"{each:.1f} ms" for each in (median, max(walls), statistics.median(cpus))]
    return [kind, name, *figures, "ok" if median < TARGET_MS else "above"]


if __name__ == "__main__":
    sys.exit(main())
