"""The same with two worker processes on one store."""

from __future__ import annotations

from benchmarks.workloads.drain_one import drain
from benchmarks.workloads.workload import Target, Workload

DRAIN_TWO = Workload(
    name="drain-2",
    about="jobs already there, two worker processes",
    procedure=drain,
    jobs=30_000,
    quick_jobs=3_000,
    workers=2,
    stores=("sqlite", "postgres"),
    targets={"sqlite": Target(of_floor=0.25)},
)
