"""The maintenance services: the pruner, the reclaimer, the counter folder and the cascade. Every worker runs them for
all jobs of the store. Each service runs once, waits and runs again; it does not wait while more than one batch is left.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from msgspec import Struct

from ropewalk.domain.retention import Retention
from ropewalk.observe.publish import NO_CONSEQUENCES
from ropewalk.ports.runtime import Runtime
from ropewalk.ports.store.capabilities import STATISTICS, WORKFLOWS
from ropewalk.ports.store.consequences import Consequences
from ropewalk.runtime.wake import Wake
from ropewalk.worker.context import WorkerContext


async def every(seconds: float, run_once: Callable[[], Awaitable[bool]], runtime: Runtime) -> None:
    """Runs a service in a loop. `run_once` returns whether it left work behind. The waits are random, so that the
    workers of a fleet do not run it all at the same time."""
    while True:
        await runtime.sleep(seconds * (0.5 + runtime.random()))
        while await run_once():
            pass


class PrunerConfig(Struct, frozen=True):
    every_seconds: float = 60.0
    batch: int = 500


class Pruner:
    """Deletes jobs and results that are past their retention, in small batches."""

    def __init__(self, worker_context: WorkerContext, retention: Retention, config: PrunerConfig | None = None) -> None:
        self._worker_context = worker_context
        self._retention = retention
        self._config = config or PrunerConfig()

    async def run(self) -> None:
        await every(self._config.every_seconds, self.run_once, self._worker_context.runtime)

    async def run_once(self) -> bool:
        pruned = await self._worker_context.store.prune(self._retention, self._config.batch)
        return max(pruned.jobs, pruned.results, pruned.keys) >= self._config.batch


class ReclaimerConfig(Struct, frozen=True):
    every_seconds: float = 3.0
    unsteady_seconds: float = 1.0
    """The service runs this often while the contact with the store is not steady (contact.py)."""
    batch: int = 500


class Reclaimer:
    """Sweeps: takes back the jobs of dead workers, ends jobs whose deadline has passed, and ends waits that are
    over."""

    def __init__(
        self,
        worker_context: WorkerContext,
        on_consequences: Callable[[Consequences], object],
        config: ReclaimerConfig | None = None,
    ) -> None:
        self._worker_context = worker_context
        self._on_consequences = on_consequences
        self._config = config or ReclaimerConfig()

    async def run(self) -> None:
        """Sweeps in a loop; more often while this worker may not take back leases yet, because every call keeps up its
        contact with the store until it may."""
        runtime, config = self._worker_context.runtime, self._config
        while True:
            seconds = config.every_seconds if self._worker_context.contact.steady else config.unsteady_seconds
            await runtime.sleep(seconds * (0.5 + runtime.random()))
            while await self.run_once():
                pass

    async def run_once(self) -> bool:
        if not self._worker_context.guard.calm:
            return False
        store, contact, monotonic = (
            self._worker_context.store,
            self._worker_context.contact,
            self._worker_context.runtime.monotonic,
        )
        asked_at = monotonic()
        contact.answered("clock", asked_at, await store.clock())
        asked_at = monotonic()
        consequences = await store.sweep(self._config.batch, take_back_until=self._worker_context.take_back_until())
        contact.answered("sweep", asked_at)
        if consequences != NO_CONSEQUENCES:
            self._on_consequences(consequences)
        return len(consequences.moved) >= self._config.batch


class CounterFolderConfig(Struct, frozen=True):
    every_seconds: float = 5.0
    batch: int = 1000


class CounterFolder:
    """Adds the counters of single transactions up to sums of minutes and hours, so that few rows are read for
    statistics."""

    def __init__(
        self, worker_context: WorkerContext, retention: Retention, config: CounterFolderConfig | None = None
    ) -> None:
        self._worker_context = worker_context
        self._store = STATISTICS.of(worker_context.store)
        self._retention = retention
        self._config = config or CounterFolderConfig()

    async def run(self) -> None:
        await every(self._config.every_seconds, self.run_once, self._worker_context.runtime)

    async def run_once(self) -> bool:
        folded = await self._store.fold_counters(self._retention.statistics_us, self._config.batch)
        return folded >= self._config.batch


class CascadeConfig(Struct, frozen=True):
    every_seconds: float = 3.0
    """The leftovers of a worker that died are continued after at most about this time; those of this worker at once."""
    batch: int = 1000


class Cascade:
    """Continues the consequences that one transaction postponed because they were too many: jobs that the end of
    another job released or doomed."""

    def __init__(
        self,
        worker_context: WorkerContext,
        on_consequences: Callable[[Consequences], object],
        config: CascadeConfig | None = None,
    ) -> None:
        self._worker_context = worker_context
        self._store = WORKFLOWS.of(worker_context.store)
        self._on_consequences = on_consequences
        self._config = config or CascadeConfig()
        self._wake = Wake(worker_context.runtime)

    def nudge(self) -> None:
        """Has the service run at once, because a transaction has just postponed consequences."""
        self._wake.set()

    async def run(self) -> None:
        runtime = self._worker_context.runtime
        while True:
            await self._wake.wait(self._config.every_seconds * (0.5 + runtime.random()))
            while await self.run_once():
                pass

    async def run_once(self) -> bool:
        consequences = await self._store.cascade(self._config.batch)
        if consequences != NO_CONSEQUENCES:
            self._on_consequences(consequences)
        return consequences.more
