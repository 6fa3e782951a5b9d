"""enqueue_many, a thousand at a time."""

from __future__ import annotations

import time
from typing import Final

from benchmarks.measurement import Measurement, rate
from benchmarks.run import Run
from benchmarks.workloads.workload import Target, Workload

BATCH: Final = 1_000


async def submit_in_bulk(run: Run) -> Measurement:
    began = time.perf_counter()
    await submit_batches(run)
    seconds = time.perf_counter() - began
    return rate(await run.verify(completed=False), seconds)


async def submit_batches(run: Run) -> None:
    for start in range(0, len(run.jobs), BATCH):
        await run.subject.submit_many(run.jobs[start : start + BATCH])


SUBMIT_BULK = Workload(
    name="submit-bulk",
    about="enqueue_many, a thousand at a time",
    procedure=submit_in_bulk,
    jobs=20_000,
    quick_jobs=3_000,
    workers=0,
    targets={"sqlite": Target(of_floor=0.3)},
)
