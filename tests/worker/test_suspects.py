"""Jobs of a dead worker: they run again at once, together as far as that is safe."""

from __future__ import annotations

import asyncio

import pytest

from ropewalk import App, job
from ropewalk.testing.contract.builders import claim_request
from tests.apps import MakeApp

JOBS = 8

together = asyncio.Event()
running = most = 0


@pytest.fixture(autouse=True)
def _forget() -> None:
    global together, running, most  # an event belongs to the loop of its test
    together, running, most = asyncio.Event(), 0, 0


@job
async def innocent() -> None:
    global running  # noqa: PLW0603
    running += 1
    if running == JOBS:
        together.set()
    await asyncio.wait_for(together.wait(), 5)


@job(max_crashes=2)
async def one_more_crash_is_the_end() -> None:
    global running, most  # noqa: PLW0603
    running += 1
    most = max(most, running)
    await asyncio.sleep(0.02)
    running -= 1


async def test_all_jobs_of_a_dead_worker_run_at_the_same_time(make_app: MakeApp) -> None:
    """live-2: each of them waits here until all are running."""
    app = make_app(innocent)
    async with app:
        handles = await app.enqueue_many(innocent() for _ in range(JOBS))
        await _die_with(app, "innocent")
        async with app.worker(concurrency=JOBS, poll=0.05):
            for handle in handles:
                await handle.result(timeout=10)
        assert {(await handle.status()).crashes for handle in handles} == {1}


async def test_those_that_another_crash_would_end_run_one_by_one(make_app: MakeApp) -> None:
    app = make_app(one_more_crash_is_the_end)
    async with app:
        handles = await app.enqueue_many(one_more_crash_is_the_end() for _ in range(JOBS))
        await _die_with(app, "one_more_crash_is_the_end")
        async with app.worker(concurrency=JOBS, poll=0.05):
            for handle in handles:
                await handle.result(timeout=10)
    assert most == 1


async def _die_with(app: App, job_type: str) -> None:
    """A worker starts all of them, and its leases are over at once."""
    request = claim_request(owner="dead", limit=JOBS, lease_us={job_type: 1})
    assert len((await app._app_state.store.claim(request)).jobs) == JOBS
