"""A wall clock that jumps (a machine that slept): live leases are kept, not stolen (safe-4, clock errors)."""

from __future__ import annotations

import asyncio

import pytest

from ropewalk import App, Context, State, job
from ropewalk.domain.time import HOUR
from ropewalk.runtime.system import HOLD_SECONDS, ClockGuard, SystemRuntime
from ropewalk.testing.clock import FakeRuntime
from ropewalk.worker.worker import Worker
from tests.apps import on_embedded_stores

starts: list[int] = []
release = asyncio.Event()


class Jumping(SystemRuntime):
    """The real world, with a wall clock that can be stepped."""

    offset_us = 0

    def now(self) -> int:
        return super().now() + self.offset_us


class JumpingFake(FakeRuntime):
    offset_us = 0

    def now(self) -> int:
        return super().now() + self.offset_us


@job
async def waits(ctx: Context) -> int:
    starts.append(ctx.attempt)
    await release.wait()
    return ctx.attempt


@pytest.fixture(autouse=True)
def _forget() -> None:
    global release  # noqa: PLW0603 # an event belongs to the loop of its test
    starts.clear()
    release = asyncio.Event()


async def _looked_around(*workers: Worker, times: int) -> None:
    """Until together they claimed that often: each claim could have taken the expired lease back."""
    before = sum(worker._started.claimer.claims for worker in workers)
    async with asyncio.timeout(10):
        while sum(worker._started.claimer.claims for worker in workers) < before + times:
            await asyncio.sleep(0.01)


async def test_a_jump_is_noticed_once_and_held_for_a_while() -> None:
    runtime = JumpingFake()
    guard = ClockGuard(runtime)
    await runtime.advance(hours=5)
    assert guard.calm
    runtime.offset_us = HOUR
    assert guard.look()
    assert not guard.look()
    assert not guard.calm
    await runtime.advance(seconds=HOLD_SECONDS + 0.1)
    assert guard.calm


async def test_a_step_back_is_no_reason_to_doubt() -> None:
    runtime = JumpingFake()
    guard = ClockGuard(runtime)
    runtime.offset_us = -HOUR
    assert not guard.look()
    assert guard.calm


@on_embedded_stores
async def test_workers_do_not_steal_from_each_other_after_a_jump(url: str) -> None:
    runtime = Jumping()
    app = App(url, jobs=[waits], runtime=runtime)
    first, second = (app.worker(concurrency=1, poll=0.05, grace=0) for _ in range(2))
    async with app, first as one, second as two:
        handle = await app.enqueue(waits())
        async with asyncio.timeout(5):
            while not starts:
                await asyncio.sleep(0.01)
        runtime.offset_us = HOUR  # every lease looks expired by the store's clock now
        await _looked_around(one, two, times=10)
        info = await handle.status()
        assert (info.state, info.crashes, starts) == (State.RUNNING, 0, [1])
        release.set()
        assert await handle.result(timeout=5) == 1
        assert one.refused == two.refused == 0
