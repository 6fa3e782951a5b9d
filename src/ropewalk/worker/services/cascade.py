"""Goes on with what an ending released or doomed beyond one transaction's share. Every worker does it; none has to."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from ropewalk.observe.publish import NOTHING_ELSE
from ropewalk.ports.store.messages import Ripple
from ropewalk.runtime.wake import Wake
from ropewalk.worker.context import Workbench


class CascadeConfig(Struct, frozen=True):
    every_seconds: float = 3.0
    """how long nobody notices what a dead worker left; our own leftovers are taken up at once"""
    batch: int = 1000


class Cascade:
    def __init__(
        self, bench: Workbench, on_ripple: Callable[[Ripple], object], config: CascadeConfig | None = None
    ) -> None:
        self._bench = bench
        self._on_ripple = on_ripple
        self._config = config or CascadeConfig()
        self._wake = Wake(bench.runtime)

    def nudge(self) -> None:
        """Something was left behind just now."""
        self._wake.set()

    async def run(self) -> None:
        runtime = self._bench.runtime
        while True:
            await self._wake.wait(self._config.every_seconds * (0.5 + runtime.random()))
            while await self.run_once():
                pass

    async def run_once(self) -> bool:
        ripple = await self._bench.store.cascade(self._config.batch)
        if ripple == NOTHING_ELSE:
            return False
        self._on_ripple(ripple)
        return True
