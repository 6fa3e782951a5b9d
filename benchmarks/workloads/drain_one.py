"""N jobs are there; one worker process (on memory: the worker inside) works them off."""

from __future__ import annotations

import time

from benchmarks.measurement import Measurement, rate
from benchmarks.run import Run
from benchmarks.workloads.workload import Target, Workload


async def drain(run: Run) -> Measurement:
    await run.submit("bulk")
    began = time.perf_counter()
    await run.crew.go()
    await run.until_completed(run.jobs.stop)
    seconds = time.perf_counter() - began
    await run.crew.stop()
    return rate(await run.verify(completed=True), seconds)


DRAIN_ONE = Workload(
    name="drain-1",
    about="jobs already there, one worker process",
    procedure=drain,
    jobs=30_000,
    quick_jobs=3_000,
    targets={"memory": Target(absolute=25_000), "sqlite": Target(of_floor=0.25), "postgres": Target(of_floor=0.35)},
)
