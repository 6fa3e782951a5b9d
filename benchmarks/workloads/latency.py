"""An idle worker in another process (on memory: inside), jobs 20 ms apart: from the enqueue to the handler's start."""

from __future__ import annotations

from benchmarks.measurement import Measurement, latency
from benchmarks.run import Run
from benchmarks.workloads.workload import Target, Workload


async def start_latency(run: Run) -> Measurement:
    await run.crew.go()
    submitted = await run.submit("apart")
    await run.until_completed(run.jobs.stop)
    await run.crew.stop()
    await run.verify(completed=True)
    pairs = zip(run.jobs, submitted.asked_ns, strict=True)
    return latency([(run.board.started_ns(number) - asked_ns) / 1e9 for number, asked_ns in pairs])


LATENCY = Workload(
    name="latency",
    about="idle worker, 20 ms apart: enqueue to handler start",
    procedure=start_latency,
    jobs=300,
    quick_jobs=50,
    lower_is_better=True,
    targets={
        "memory": Target(absolute=5.0),
        "sqlite": Target(absolute=5.0, of_floor=1.5),
        "postgres": Target(absolute=5.0),
    },
)
