"""Deletes what is past its retention, in small batches."""

from __future__ import annotations

from msgspec import Struct

from ropewalk.domain.retention import Retention
from ropewalk.worker.context import Workbench
from ropewalk.worker.services.periodic import every


class PrunerConfig(Struct, frozen=True):
    every_seconds: float = 60.0
    batch: int = 500


class Pruner:
    def __init__(self, bench: Workbench, retention: Retention, config: PrunerConfig | None = None) -> None:
        self._bench = bench
        self._retention = retention
        self._config = config or PrunerConfig()

    async def run(self) -> None:
        await every(self._config.every_seconds, self.run_once, self._bench.runtime)

    async def run_once(self) -> bool:
        pruned = await self._bench.store.prune(self._retention, self._config.batch)
        return max(pruned.jobs, pruned.results, pruned.keys) >= self._config.batch
