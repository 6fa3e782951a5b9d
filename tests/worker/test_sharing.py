"""A worker keeps no more than it can run soon (rule 9): measured too fast, it gives back what waits."""

from __future__ import annotations

import asyncio

import pytest

from ropewalk import State, job
from tests.apps import MakeApp

started: list[int] = []
release = asyncio.Event()


@pytest.fixture(autouse=True)
def _forget() -> None:
    global release  # noqa: PLW0603 # an event belongs to the loop of its test
    started.clear()
    release = asyncio.Event()


@job
async def quick() -> None: ...


@job
async def slow(number: int) -> int:
    started.append(number)
    await release.wait()
    return number


async def test_one_slot_claims_one_long_job(make_app: MakeApp) -> None:
    app = make_app(slow)
    async with app, app.worker(concurrency=1, poll=0.05):
        handles = await app.enqueue_many(slow(number=n) for n in range(3))
        async with asyncio.timeout(5):
            while not started:
                await asyncio.sleep(0.01)
        await asyncio.sleep(0.3)
        states = [(await handle.status()).state for handle in handles]
        assert states == [State.RUNNING, State.SCHEDULED, State.SCHEDULED]
        release.set()
        assert [await handle.result(timeout=5) for handle in handles] == [0, 1, 2]


async def test_a_worker_spoiled_by_quick_jobs_gives_long_ones_back(make_app: MakeApp) -> None:
    app = make_app(quick, slow)
    async with app, app.worker(concurrency=2, poll=0.05) as spoiled:
        await app.enqueue_many(quick() for _ in range(200))
        await asyncio.wait_for(spoiled.idle(), 10)
        handles = await app.enqueue_many(slow(number=n) for n in range(10))
        async with asyncio.timeout(5):
            while len(started) < 2:
                await asyncio.sleep(0.01)
        async with asyncio.timeout(5):
            while list((await app.states([each.id for each in handles])).values()).count(State.SCHEDULED) != 8:
                await asyncio.sleep(0.05)
        assert {(await handle.status()).attempt for handle in handles[2:]} == {0}
        async with app.worker(concurrency=8, poll=0.05):
            async with asyncio.timeout(5):
                while len(started) < 10:
                    await asyncio.sleep(0.01)
            release.set()
            assert [await handle.result(timeout=5) for handle in handles] == list(range(10))
