"""Looks at the demo's jobs again and again, and tells what is new: read from the store like anybody could."""

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

LOOK_SECONDS: Final = 0.08


class Watch:
    def __init__(self, app: App, screen: Screen, runtime: Runtime) -> None:
        self._app = app
        self._screen = screen
        self._runtime = runtime
        self._told: dict[str, tuple[datetime, int]] = {}
        """job → when it changed last, and the rev of its history told so far"""
        self.jobs: dict[str, JobInfo] = {}

    async def until(self, what: str, happened: Callable[[], bool], *, within_seconds: float = 15.0) -> None:
        """Look until it has; the demo ends here if it does not."""
        limit = self._runtime.monotonic() + within_seconds
        while True:
            await self.look()
            if happened():
                return
            if self._runtime.monotonic() > limit:
                raise DemoFailed(f"waited {within_seconds:g} s in vain for this: {what}")
            await self._runtime.sleep(LOOK_SECONDS)

    async def look(self) -> None:
        page = await self._app.search(Filter(), order=Order.CREATED_ASC)
        self.jobs = {job.id: job for job in page.jobs}
        for job in page.jobs:
            await self._tell(job)
        self._screen.progress(page.jobs)

    async def _tell(self, job: JobInfo) -> None:
        changed, upto = self._told.get(job.id, (None, 0))
        if changed == job.updated_at:
            return
        history = await self._app.history(job.id)
        for entry in history:
            if entry.rev > upto and (told := sentence(job, entry)) is not None:
                self._screen.say(told)
        self._told[job.id] = (job.updated_at, history[-1].rev)
