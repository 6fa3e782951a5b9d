"""An idle worker, jobs 10 ms apart: from the enqueue to the result in the caller's hand. Floors keep no results."""

from __future__ import annotations

import asyncio
import time
from typing import Final, cast

from benchmarks.measurement import Measurement, latency
from benchmarks.run import Miscounted, Run
from benchmarks.subjects.subject import Answering
from benchmarks.workloads.workload import Target, Workload

APART_SECONDS: Final = 0.01


async def result_latency(run: Run) -> Measurement:
    subject = cast("Answering", run.subject)
    await run.crew.go()
    took: list[float] = []
    for number in run.jobs:
        await asyncio.sleep(APART_SECONDS)
        began = time.perf_counter()
        answer = await subject.round_trip(number)
        took.append(time.perf_counter() - began)
        if answer != number:
            raise Miscounted(f"job {number} answered {answer}")
    await run.crew.stop()
    await run.verify(completed=True)
    return latency(took)


ROUND_TRIP = Workload(
    name="round-trip",
    about="idle worker, 10 ms apart: enqueue to result",
    procedure=result_latency,
    jobs=300,
    quick_jobs=50,
    lower_is_better=True,
    kinds=("ropewalk",),
    targets={"memory": Target(absolute=5.0), "sqlite": Target(absolute=5.0), "postgres": Target(absolute=5.0)},
)
