"""All rounds of one workload on one store, what they come to beside one another, and whether that is enough."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field

from benchmarks.measurement import Measurement
from benchmarks.peers.known import PEERS
from benchmarks.subjects.subject import Kind, StoreName
from benchmarks.workloads.workload import Target, Workload


@dataclass(slots=True)
class Result:
    store: StoreName
    workload: Workload
    runs: dict[Kind, list[Measurement]] = field(default_factory=dict)
    beside: Result | None = None
    """that of the workload this one is compared with, if it was run"""

    def stand_beside(self, results: list[Result]) -> None:
        """Find the one to be compared with."""
        same_store = (result for result in results if result.store == self.store)
        self.beside = next((result for result in same_store if result.workload is self.workload.beside), None)

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
    def peers(self) -> list[Kind]:
        return [kind for kind in self.runs if kind in PEERS]

    @property
    def best_peer(self) -> Kind | None:
        """Of those written in Python that promise as much."""
        equals = [kind for kind in self.peers if PEERS[kind].language == "python" and PEERS[kind].equal]
        best = min if self.workload.lower_is_better else max
        return best(equals, key=self.median, default=None)

    @property
    def of_floor(self) -> float | None:
        return self._of(self.runs.get("floor"))

    @property
    def of_best_peer(self) -> float | None:
        return None if self.best_peer is None else self._of(self.runs[self.best_peer])

    @property
    def of_beside(self) -> float | None:
        return None if self.beside is None else self._of(self.beside.runs["ropewalk"])

    @property
    def on_target(self) -> bool | None:
        """None where nothing was set as a target, or nothing measured to judge it by."""
        target = self.target
        judged = [
            (self.median("ropewalk"), target.absolute),
            (self.of_floor, target.of_floor),
            (self.of_best_peer, target.of_best_peer),
            (self.of_beside, target.of_beside),
        ]
        asked = [(got, wanted) for got, wanted in judged if got is not None and wanted is not None]
        if not asked:
            return None
        if self.workload.lower_is_better:
            return any(got <= wanted for got, wanted in asked)
        return any(got >= wanted for got, wanted in asked)

    def _of(self, others: list[Measurement] | None) -> float | None:
        if others is None:
            return None
        pairs = zip(self.runs["ropewalk"], others, strict=True)
        return statistics.median(ours.headline / theirs.headline for ours, theirs in pairs)
