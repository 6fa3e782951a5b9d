"""enqueue_many, a thousand at a time."""

from __future__ import annotations

from benchmarks.measurement import Measurement, rate
from benchmarks.run import Run
from benchmarks.workloads.workload import Target, Workload


async def submit_in_bulk(run: Run) -> Measurement:
    submitted = await run.submit("bulk")
    return rate(await run.verify(completed=False), submitted.seconds)


SUBMIT_BULK = Workload(
    name="submit-bulk",
    about="enqueue_many, a thousand at a time",
    procedure=submit_in_bulk,
    jobs=20_000,
    quick_jobs=3_000,
    workers=0,
    needs_bulk=True,
    targets={"sqlite": Target(of_floor=0.3), "postgres": Target(of_best_peer=1.0)},
)
