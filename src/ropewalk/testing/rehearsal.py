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
"""Real seconds after which a drain or a wait without any progress ends with Stalled."""
ATTEMPTS_MAX: Final = 10_000
"""Attempts after which a drain ends with Stalled."""
CHECKS_PER_TIMEOUT: Final = 200
"""How often within the timeout a drain checks whether an attempt has ended."""
PASSES_WITH_TIME: Final = ("delayed", "retrying", "limit")
"""The causes of `why` that end when the clock advances."""
NAMED_MAX: Final = 100
"""How many jobs an assertion lists."""


class Rehearsing(Client):
    """The assertions and shortcuts of a rehearsal, about the jobs of one tenant or of all tenants."""

    @property
    def _rehearsal(self) -> Rehearsal:
        raise NotImplementedError

    def records(self) -> list[JobRecord]:
        """Return the record of every job, finished or not, in the order in which the jobs were enqueued."""
        raise NotImplementedError

    async def run(self, job: Job[S, G]) -> S:
        """Enqueue one job, drain, and return its result. If the job failed, raise JobFailed as `result()` does.

        If the job, or a job that it continued with, has not ended after the drain, because it waits for a retry or for
        its time, raise an AssertionError that names the cause.
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
        """Return every job, or every job of one type, finished or not, in the order in which they were enqueued."""
        checks.instance_or_none(job_type, "job_type", JobType, "a function decorated with @job")
        now = self._app_state.runtime.now()
        wanted = (job for job in self.records() if job_type is None or job.type == job_type.name)
        return [self._describe.job(job, now) for job in wanted]

    async def assert_enqueued(self, job_type: JobType[..., Any, Any], /, **arguments: object) -> JobInfo:
        """Return the newest job of this type with these arguments; it may have others, too.

        If there is none, raise an AssertionError that lists the jobs of this type.
        """
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
        """Raise an AssertionError if a job of this type with these arguments (and perhaps others) was enqueued."""
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
        """Enqueue many jobs as `App.enqueue_many` does; with `inline=True` they have run when it returns."""
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
    """The client of one tenant of a rehearsal, whose assertions see only the jobs of that tenant."""

    def __init__(self, rehearsal: Rehearsal, app_state: AppState, name: str) -> None:
        super().__init__(app_state, name)
        self._whole = rehearsal

    @property
    def _rehearsal(self) -> Rehearsal:
        return self._whole

    def records(self) -> list[JobRecord]:
        return [job for job in self._whole.records() if job.tenant == self._tenant]


class Rehearsal(Rehearsing, App):
    """A copy of an app with a memory store and a fake clock, in which no job runs until `drain()` or `run()`.

    It has the job types, options, limits, middlewares, hooks and lifespan of the app.

    inline: whether every enqueue runs all ready jobs before it returns.
    timeout: how many real seconds a drain may take without any attempt ending, and how many somebody may wait for a
        result while nothing runs. After that, Stalled is raised and says what each unfinished job waits for.

    The assertions see the jobs of all tenants; those of `rehearsal.tenant("acme")` see only that tenant's jobs.
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
        self._app_state.wait_bound = self._bounded
        self._inline = inline
        self._timeout = checks.positive_span(timeout, "timeout") / SECOND
        self._drains = 0
        self._moves = 0
        """Number of drains and advances that ended."""

    @property
    def _rehearsal(self) -> Rehearsal:
        return self

    def tenant(self, name: str) -> RehearsedTenant:
        """Return the client of one tenant, whose assertions see only that tenant's jobs."""
        return RehearsedTenant(self, self._app_state, name)

    def records(self) -> list[JobRecord]:
        store = self._app_state.store
        assert isinstance(store, MemoryStore)
        return store.records()

    async def advance(
        self, *, seconds: float = 0.0, minutes: float = 0.0, hours: float = 0.0, days: float = 0.0
    ) -> None:
        """Let time pass; jobs that become due run in the next drain."""
        await self.clock.advance(seconds=seconds, minutes=minutes, hours=hours, days=days)
        self._moves += 1

    async def drain(self, *, concurrency: Concurrency = 1, attempts_max: int = ATTEMPTS_MAX) -> int:
        """Run jobs until none is ready, and return how many attempts were made.

        A batch runs as soon as no ready job could join it. Raise Stalled if handlers do not return, or if jobs are
        still ready after `attempts_max` attempts.
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
        """Drain if this rehearsal runs jobs inline, unless a drain is under way, which runs them anyway."""
        if self._inline and not self._drains:
            await self.drain()

    async def _bounded(self, answer: asyncio.Future[T], /) -> T:
        """Wait for the end of a job, and raise Stalled if nobody drains or advances the clock for `timeout` seconds."""
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
    """A watch ends a drain in which no attempt has ended for a while, or in which there are too many attempts."""

    def __init__(self, timeout_seconds: float, attempts_max: int) -> None:
        self.bound = asyncio.timeout(timeout_seconds)
        self.attempts = 0
        self.endless = False
        self._timeout_seconds = timeout_seconds
        self._attempts_max = attempts_max
        self._timer: asyncio.TimerHandle | None = None

    def begin(self, worker: Worker) -> None:
        """Check regularly how many attempts the worker has settled, and let `bound` expire if there is no progress."""
        loop = asyncio.get_running_loop()

        def check() -> None:
            if self.bound.expired():
                return
            self._timer = loop.call_later(self._timeout_seconds / CHECKS_PER_TIMEOUT, check)
            if worker.settled > self._attempts_max:
                self.endless = True
                self.bound.reschedule(loop.time())
            elif worker.settled != self.attempts:
                self.bound.reschedule(loop.time() + self._timeout_seconds)
            self.attempts = worker.settled

        check()

    def end(self) -> None:
        """Stop checking."""
        if self._timer is not None:
            self._timer.cancel()


def _shown(info: JobInfo) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in (info.arguments or {}).items())
