"""What the tests of schedules share: jobs, functions, and an app whose clock moves only when told."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from ropewalk import App, Filter, Job, JobInfo, Order, job
from ropewalk.testing import FakeRuntime
from tests.apps import MakeApp


@job
async def report(kind: str = "sales") -> str:
    return f"{kind} reported"


@job
async def letter(at: str) -> str:
    return at


def tides(after: datetime) -> datetime | None:
    """Every six hours of 1 January 2030; then never again."""
    following = after + timedelta(hours=6)
    return following if following.day == 1 else None


def write(fire: datetime) -> Job[str, str] | None:
    """A letter for every fire, but none at noon."""
    return None if fire.hour == 12 else letter(f"{fire:%d %H:%M}")


class Clock:
    """An app of this store that nobody works for, but when told to."""

    def __init__(self, make_app: MakeApp, **options: Any) -> None:
        self.runtime = FakeRuntime()
        self.told: list[tuple[str, str]] = []
        self.app: App = make_app(report, letter, runtime=self.runtime, on_error=self._on_error, **options)

    async def pass_by(self, **span: float) -> None:
        await self.runtime.advance(**span)

    async def work(self) -> None:
        """A worker comes, does all there is to do, and goes."""
        async with self.app, self.app.worker(grace=0) as worker:
            await worker.idle()

    async def made(self) -> list[str]:
        """What was enqueued so far, and when."""
        return [f"{info.created_at:%d %H:%M:%S}" for info in await self.jobs()]

    async def jobs(self) -> list[JobInfo]:
        async with self.app:
            return (await self.app.search(Filter(), order=Order.CREATED_ASC, limit=1000)).jobs

    def _on_error(self, error: BaseException, phase: str) -> None:
        self.told.append((phase, str(error)))
