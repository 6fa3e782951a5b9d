"""An idle worker in another process (on memory: inside), jobs 20 ms apart: from the enqueue to the handler's start."""

from __future__ import annotations

import asyncio
import time
from typing import Final

from benchmarks.measurement import Measurement, latency
from benchmarks.run import Run
from benchmarks.workloads.workload import Target, Workload

APART_SECONDS: Final = 0.02


async def start_latency(run: Run) -> Measurement:
    await run.crew.go()
    asked_ns: dict[int, int] = {}
    for number in run.jobs:
        await asyncio.sleep(APART_SECONDS)
        asked_ns[number] = time.monotonic_ns()
        await run.subject.submit(number)
    await run.until_completed(run.jobs.stop)
    await run.crew.stop()
    await run.verify(completed=True)
    return latency([(run.board.started_ns(number) - asked_ns[number]) / 1e9 for number in run.jobs])


LATENCY = Workload(
    name="latency",
    about="idle worker, 20 ms apart: enqueue to handler start",
    procedure=start_latency,
    jobs=300,
    quick_jobs=50,
    lower_is_better=True,
    targets={"memory": Target(absolute=5.0), "sqlite": Target(absolute=5.0, of_floor=1.5)},
)
