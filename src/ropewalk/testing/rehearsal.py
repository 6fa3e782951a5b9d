"""An in-memory double of an app, on a clock that moves only when a test says so."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextlib import AsyncExitStack
from typing import Any, Final, TypeVar, Unpack

from ropewalk.app import App
from ropewalk.backends.memory import MemoryStore
from ropewalk.client.app_state import AppState
from ropewalk.client.client import Client
from ropewalk.client.handle import Handle
from ropewalk.client.views.jobs import JobInfo
from ropewalk.definitions.job import Job, checked_job
from ropewalk.definitions.job_types.job_type import JobType
from ropewalk.definitions.options import EnqueueOptions
from ropewalk.definitions.policies import Concurrency
from ropewalk.definitions.registry import Registry
from ropewalk.domain import checks
from ropewalk.domain.jobs.record import JobRecord
from ropewalk.domain.time import SECOND
from ropewalk.errors import PartlyEnqueued
from ropewalk.ports.store.user_transactions import UserConnection
from ropewalk.testing.clock import FakeRuntime
from ropewalk.testing.stalls import handlers_stalled, never_ending, nobody_runs_it
from ropewalk.worker.context import WorkerContext
from ropewalk.worker.parts import WorkerConfig
from ropewalk.worker.worker import Worker

S = TypeVar("S")
G = TypeVar("G")
T = TypeVar("T")

TIMEOUT_SECONDS: Final = 10.0
ATTEMPTS_MAX: Final = 10_000
LOOKS_PER_TIMEOUT: Final = 200
PASSES_WITH_TIME: Final = ("delayed", "retrying", "limit")
NAMED_MAX: Final = 100
"""How many jobs an assertion lists."""


class Rehearsing(Client):
    """What a test asks of the jobs that were enqueued: those of one tenant, or of all."""

    @property
    def _rehearsal(self) -> Rehearsal:
        raise NotImplementedError

    def records(self) -> list[JobRecord]:
        """Every job as the store keeps it, finished ones too, in the order they were queued."""
        raise NotImplementedError

    async def run(self, job: Job[S, G]) -> S:
        """Enqueue one job, drain, and return its result. Raises JobFailed like `result()` does.

        Where it has not ended then, or has continued with a job that has not, because that waits for a retry or for its
        time, this is an AssertionError that says so.
        """
        checked_job(job, "run")
        handle = await self.enqueue(job)
        await self._rehearsal.drain()
        client = self._rehearsal.tenant((await handle.status()).tenant)
        last = (await client.chain(handle.id))[-1]
        if not last.terminal:
            why = await client.why(last.id)
            advice = "; advance the clock and drain again" if why.cause in PASSES_WITH_TIME else ""
            raise AssertionError(f"{last.type} has not ended: {why.explanation}{advice}")
        return await handle.result()

    async def enqueued(self, job_type: JobType[..., Any, Any] | None = None) -> list[JobInfo]:
        """Every job there is (finished ones too), in the order they were queued."""
        checks.instance_or_none(job_type, "job_type", JobType, "a function decorated with @job")
        now = self._core.runtime.now()
        wanted = (job for job in self.records() if job_type is None or job.type == job_type.name)
        return [self._describe.job(job, now) for job in wanted]

    async def assert_enqueued(self, job_type: JobType[..., Any, Any], /, **arguments: object) -> JobInfo:
        """The newest job of this type with (at least) these arguments; AssertionError saying what there is instead."""
        checks.instance(job_type, "job_type", JobType, "a function decorated with @job")
        jobs = await self.enqueued(job_type)
        for info in reversed(jobs):
            if arguments.items() <= info.arguments.items():
                return info
        there = "\n".join(f"  {info.type}({_shown(info)})" for info in jobs[-NAMED_MAX:]) or "  (none)"
        if len(jobs) > NAMED_MAX:
            there = f"  {len(jobs):,}, of which these are the newest:\n{there}"
        wanted = ", ".join(f"{name}={value!r}" for name, value in arguments.items())
        raise AssertionError(f"no {job_type.name}({wanted}) was enqueued; of this type there are:\n{there}")

    async def assert_not_enqueued(self, job_type: JobType[..., Any, Any], /, **arguments: object) -> None:
        """AssertionError where a job of this type with (at least) these arguments was enqueued."""
        try:
            info = await self.assert_enqueued(job_type, **arguments)
        except AssertionError:
            return
        raise AssertionError(f"{job_type.name}({_shown(info)}) was enqueued (job {info.id}, tenant {info.tenant!r})")

    async def enqueue_many(
        self,
        jobs: Iterable[Job[S, G]],
        /,
        *,
        atomic: bool = True,
        connection: UserConnection | None = None,
        **options: Unpack[EnqueueOptions],
    ) -> list[Handle[S, G]]:
        """Queue many, in order, as `App.enqueue_many` does; inline they have run when it returns."""
        try:
            handles = await super().enqueue_many(jobs, atomic=atomic, connection=connection, **options)
        except PartlyEnqueued:
            await self._rehearsal.run_inline()
            raise
        await self._rehearsal.run_inline()
        return handles

    async def _enqueue(self, job: Job[S, G], options: EnqueueOptions) -> Handle[S, G]:
        handle = await super()._enqueue(job, options)
        await self._rehearsal.run_inline()
        return handle


class RehearsedTenant(Rehearsing):
    """One tenant of a rehearsal."""

    def __init__(self, rehearsal: Rehearsal, core: AppState, name: str) -> None:
        super().__init__(core, name)
        self._whole = rehearsal

    @property
    def _rehearsal(self) -> Rehearsal:
        return self._whole

    def records(self) -> list[JobRecord]:
        return [job for job in self._whole.records() if job.tenant == self._tenant]


class Rehearsal(Rehearsing, App):
    """The app's job types, options, limits, middlewares, hooks and lifespan; nothing runs until `drain()` or `run()`.

    inline: every enqueue runs what is ready before it returns.
    timeout: seconds of real time that a drain may go on without any attempt ending, and that somebody may wait for a
        result while nothing runs. After that, Stalled says what it waits for.

    The assertions see the jobs of all tenants; those of `rehearsal.tenant("acme")` see that tenant's.
    """

    def __init__(
        self,
        app: App,
        *,
        clock: FakeRuntime | None = None,
        inline: bool = False,
        timeout: float = TIMEOUT_SECONDS,
    ) -> None:
        checks.instance(app, "app", App, "the app to rehearse")
        checks.flag(inline, "inline")
        self.clock = checks.instance_or_none(clock, "clock", FakeRuntime, "FakeRuntime()") or FakeRuntime()
        settings = app.settings
        super().__init__(
            "memory://",
            jobs=[app.registry],
            defaults=settings.defaults,
            bounds=settings.bounds,
            retention=settings.retention,
            lifespan=settings.lifespan,
            middlewares=settings.middlewares,
            on_event=settings.on_event,
            on_error=settings.on_error,
            on_orphan_group=settings.on_orphan_group,
            logs=settings.logs,
            metrics=settings.metrics,
            strict=settings.strict,
            tracing=settings.tracing,
            schedules=app.declared,
            functions=settings.functions,
            runtime=self.clock,
        )
        self._core.wait_bound = self._bounded
        self._inline = inline
        self._timeout = checks.positive_span(timeout, "timeout") / SECOND
        self._drains = 0
        self._moves = 0
        """Number of drains and advances that ended."""

    @property
    def _rehearsal(self) -> Rehearsal:
        return self

    def tenant(self, name: str) -> RehearsedTenant:
        """The client of one tenant, whose assertions see only that tenant's jobs."""
        return RehearsedTenant(self, self._core, name)

    def records(self) -> list[JobRecord]:
        store = self._core.store
        assert isinstance(store, MemoryStore)
        return store.records()

    async def advance(
        self, *, seconds: float = 0.0, minutes: float = 0.0, hours: float = 0.0, days: float = 0.0
    ) -> None:
        """Let time pass. Jobs that come due run at the next drain."""
        await self.clock.advance(seconds=seconds, minutes=minutes, hours=hours, days=days)
        self._moves += 1

    async def drain(self, *, concurrency: Concurrency = 1, attempts_max: int = ATTEMPTS_MAX) -> int:
        """Run everything that is ready, and what that makes ready, until nothing is. How many attempts that took.

        A batch runs as soon as nothing is ready that could join it. Raises Stalled where handlers do not return, and
        where more than `attempts_max` attempts do not come to an end.
        """
        checks.positive(attempts_max, "attempts_max")
        self._drains += 1
        try:
            async with AsyncExitStack() as stack:
                watch = Watch(self._timeout, attempts_max)
                try:
                    async with watch.bound:
                        worker = await stack.enter_async_context(self.worker(concurrency=concurrency, grace=0))
                        watch.begin(worker)
                        await worker.idle()
                except TimeoutError:
                    if not watch.bound.expired():
                        raise
                    if watch.endless:
                        raise (await never_ending(self, watch.attempts, attempts_max)) from None
                    raise (await handlers_stalled(self, self._timeout)) from None
                finally:
                    watch.end()
                return worker.settled
        finally:
            self._drains -= 1
            self._moves += 1

    async def run_inline(self) -> None:
        """Run what is ready, in a rehearsal that runs everything at once; a drain under way does so anyway."""
        if self._inline and not self._drains:
            await self.drain()

    async def _bounded(self, answer: asyncio.Future[T], /) -> T:
        """Wait for the end of a job as long as somebody drains, or lets time pass now and then."""
        while not answer.done():
            before = self._moves
            await asyncio.wait([answer], timeout=self._timeout)
            if not answer.done() and not self._drains and self._moves == before:
                raise await nobody_runs_it(self, self._timeout)
        return answer.result()

    def _make_worker_context(self, registry: Registry, config: WorkerConfig) -> WorkerContext:
        worker_context = super()._make_worker_context(registry, config)
        worker_context.linger_seconds = 0.0  # a clock that stands still would never end the wait
        return worker_context


class Watch:
    """Ends a drain in which no attempt ends any more, or in which too many do."""

    def __init__(self, timeout_seconds: float, attempts_max: int) -> None:
        self.bound = asyncio.timeout(timeout_seconds)
        self.attempts = 0
        self.endless = False
        self._timeout_seconds = timeout_seconds
        self._attempts_max = attempts_max
        self._timer: asyncio.TimerHandle | None = None

    def begin(self, worker: Worker) -> None:
        loop = asyncio.get_running_loop()

        def look() -> None:
            if self.bound.expired():
                return
            self._timer = loop.call_later(self._timeout_seconds / LOOKS_PER_TIMEOUT, look)
            if worker.settled > self._attempts_max:
                self.endless = True
                self.bound.reschedule(loop.time())
            elif worker.settled != self.attempts:
                self.bound.reschedule(loop.time() + self._timeout_seconds)
            self.attempts = worker.settled

        look()

    def end(self) -> None:
        if self._timer is not None:
            self._timer.cancel()


def _shown(info: JobInfo) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in (info.arguments or {}).items())
