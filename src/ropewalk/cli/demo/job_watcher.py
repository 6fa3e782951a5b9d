"""Reads the jobs of the demo from the store again and again, and reports what is new."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Final

from ropewalk.app import App
from ropewalk.cli.demo.findings import DemoFailed, sentence
from ropewalk.cli.demo.screen import Screen
from ropewalk.client.filter import Filter
from ropewalk.client.views.jobs import JobInfo
from ropewalk.domain.search import Order
from ropewalk.ports.runtime import Runtime

READ_SECONDS: Final = 0.08
"""The time between two readings."""


class JobWatcher:
    """A watcher keeps the newest state of every job, and reports new entries of their histories on the screen."""

    def __init__(self, app: App, screen: Screen, runtime: Runtime) -> None:
        self._app = app
        self._screen = screen
        self._runtime = runtime
        self._reported: dict[str, tuple[datetime, int]] = {}
        """When each job last changed, and the rev up to which its history was reported."""
        self.jobs: dict[str, JobInfo] = {}

    async def until(self, what: str, happened: Callable[[], bool], *, within_seconds: float = 15.0) -> None:
        """Read jobs until `happened` returns true, and raise DemoFailed if that takes too long."""
        limit = self._runtime.monotonic() + within_seconds
        while True:
            await self.look()
            if happened():
                return
            if self._runtime.monotonic() > limit:
                raise DemoFailed(f"waited {within_seconds:g} s in vain for this: {what}")
            await self._runtime.sleep(READ_SECONDS)

    async def look(self) -> None:
        """Read all jobs once, and report what is new."""
        page = await self._app.search(Filter(), order=Order.CREATED_ASC)
        self.jobs = {job.id: job for job in page.jobs}
        for job in page.jobs:
            await self._report(job)
        self._screen.progress(page.jobs)

    async def _report(self, job: JobInfo) -> None:
        changed, upto = self._reported.get(job.id, (None, 0))
        if changed == job.updated_at:
            return
        history = await self._app.history(job.id)
        for entry in history:
            if entry.rev > upto and (told := sentence(job, entry)) is not None:
                self._screen.say(told)
        self._reported[job.id] = (job.updated_at, history[-1].rev)
