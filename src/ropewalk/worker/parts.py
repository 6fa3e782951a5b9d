"""The parts of a worker: jobs go from the claimer through the buffer and the executor to the settler, while the
heartbeat renews their leases and services do maintenance.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
from collections.abc import Callable
from typing import Final

from msgspec import Struct

from ropewalk.definitions.context.attempt_port import Cancellation
from ropewalk.definitions.policies import Concurrency, Unlimited, checked_concurrency, most_at_once
from ropewalk.domain import checks
from ropewalk.domain.jobs.lease import LEASE_MIN, LossReason
from ropewalk.domain.jobs.record import JobRecord, NewJob
from ropewalk.domain.retention import Retention
from ropewalk.domain.time import SECOND, Span
from ropewalk.errors import RopewalkError
from ropewalk.observe.publish import publish
from ropewalk.ports.notifier import Hint, Unsubscribe
from ropewalk.ports.store.capabilities import STATISTICS
from ropewalk.ports.store.consequences import Consequences
from ropewalk.ports.store.submission import SkipQueue
from ropewalk.runtime.supervisor import Supervisor
from ropewalk.runtime.wake import Signal
from ropewalk.worker.buffer import Buffer
from ropewalk.worker.claimer import Claimer, leased
from ropewalk.worker.context import WorkerContext
from ropewalk.worker.executor import Executor
from ropewalk.worker.heartbeat import Heartbeat
from ropewalk.worker.policies.admission import Accept
from ropewalk.worker.policies.backlog import BacklogAlarm
from ropewalk.worker.policies.backpressure import AdaptiveDelay, Hook
from ropewalk.worker.policies.worker_policies import FREE_SLOTS, buffer_of, policies_of
from ropewalk.worker.services.maintenance import Cascade, CounterFolder, Pruner, Reclaimer
from ropewalk.worker.services.orphan_groups import OrphanGroupReporter
from ropewalk.worker.services.redriver import Redrive, Redriver
from ropewalk.worker.services.scheduler import Scheduler
from ropewalk.worker.settler import Settler

CLEAN_UP_SECONDS: Final = 3.0
"""A cancelled handler may take this long to clean up before it is left behind."""


class Drain:
    """The way a worker stops: it starts no more jobs, gives the running ones time to finish, and then stops them and
    gives them back, which does not count as an attempt."""

    def __init__(self, worker_context: WorkerContext, buffer: Buffer, executor: Executor, settler: Settler) -> None:
        self._worker_context = worker_context
        self._buffer = buffer
        self._executor = executor
        self._settler = settler
        self._hurry = False

    def hurry(self) -> None:
        """Ends the wait for running handlers, because a second signal asks for a quick end."""
        self._hurry = True
        self._executor.idled.set()

    def begin(self) -> None:
        """Gives back the jobs that have not started. The claimer must have stopped before."""
        self._settler.release(self._buffer.take_all())
        self._executor.batches.close()

    async def run(self, grace_seconds: float) -> bool:
        """Drains, and returns whether every handler has ended."""
        self.begin()
        if not await self._idle_within(grace_seconds):
            for attempt in list(self._executor.running):
                attempt.stop(Cancellation(LossReason.SHUTDOWN, "the worker is stopping"))
            self._executor.batches.give_back()
        self._hurry = False
        return await self._idle_within(CLEAN_UP_SECONDS)

    async def _idle_within(self, seconds: float) -> bool:
        until = self._worker_context.runtime.monotonic() + seconds
        # The time of the event loop counts as well: a fake clock may stand still while a handler is stuck in a thread.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while self._executor.running:
                    left = until - self._worker_context.runtime.monotonic()
                    if self._hurry or left <= 0:
                        return False
                    await self._executor.idled.wait(left)
        return not self._executor.running


DEFAULT_CONCURRENCY: Final = 10
DEFAULT_LEASE: Final[Span] = 30 * SECOND
DEFAULT_GRACE_SECONDS: Final = 30.0
SETTLE_SECONDS: Final = 5.0
"""A stopping worker waits this long for the store to answer its last claim and to accept its last settlements."""


class WorkerConfig(Struct, frozen=True, kw_only=True):
    """The validated options of a worker. None as `queues` or `tenants` serves all of them."""

    queues: tuple[str, ...] | None = None
    tenants: tuple[str, ...] | None = None
    concurrency: Concurrency = DEFAULT_CONCURRENCY
    accept: Accept | None = None
    backpressure: Hook | AdaptiveDelay | None = None
    backlog_alarm: BacklogAlarm | None = None
    lease_us: Span = DEFAULT_LEASE
    grace_seconds: float = DEFAULT_GRACE_SECONDS
    poll_seconds: float = 1.0
    scheduler: bool = True
    redrive: Redrive | None = None

    def __post_init__(self) -> None:
        for field, value, least in (
            ("lease", self.lease_us / SECOND, LEASE_MIN / SECOND),
            ("grace", self.grace_seconds, 0.0),
            ("poll", self.poll_seconds, 0.001),
        ):
            checks.number(value, field, least)
        checked_concurrency(self.concurrency, "concurrency")
        if self.accept is not None and (not callable(self.accept) or inspect.iscoroutinefunction(self.accept)):
            raise checks.wrong("accept", self.accept, "a plain function, not an async one")
        if not isinstance(self.backpressure, AdaptiveDelay):
            checks.function_or_none(self.backpressure, "backpressure")
        checks.instance_or_none(self.backlog_alarm, "backlog_alarm", BacklogAlarm, "BacklogAlarm(older_than=60)")
        checks.flag(self.scheduler, "scheduler")

    @property
    def bound(self) -> int | None:
        """The number of jobs that may run at once; None means that there is no bound."""
        if isinstance(self.concurrency, Unlimited):
            return None
        return most_at_once(self.concurrency) or DEFAULT_CONCURRENCY

    @property
    def slots(self) -> int:
        """The number of slots at the start; a worker without a bound opens more."""
        return FREE_SLOTS if self.bound is None else self.bound


class WorkerParts:
    """The running parts of a started worker. This class starts and stops them in the right order."""

    def __init__(
        self,
        worker_context: WorkerContext,
        config: WorkerConfig,
        retention: Retention,
        orphans: OrphanGroupReporter | None,
        scheduler: Scheduler | None,
    ) -> None:
        self.worker_context = worker_context
        self._config = config
        self.draining = False
        self.on_drain: Callable[[], object] = self.retire
        """This is called when the heartbeat learns that the worker should drain. `Worker.run` replaces it by a function
        that ends the whole worker."""
        self.buffer = buffer_of(config.concurrency, worker_context.registry)
        self.settler = Settler(worker_context, busy=self._busy)
        self.executor = Executor(worker_context, self.buffer, self.settler, slots=config.slots)
        self._policies = policies_of(
            worker_context,
            self.buffer,
            self.executor,
            self.settler,
            concurrency=config.concurrency,
            accept=config.accept,
            backpressure=config.backpressure,
            backlog_alarm=config.backlog_alarm,
        )
        if self._policies.admission is not None:
            self.executor.on_begin = self._policies.admission.began
        self.claimer = Claimer(
            worker_context,
            self.buffer,
            self.executor,
            self.settler,
            self._policies,
            queues=config.queues,
            tenants=config.tenants,
            poll_seconds=config.poll_seconds,
        )
        self.heartbeat = Heartbeat(worker_context)
        self.drain = Drain(worker_context, self.buffer, self.executor, self.settler)
        self.heartbeat.on_drain = self._drain_requested
        self._reclaimer = Reclaimer(worker_context, self._publish)
        self._cascade = None if worker_context.workflows is None else Cascade(worker_context, self._publish)
        self._orphans = orphans
        self._scheduler = scheduler
        self._pruner = Pruner(worker_context, retention)
        self._counters = (
            CounterFolder(worker_context, retention) if STATISTICS in worker_context.store.capabilities else None
        )
        redrive = config.redrive
        self._redriver = None if redrive is None else Redriver(worker_context, redrive, self._is_idle, config.tenants)
        # The services stop first, while the claimer and the settler still finish the running jobs.
        self.loops = Supervisor(worker_context.runtime, on_error=worker_context.loop_failed)
        self._services = Supervisor(worker_context.runtime, on_error=worker_context.loop_failed)
        self._unsubscribe: Unsubscribe = lambda: None
        self._changed = Signal()
        """This fires after every claim and every batch of settlements, for `idle`."""
        self.settler.on_settled = self._on_settled
        worker_context.settled_elsewhere = self.settler.report
        self.settler.on_consequences = self._on_consequences
        self.buffer.on_low = self.claimer.nudge
        self.claimer.on_claimed = self._changed.fire
        self.claimer.on_consequences = self._publish

    def start(self) -> None:
        """Starts all parts."""
        self._unsubscribe = self.worker_context.store.notifier.subscribe(self._on_hint)
        self.executor.start()
        self.heartbeat.start()
        self.loops.start("claimer", self.claimer.run, lambda: self.claimer.claims)
        self.loops.start("settler", self.settler.run, lambda: self.settler.flushes)
        self._services.start("reclaimer", self._reclaimer.run)
        if self._cascade is not None:
            self._services.start("cascade", self._cascade.run)
        self._services.start("pruner", self._pruner.run)
        if self._counters is not None:
            self._services.start("counters", self._counters.run)
        if self._orphans is not None:
            self._services.start("orphans", self._orphans.run)
        if self._scheduler is not None:
            self._services.start("scheduler", self._scheduler.run)
        if self._redriver is not None:
            self._services.start("redriver", self._redriver.run)

    def retire(self) -> None:
        """Has the worker claim no more jobs and give back those that have not started; running jobs go on."""
        self.draining = True
        self.claimer.stop()
        self.drain.begin()

    async def stop(self, grace_seconds: float) -> bool:
        """Drains and stops all parts. Returns False if a handler had to be left running."""
        self.draining = self.loops.ending = True
        self._unsubscribe()
        self.claimer.stop()
        await self._services.stop()
        clean = await self.drain.run(grace_seconds)
        until = self.worker_context.runtime.monotonic() + SETTLE_SECONDS
        await self._within(until, lambda: not self.claimer.over, self.claimer.ended)
        self.settler.close()
        await self._within(until, lambda: self.settler.unsettled > 0, self.settler.flushed)
        await self.loops.stop()
        await self.executor.stop()
        await self.worker_context.isolation.close()
        await self.heartbeat.stop()
        try:
            await self.worker_context.store.unregister(self.worker_context.owner)
        except RopewalkError as error:
            self.worker_context.events.report(error, "unregister")
        return clean

    async def idle(self) -> None:
        """Waits until this worker holds no job, no maintenance is left to do, and a claim has found no ready job.

        Incomplete batches are started when no more jobs can fill them, because a test that waits here may have stopped
        the clock, so that their time would never be up.
        """
        batches = self.executor.batches
        while True:
            while len(self.worker_context.attempts) > batches.gathered:
                await self._changed.wait()
            if self.draining:
                return
            while await self._reclaimer.run_once() or await self._cascaded() or await self._fired():
                pass
            turn = self.claimer.turn
            self.claimer.nudge()
            # A claim that is under way may have been sent before jobs and slots became free.
            while self.claimer.answered_turn <= turn and not self.draining:
                await self._changed.wait()
            if self.claimer.last_was_empty and len(self.worker_context.attempts) == batches.gathered:
                if not self.worker_context.attempts:
                    return
                batches.start_all()

    async def _cascaded(self) -> bool:
        """Continues postponed consequences once, and returns whether more are left."""
        return self._cascade is not None and await self._cascade.run_once()

    async def _fired(self) -> bool:
        """Fires the schedules that are due, and returns whether there were any."""
        return self._scheduler is not None and await self._scheduler.run_once()

    def skip_ticket(self, new: NewJob) -> SkipQueue | None:
        """Returns the lease for a job that skips the queue, if a slot is free for it here; None otherwise."""
        config = self._config
        served = (
            new.type in self.worker_context.registry
            and (config.queues is None or new.queue in config.queues)
            and (config.tenants is None or new.tenant in config.tenants)
        )
        admission = self._policies.admission
        if self.draining or not served or not self.claimer.has_free_slot:
            return None
        if admission is not None and admission.concerns(new.type):
            return None  # A policy may refuse or delay this job, so it must not skip the queue.
        return SkipQueue(self.worker_context.owner, 0, self.worker_context.leases()[new.type])

    def adopt(self, job: JobRecord) -> None:
        """Runs a job that was inserted with a lease of this worker."""
        [attempt] = leased([job], self.worker_context)
        self.buffer.put_first(attempt)

    async def _within(self, until: float, unfinished: Callable[[], bool], changed: Signal) -> None:
        """Waits while `unfinished()` is true, but not beyond `until`.

        If the store is away, the leases expire and another worker runs the jobs again.
        """
        runtime = self.worker_context.runtime
        timer = runtime.after(max(0.0, until - runtime.monotonic()), changed.fire)
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(SETTLE_SECONDS):
                    while unfinished() and runtime.monotonic() < until:
                        await changed.wait()
        finally:
            timer.cancel()

    def _drain_requested(self) -> None:
        if not self.draining:
            self.on_drain()
            self._changed.fire()

    def _on_settled(self) -> None:
        self.claimer.nudge()
        self._changed.fire()

    def _is_idle(self) -> bool:
        """Whether this worker holds no job and its last claim brought none, so that it may redrive dead letters."""
        return not self.worker_context.attempts and self.claimer.last_was_empty

    def _busy(self) -> bool:
        """Whether buffered jobs are about to run, so that the settler may wait for more outcomes."""
        return bool(self.buffer) and (self.buffer.idle_runners == 0 or self.buffer.may_start())

    def _on_hint(self, hint: Hint) -> None:
        self.claimer.hint(hint)
        if hint.control:
            self.heartbeat.nudge()
            if self._scheduler is not None:
                self._scheduler.nudge()

    def _publish(self, consequences: Consequences) -> None:
        """Publishes to hooks, waiters and other workers that the store took leases back or ended jobs by itself."""
        publish(
            [],
            store=self.worker_context.store,
            events=self.worker_context.events,
            runtime=self.worker_context.runtime,
            consequences=consequences,
        )
        self._on_consequences(consequences)

    def _on_consequences(self, consequences: Consequences) -> None:
        """Wakes the services for the work that consequences leave: postponed ones and closed groups. The caller has
        already published these consequences."""
        if consequences.more and self._cascade is not None:
            self._cascade.nudge()
        if consequences.closed and self._orphans is not None:
            self._orphans.nudge()
