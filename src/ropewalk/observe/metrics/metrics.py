"""`app.metrics`: what this process counted and what waits in the store, as Prometheus text or as data."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from ropewalk.domain.time import SECOND, Instant
from ropewalk.errors import RopewalkError
from ropewalk.observe.metrics import catalogue
from ropewalk.observe.metrics.exposition import CONTENT_TYPE, exposition
from ropewalk.observe.metrics.meter import Meter
from ropewalk.observe.metrics.registry import Family, Registry
from ropewalk.ports.store.messages import Backlog

if TYPE_CHECKING:
    from ropewalk.client.app_state import Core

LOOK_SHARE: Final = 20
"""a look at the store that took so long is not repeated for this many times as long: at most a twentieth of the time"""
LOOK_SECONDS: Final = 1.0
"""nor sooner than this"""


class Metrics:
    """Counters are of this process, since it started; gauges of queues are the store's, read when asked for."""

    content_type: Final = CONTENT_TYPE
    """to answer a scrape with"""

    def __init__(self, core: Core, registry: Registry, meter: Meter | None) -> None:
        self._core = core
        self._registry = registry
        self._meter = meter
        self._next_look = float("-inf")

    async def text(self) -> str:
        """Prometheus text, for a scrape. Any number of callers: the store is asked about once a second at most."""
        return exposition(await self.snapshot())

    async def snapshot(self) -> list[Family]:
        """The same as data, every metric with all its samples."""
        await self._look()
        if self._meter is not None:
            self._meter.count_begun()
        return self._registry.collect()

    async def _look(self) -> None:
        runtime = self._core.runtime
        began = runtime.monotonic()
        if began < self._next_look:
            return
        self._next_look = began + LOOK_SECONDS  # others who come meanwhile do not look, too
        try:
            await self._core.open()
            backlog, now = await self._core.store.backlog(), await self._core.store.clock()
        except RopewalkError as error:
            self._core.events.report(error, "metrics")
            backlog, now = [], 0  # what this process counted is shown all the same
        self._set(backlog, now)
        self._next_look = began + max(LOOK_SECONDS, LOOK_SHARE * (runtime.monotonic() - began))

    def _set(self, backlog: list[Backlog], now: Instant) -> None:
        ready: Counter[str] = Counter()
        oldest: dict[str, Instant] = {}
        unknown: Counter[str] = Counter()
        for each in backlog:
            queue, job_type = each.lane.queue, each.lane.type
            ready[queue] += each.ready
            oldest[queue] = min(each.oldest_ready_at, oldest.get(queue, each.oldest_ready_at))
            if job_type not in self._core.registry:
                unknown[job_type] += each.ready
        largest = [queue for queue, _ in ready.most_common()]
        ages = [((queue,), max(0, now - oldest[queue]) / SECOND) for queue in largest]
        self._registry.replace(catalogue.READY, [((queue,), ready[queue]) for queue in largest])
        self._registry.replace(catalogue.OLDEST, ages)
        self._registry.replace(catalogue.UNREGISTERED, [((name,), count) for name, count in unknown.most_common()])
