"""Runs the workloads, ropewalk and floor in turn, and condenses the runs into results.

Rounds are interleaved and the first of a pair alternates, so a machine that slows down or speeds up in between hits
both alike; a ratio is always taken within one round, and the median of the rounds is what counts.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from benchmarks.measurement import Measurement
from benchmarks.run import prepared
from benchmarks.subjects.subject import Kind, StoreName
from benchmarks.workloads.workload import Target, Workload

Teller: TypeAlias = Callable[[str], None]
"""hears what is going on"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    rounds: int = 3
    quick: bool = False
    jobs: int | None = None
    """overrides the size of every workload"""
    directory: Path | None = None

    def size_of(self, workload: Workload) -> int:
        if self.jobs is not None:
            return self.jobs
        return workload.quick_jobs if self.quick else workload.jobs


@dataclass(frozen=True, slots=True)
class Result:
    """All rounds of one workload on one store."""

    store: StoreName
    workload: Workload
    runs: dict[Kind, list[Measurement]] = field(default_factory=dict)

    @property
    def target(self) -> Target:
        return (self.workload.targets or {}).get(self.store, Target())

    def median(self, kind: Kind) -> float:
        return statistics.median(run.headline for run in self.runs[kind])

    def figures(self, kind: Kind) -> dict[str, float]:
        """Every figure's median over the rounds."""
        names = self.runs[kind][0].figures
        return {name: statistics.median(run.figures[name] for run in self.runs[kind]) for name in names}

    @property
    def ratio(self) -> float | None:
        if "floor" not in self.runs:
            return None
        pairs = zip(self.runs["ropewalk"], self.runs["floor"], strict=True)
        return statistics.median(ours.headline / floor.headline for ours, floor in pairs)

    @property
    def on_target(self) -> bool | None:
        """None where nothing was set as a target."""
        target = self.target
        judged = [(self.median("ropewalk"), target.absolute), (self.ratio, target.of_floor)]
        asked = [(got, wanted) for got, wanted in judged if got is not None and wanted is not None]
        if not asked:
            return None
        if self.workload.lower_is_better:
            return any(got <= wanted for got, wanted in asked)
        return any(got >= wanted for got, wanted in asked)


async def measure(chosen: list[tuple[StoreName, Workload]], settings: Settings, told: Teller) -> list[Result]:
    results = {(store, workload.name): Result(store, workload) for store, workload in chosen}
    for number in range(settings.rounds):
        for store, workload in chosen:
            for kind in _in_turn(workload.kinds, number):
                told(f"round {number + 1}/{settings.rounds}  {store} {workload.name}  {kind}")
                measured = await _once(kind, store, workload, settings)
                results[store, workload.name].runs.setdefault(kind, []).append(measured)
    return list(results.values())


def _in_turn(kinds: tuple[Kind, ...], number: int) -> Iterator[Kind]:
    return iter(kinds if number % 2 == 0 else kinds[::-1])


async def _once(kind: Kind, store: StoreName, workload: Workload, settings: Settings) -> Measurement:
    jobs = settings.size_of(workload)
    async with prepared(kind, store, jobs=jobs, workers=workload.workers, parent=settings.directory) as run:
        return await workload.procedure(run)
