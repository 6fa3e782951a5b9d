"""A hundred concurrent callers on one loop: what sharing a commit brings."""

from __future__ import annotations

from benchmarks.measurement import Measurement, rate
from benchmarks.run import Run
from benchmarks.workloads.submit_one import SUBMIT_ONE
from benchmarks.workloads.workload import Target, Workload


async def submit_concurrently(run: Run) -> Measurement:
    submitted = await run.submit("hundred")
    return rate(await run.verify(completed=False), submitted.seconds)


SUBMIT_HUNDRED = Workload(
    name="submit-100",
    about="a hundred concurrent callers",
    procedure=submit_concurrently,
    jobs=10_000,
    quick_jobs=1_000,
    workers=0,
    beside=SUBMIT_ONE,
    targets={"postgres": Target(of_beside=2.5)},
)
