"""The life of a worker: it starts, serves, reacts to signals, and drains. Its parts are put together in parts.py."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Callable, Collection
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import Final, Self

from ropewalk.client.app_state import AppState
from ropewalk.client.client import Client
from ropewalk.client.views.jobs import Describer
from ropewalk.definitions.registry import Registry
from ropewalk.domain.jobs.record import JobRecord, NewJob
from ropewalk.domain.limits.fleet_limit import EVERY_TENANT, FlowLimit, LimitId
from ropewalk.domain.retention import Retention
from ropewalk.domain.user_calls import GuardedContext, guarded
from ropewalk.errors import DefinitionError, RopewalkError
from ropewalk.ports.notifier import Hint
from ropewalk.ports.store.capabilities import LIMITS, SCHEDULES
from ropewalk.ports.store.core import Store
from ropewalk.ports.store.leases import WorkerCard
from ropewalk.ports.store.submission import SkipQueue
from ropewalk.worker.context import WorkerContext
from ropewalk.worker.parts import WorkerConfig, WorkerParts
from ropewalk.worker.services.orphan_groups import OrphanGroupReporter, OrphanHook
from ropewalk.worker.services.scheduler import Scheduler


async def declare_limits(registry: Registry, store: Store) -> None:
    """Stores the limits that job types declare. A worker calls this at its start, before it claims the first job."""
    declared = limits_in(registry)
    if not declared:
        return
    limits = LIMITS.of(store)
    stored = {use.limit.id: use.limit for use in await limits.limits(EVERY_TENANT)}
    new = [limit for limit in declared if limit.replaces(stored.get(limit.id))]
    for limit in new:
        await limits.put_limit(limit)
    if new:
        store.notifier.publish(Hint(control=True))


def limits_in(registry: Registry) -> list[FlowLimit]:
    """Returns the limits that job types declare. Raises DefinitionError if two types declare different limits for one
    key."""
    declared_by: dict[LimitId, tuple[FlowLimit, str]] = {}
    for each in registry:
        limit = None if each.options.limit is None else each.options.limit.of(each.name)
        if limit is None:
            continue
        other, other_type = declared_by.setdefault(limit.id, (limit, each.name))
        if other != limit:
            raise DefinitionError(
                f"{other_type} and {each.name} declare different limits for key {limit.name!r}: "
                "declare it once, and name the key alone with limit= everywhere else"
            )
    return [limit for limit, _ in declared_by.values()]


STOPPING: Final = (signal.SIGTERM, signal.SIGINT)


class Worker:
    """`async with worker:` runs it in the background; `await worker.run()` until a signal says stop."""

    def __init__(
        self,
        app_state: AppState,
        make_worker_context: Callable[[], WorkerContext],
        config: WorkerConfig,
        *,
        client: Client,
        served: Registry,
        retention: Retention,
        lifespan: Callable[[], AbstractAsyncContextManager[tuple[object, ...]]] | None,
        on_orphan_group: OrphanHook | None = None,
    ) -> None:
        self._app_state = app_state
        self._make_worker_context = make_worker_context
        self._config = config
        self._client = client
        self._served = served
        self._retention = retention
        self._lifespan = lifespan
        self._on_orphan_group = on_orphan_group
        self._stack = AsyncExitStack()
        self._parts: WorkerParts | None = None
        self._stopping = asyncio.Lock()
        self._clean: bool | None = None
        """Whether every handler ended at the last stop; None before the first stop."""

    @property
    def client(self) -> Client:
        """The client of the app that made this worker."""
        return self._client

    @property
    def types(self) -> tuple[str, ...]:
        """The names of the job types that this worker serves."""
        return tuple(sorted(self._served.names()))

    @property
    def concurrency(self) -> int | None:
        """The number of jobs that may run at once; None means that there is no bound."""
        return self._config.bound

    @property
    def grace_seconds(self) -> float:
        """The seconds that running jobs may take to finish when the worker stops."""
        return self._config.grace_seconds

    @property
    def id(self) -> str:
        return self._started.worker_context.owner

    @property
    def refused(self) -> int:
        """The number of settlements that the store refused because the lease was lost."""
        return self._started.worker_context.refused

    @property
    def settled(self) -> int:
        """The number of attempts that the store accepted as settled, however they ended."""
        return self._started.settler.settled

    @property
    def ready(self) -> bool:
        """Whether the worker serves: it claimed successfully within three poll intervals, or its backpressure delays
        the next claim, and it does not drain.

        False before it has started and after it has stopped.
        """
        parts = self._parts
        if parts is None:
            return False
        last = parts.claimer.last_poll_at
        patience = 3 * max(self._config.poll_seconds, 1.0)
        if last is None or parts.draining:
            return False
        return parts.claimer.holds_off or parts.worker_context.runtime.monotonic() - last < patience

    async def __aenter__(self) -> Self:
        if self._parts is not None:
            raise RuntimeError("this worker is already running; make another with app.worker()")
        self._stopping, self._clean = asyncio.Lock(), None
        await self._app_state.open()
        worker_context = self._make_worker_context()
        async with AsyncExitStack() as stack:
            if self._lifespan is not None:
                lifespan = GuardedContext(self._lifespan, "the lifespan of the app")
                worker_context.resources = await stack.enter_async_context(lifespan)
            await declare_limits(worker_context.registry, worker_context.store)
            scheduler = await self._scheduler(worker_context)
            orphans = self._orphans(worker_context)
            await worker_context.store.register(self._card(worker_context))
            self._parts = WorkerParts(worker_context, self._config, self._retention, orphans, scheduler)
            self._parts.start()
            self._stack = stack.pop_all()
        self._app_state.serves(self)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def stop(self) -> bool:
        """Drains and stops. Returns False if a handler had to be left running (a thread that does not return).

        Stopping a worker that stops already waits for the same end, and stopping one that has stopped does nothing.
        Both get the same answer.
        """
        async with self._stopping:
            if self._parts is None and self._clean is not None:
                return self._clean
            parts, self._clean = self._started, False
            self._app_state.stops_serving(self)
            try:
                self._clean = await parts.stop(self._config.grace_seconds)
            finally:
                self._parts = None
                await self._stack.aclose()
            return self._clean

    async def run(
        self,
        *,
        on_started: Callable[[Worker], object] | None = None,
        on_drain: Callable[[], object] | None = None,
        hurried_by: Collection[signal.Signals] = STOPPING,
    ) -> bool:
        """Serve until SIGTERM or SIGINT, or until somebody calls app.drain_worker. A second signal, of those in
        `hurried_by`, ends the worker without waiting for its handlers. Signals reach only the main thread of a process,
        so on a loop of another thread only app.drain_worker ends it.

        A store that is away is waited for, however long that takes. The worker gives up only where its claims or
        settlements fail for another reason for a minute: the store refuses to be used, or something is broken here.

        The answer is False when a handler did not end and had to be left behind: a process that ends then should end
        hard. Raises what made the worker give up, so that a process manager sees a failure and restarts it.
        """
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        fatal: list[RopewalkError] = []

        def give_up(error: BaseException, phase: str) -> None:
            fatal.append(RopewalkError(f"the worker gave up: {phase} kept failing, last with {error!r}"))
            fatal[-1].__cause__ = error
            stop.set()

        def on_signal(received: signal.Signals) -> None:
            if stop.is_set() and received in hurried_by and self._parts is not None:
                self._parts.drain.hurry()
            stop.set()

        def drain_requested() -> None:
            if on_drain is not None and not stop.is_set():
                try:
                    guarded(on_drain)
                except Exception as error:
                    self._app_state.events.report(error, "on_drain")
            stop.set()

        signals = STOPPING if threading.current_thread() is threading.main_thread() else ()
        for each in signals:
            loop.add_signal_handler(each, on_signal, each)
        try:
            await self.__aenter__()
            try:
                self._started.loops.on_give_up = give_up
                self._started.on_drain = drain_requested
                if on_started is not None:
                    guarded(on_started, self)
                await stop.wait()
            finally:
                clean = await self.stop()
        finally:
            for each in signals:
                loop.remove_signal_handler(each)
        if fatal:
            raise fatal[0]
        return clean

    async def idle(self) -> None:
        """Waits until this worker holds no job and its last claim found none ready."""
        await self._started.idle()

    def skip_ticket(self, new: NewJob) -> SkipQueue | None:
        """Returns the lease for a job that skips the queue, if a slot is free for it here; None otherwise."""
        return self._started.skip_ticket(new)

    def adopt(self, job: JobRecord) -> None:
        """Runs a job that was inserted with a lease of this worker."""
        self._started.adopt(job)

    @property
    def _started(self) -> WorkerParts:
        if self._parts is None:
            raise RuntimeError("this worker is not running: use `async with worker:` or `await worker.run()`")
        return self._parts

    def _orphans(self, worker_context: WorkerContext) -> OrphanGroupReporter | None:
        """Makes the reporter of orphan groups if the app has a hook for them. Raises Unsupported if the store has no
        workflows."""
        hook = self._on_orphan_group
        if hook is None:
            return None
        describe = Describer(self._app_state.registry, self._app_state.codec, self._app_state.secret_keys)
        return OrphanGroupReporter(worker_context, hook, self._app_state.awaited, describe)

    async def _scheduler(self, worker_context: WorkerContext) -> Scheduler | None:
        if not self._config.scheduler or SCHEDULES not in worker_context.store.capabilities:
            return None
        scheduler = Scheduler(
            worker_context,
            self._app_state.fires,
            editor=self._app_state.schedule_editor,
            declared=self._app_state.declared,
        )
        await scheduler.declare()
        return scheduler

    def _card(self, worker_context: WorkerContext) -> WorkerCard:
        """Returns the description of this worker that the store records."""
        return WorkerCard(
            id=worker_context.owner,
            host=worker_context.host,
            pid=os.getpid(),
            types=self.types,
            queues=self._config.queues,
            tenants=self._config.tenants,
            concurrency=self._config.slots,
            lease_us=self._config.lease_us,
        )
