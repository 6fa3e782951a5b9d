"""One caller, each enqueue awaited before the next: bounded by one commit each."""

from __future__ import annotations

from benchmarks.measurement import Measurement, rate
from benchmarks.run import Run
from benchmarks.workloads.workload import Workload


async def submit_one_by_one(run: Run) -> Measurement:
    submitted = await run.submit("one")
    return rate(await run.verify(completed=False), submitted.seconds)


SUBMIT_ONE = Workload(
    name="submit-1",
    about="one caller, each enqueue awaited",
    procedure=submit_one_by_one,
    jobs=1_000,
    quick_jobs=100,
    workers=0,
)
