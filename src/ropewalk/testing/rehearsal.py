"""An in-memory double of an app, on a clock that moves only when told."""

from __future__ import annotations

from typing import Any, TypeVar

from ropewalk.app import App
from ropewalk.client.filter import Filter
from ropewalk.client.handle import Handle
from ropewalk.client.views.jobs import JobInfo
from ropewalk.definitions.job import Job
from ropewalk.definitions.job_types.job_type import JobType
from ropewalk.definitions.options import EnqueueOptions
from ropewalk.definitions.policies import Concurrency
from ropewalk.domain.search import Order
from ropewalk.testing.clock import FakeRuntime

S = TypeVar("S")
G = TypeVar("G")


class Rehearsal(App):
    """The app's job types, options, limits, middlewares, hooks and lifespan; nothing runs until `drain()` or `run()`.

    With inline=True every enqueue runs what is ready before it returns.
    """

    def __init__(self, app: App, *, clock: FakeRuntime | None = None, inline: bool = False) -> None:
        self.clock = clock or FakeRuntime()
        settings = app.settings
        super().__init__(
            "memory://",
            jobs=[app.registry],
            defaults=settings.defaults,
            limits=settings.limits,
            retention=settings.retention,
            lifespan=settings.lifespan,
            middlewares=settings.middlewares,
            on_event=settings.on_event,
            on_error=settings.on_error,
            on_orphan_group=settings.on_orphan_group,
            logs=settings.logs,
            metrics=settings.metrics,
            tracing=settings.tracing,
            schedules=app.declared,
            functions=settings.functions,
            runtime=self.clock,
        )
        self._inline = inline
        self._draining = False

    async def advance(
        self, *, seconds: float = 0.0, minutes: float = 0.0, hours: float = 0.0, days: float = 0.0
    ) -> None:
        """Let time pass. Jobs that come due run at the next drain."""
        await self.clock.advance(seconds=seconds, minutes=minutes, hours=hours, days=days)

    async def drain(self, *, concurrency: Concurrency = 1) -> int:
        """Run everything that is ready, and what that makes ready, until nothing is. How many attempts that took."""
        self._draining = True
        try:
            async with self.worker(concurrency=concurrency, grace=0) as worker:
                await worker.idle()
                return worker.settled
        finally:
            self._draining = False

    async def run(self, job: Job[S, G]) -> S:
        """Enqueue one job, drain, and return its result. Raises JobFailed like `result()` does.

        A job that has not ended then (it waits for a retry, or for its time) is an AssertionError that says so.
        """
        handle = await self.enqueue(job)
        await self.drain()
        info = await handle.status()
        if not info.terminal:
            why = (await self.why(info.id)).explanation
            raise AssertionError(f"{info.type} has not ended: {why}; advance the clock and drain again")
        return await handle.result()

    async def enqueued(self, job_type: JobType[..., Any, Any] | None = None) -> list[JobInfo]:
        """Every job there is (finished ones too), in the order they were queued."""
        wanted = Filter() if job_type is None else Filter(types=(job_type.name,))
        return (await self.search(wanted, order=Order.CREATED_ASC, limit=1000)).jobs

    async def assert_enqueued(self, job_type: JobType[..., Any, Any], /, **arguments: object) -> JobInfo:
        """The newest job of this type with (at least) these arguments; AssertionError saying what there is instead."""
        jobs = await self.enqueued(job_type)
        for info in reversed(jobs):
            if info.arguments is not None and arguments.items() <= info.arguments.items():
                return info
        there = "\n".join(f"  {info.type}({_shown(info)})" for info in jobs) or "  (none)"
        wanted = ", ".join(f"{name}={value!r}" for name, value in arguments.items())
        raise AssertionError(f"no {job_type.name}({wanted}) was enqueued; of this type there are:\n{there}")

    async def assert_not_enqueued(self, job_type: JobType[..., Any, Any], /, **arguments: object) -> None:
        try:
            info = await self.assert_enqueued(job_type, **arguments)
        except AssertionError:
            return
        raise AssertionError(f"{job_type.name}({_shown(info)}) was enqueued (job {info.id})")

    async def _enqueue(self, job: Job[S, G], options: EnqueueOptions) -> Handle[S, G]:
        handle = await super()._enqueue(job, options)
        if self._inline and not self._draining:
            await self.drain()
        return handle


def _shown(info: JobInfo) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in (info.arguments or {}).items())
