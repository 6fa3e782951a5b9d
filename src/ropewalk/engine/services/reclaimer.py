"""Takes back the jobs of dead workers and ends those past their deadline. Every worker does it; none has to."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from ropewalk.engine.services.periodic import every
from ropewalk.engine.workbench import Workbench
from ropewalk.ports.exchange import Moved


class ReclaimerConfig(Struct, frozen=True):
    every_seconds: float = 3.0
    batch: int = 500


class Reclaimer:
    def __init__(
        self, bench: Workbench, on_moved: Callable[[list[Moved]], object], config: ReclaimerConfig | None = None
    ) -> None:
        self._bench = bench
        self._on_moved = on_moved
        self._config = config or ReclaimerConfig()

    async def run(self) -> None:
        await every(self._config.every_seconds, self.run_once, self._bench.runtime)

    async def run_once(self) -> bool:
        if not self._bench.guard.calm:
            return False
        moved = await self._bench.store.sweep(self._config.batch)
        if moved:
            self._on_moved(moved)
        return len(moved) >= self._config.batch
