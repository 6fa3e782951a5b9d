"""Folds what was counted into minutes and hours, so that statistics stay short to read. Every worker does it."""

from __future__ import annotations

from msgspec import Struct

from ropewalk.domain.retention import Retention
from ropewalk.worker.context import Workbench
from ropewalk.worker.services.periodic import every


class TallyFolderConfig(Struct, frozen=True):
    every_seconds: float = 5.0
    batch: int = 1000


class TallyFolder:
    def __init__(self, bench: Workbench, retention: Retention, config: TallyFolderConfig | None = None) -> None:
        self._bench = bench
        self._retention = retention
        self._config = config or TallyFolderConfig()

    async def run(self) -> None:
        await every(self._config.every_seconds, self.run_once, self._bench.runtime)

    async def run_once(self) -> bool:
        folded = await self._bench.store.fold_tallies(self._retention.statistics_us, self._config.batch)
        return folded >= self._config.batch
