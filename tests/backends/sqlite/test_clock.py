"""A machine whose clock was a day ahead, and its owner, who sets it right."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path

from ropewalk import App, Backoff, Context, Event, job
from ropewalk.domain.time import DAY, Instant
from ropewalk.runtime.system import SystemRuntime

TIMEOUT_SECONDS = 60


class WrongClock(SystemRuntime):
    """The system's clock, but for a day until it is set right."""

    ahead_us = DAY

    def now(self) -> Instant:
        return super().now() + self.ahead_us


@job(max_attempts=2, backoff=Backoff.constant(2))
async def stumble(ctx: Context) -> str:
    if ctx.attempt == 1:
        raise ValueError("once")
    return "went on"


@job
async def nap(ctx: Context) -> str:
    await ctx.sleep(2)
    return "awake"


@job
async def greet() -> str:
    return "hello"


async def test_a_clock_set_back_by_a_day_costs_seconds(tmp_path: Path) -> None:
    """live-1: a retry, a sleep and a delay that began before that go on, in a worker that runs all the while and in one
    that starts later; what was to run at an instant still does."""
    runtime, waiting = WrongClock(), asyncio.Semaphore(0)

    def hear(event: Event) -> None:
        if event.kind in ("failed", "suspended"):
            waiting.release()

    url = f"sqlite:///{tmp_path / 'jobs.db'}"
    app = App(url, jobs=[stumble, nap, greet], runtime=runtime, on_event=hear)
    async with app.running():
        stumbling, napping = await app.enqueue(stumble()), await app.enqueue(nap())
        delayed = await app.enqueue(greet(), delay=2)
        dated = await app.enqueue(greet(), run_at=datetime.now(UTC) + timedelta(days=1, minutes=5))
        async with asyncio.timeout(TIMEOUT_SECONDS):
            for _ in range(2):
                await waiting.acquire()
        runtime.ahead_us = 0
        ended = [each.result(timeout=TIMEOUT_SECONDS) for each in (stumbling, napping, delayed)]
        assert await asyncio.gather(*ended) == ["went on", "awake", "hello"]
        assert (await app.states([dated.id]))[dated.id] == "delayed"
    runtime.ahead_us = DAY
    async with app:
        later = await app.enqueue(greet(), delay=2)
    runtime.ahead_us = 0
    async with app.running():
        assert await later.result(timeout=TIMEOUT_SECONDS) == "hello"
