"""Stopping a worker: finish, release, never burn an attempt, never hang (R11, live-6)."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest

from ropewalk import Context, State, job
from tests.engine.conftest import MakeApp

ran: list[object] = []
started = asyncio.Event()
release = threading.Event()


@pytest.fixture(autouse=True)
def _forget() -> None:
    global started  # noqa: PLW0603 # an event belongs to the loop of its test
    ran.clear()
    started = asyncio.Event()
    release.clear()


@job
async def naps(ctx: Context, seconds: float) -> int:
    started.set()
    await asyncio.sleep(seconds)
    return ctx.attempt


@job
def stuck() -> None:
    ran.append("in thread")
    release.wait(30)


async def test_a_stopping_worker_lets_handlers_finish(make_app: MakeApp) -> None:
    app = make_app(naps)
    async with app:
        async with app.worker(grace=5):
            handle = await app.enqueue(naps(seconds=0.3))
            await asyncio.wait_for(started.wait(), 5)
        assert (await handle.status()).state is State.COMPLETED


async def test_after_the_grace_period_jobs_are_given_back_unburned(make_app: MakeApp) -> None:
    app = make_app(naps)
    async with app:
        async with app.worker(grace=0.1, concurrency=2):
            handles = await app.enqueue_many(naps(seconds=60) for _ in range(10))
            await asyncio.wait_for(started.wait(), 5)
        infos = [await handle.status() for handle in handles]
        assert {(info.state, info.attempt, info.crashes) for info in infos} == {(State.SCHEDULED, 0, 0)}
        assert await app.workers() == []


async def test_a_thread_that_does_not_return_does_not_hang_the_stop(make_app: MakeApp) -> None:
    app = make_app(stuck)
    async with app:
        worker = app.worker(grace=0.1)
        await worker.__aenter__()
        handle = await app.enqueue(stuck())
        while not ran:
            await asyncio.sleep(0.01)
        began = time.monotonic()
        assert await worker.stop() is False
        assert time.monotonic() - began < 6
        assert (await handle.status()).state is State.SCHEDULED
        release.set()
