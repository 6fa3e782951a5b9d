"""What a workload is: a procedure over a prepared run, its sizes, and what it should reach."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from benchmarks.measurement import Measurement
from benchmarks.run import Run
from benchmarks.subjects.subject import Kind, StoreName


@dataclass(frozen=True, slots=True)
class Target:
    """At least (rates) or at most (latencies) this: absolute, or as a multiple of the floor. Either will do.

    A start takes two commits, so on a slow disk no queue reaches an absolute latency: then the floor is the measure.
    """

    absolute: float | None = None
    of_floor: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Workload:
    name: str
    about: str
    procedure: Callable[[Run], Awaitable[Measurement]]
    jobs: int
    quick_jobs: int
    workers: int = 1
    """processes; on memory there is one, inside"""
    lower_is_better: bool = False
    stores: tuple[StoreName, ...] = ("memory", "sqlite")
    kinds: tuple[Kind, ...] = ("ropewalk", "floor")
    targets: Mapping[StoreName, Target] | None = None
