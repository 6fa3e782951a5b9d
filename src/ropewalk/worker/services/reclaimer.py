"""Takes back the jobs of dead workers, ends those past their deadline and waits that are over. Every worker does it."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from ropewalk.observe.publish import NOTHING_ELSE
from ropewalk.ports.store.messages import Ripple
from ropewalk.worker.context import Workbench
from ropewalk.worker.services.periodic import every


class ReclaimerConfig(Struct, frozen=True):
    every_seconds: float = 3.0
    batch: int = 500


class Reclaimer:
    def __init__(
        self, bench: Workbench, on_ripple: Callable[[Ripple], object], config: ReclaimerConfig | None = None
    ) -> None:
        self._bench = bench
        self._on_ripple = on_ripple
        self._config = config or ReclaimerConfig()

    async def run(self) -> None:
        await every(self._config.every_seconds, self.run_once, self._bench.runtime)

    async def run_once(self) -> bool:
        if not self._bench.guard.calm:
            return False
        ripple = await self._bench.store.sweep(self._config.batch)
        if ripple != NOTHING_ELSE:
            self._on_ripple(ripple)
        return len(ripple.moved) >= self._config.batch
