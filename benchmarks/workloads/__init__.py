"""The workloads, one a file, in the order they are run."""

from __future__ import annotations

from typing import Final

from benchmarks.workloads.drain_one import DRAIN_ONE
from benchmarks.workloads.drain_two import DRAIN_TWO
from benchmarks.workloads.latency import LATENCY
from benchmarks.workloads.round_trip import ROUND_TRIP
from benchmarks.workloads.submit_bulk import SUBMIT_BULK
from benchmarks.workloads.submit_hundred import SUBMIT_HUNDRED
from benchmarks.workloads.submit_one import SUBMIT_ONE
from benchmarks.workloads.workload import Workload

WORKLOADS: Final[tuple[Workload, ...]] = (
    SUBMIT_ONE,
    SUBMIT_HUNDRED,
    SUBMIT_BULK,
    DRAIN_ONE,
    DRAIN_TWO,
    LATENCY,
    ROUND_TRIP,
)
