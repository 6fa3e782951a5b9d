"""Stopping a worker: finish, release, never burn an attempt, never hang (live-6)."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest

from ropewalk import Context, NotFound, State, job
from tests.apps import MakeApp

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


async def test_a_worker_told_by_the_store_serves_no_more_and_loses_nothing(make_app: MakeApp) -> None:
    """R19: what runs goes on, what waits goes back; the worker itself is its owner's to end."""
    app = make_app(naps)
    async with app, app.worker(concurrency=1) as told:
        first = await app.enqueue(naps(seconds=0.3))
        await asyncio.wait_for(started.wait(), 5)
        await app.drain_worker(told.id)
        await asyncio.wait_for(told.idle(), 10)
        assert await first.result(5) == 1
        assert not told.ready
        later = await app.enqueue(naps(seconds=0))
        await asyncio.wait_for(told.idle(), 5)
        assert (await later.status()).state is State.SCHEDULED
        assert [(card.id, card.draining) for card in await app.workers()] == [(told.id, True)]
        assert (await app.why(later.id)).cause == "no_worker"
        async with app.worker():
            assert await later.result(5) == 1


async def test_a_worker_that_has_stopped_is_not_ready(make_app: MakeApp) -> None:
    app = make_app(naps)
    async with app, app.worker() as worker:
        await worker.stop()
        assert not worker.ready
    assert not worker.ready


async def test_an_idle_worker_that_runs_until_told_ends(make_app: MakeApp) -> None:
    """R19, R11: as SIGTERM does; long before its next sign of life is due, because a hint tells it to ask."""
    app = make_app(naps)
    serving: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    heard: list[str] = []
    async with app:
        run = asyncio.create_task(
            app.worker().run(
                on_started=lambda worker: serving.set_result(worker.id), on_drain=lambda: heard.append("drain")
            )
        )
        worker_id = await asyncio.wait_for(serving, 5)
        await app.drain_worker(worker_id)
        assert await asyncio.wait_for(run, 5)
        assert heard == ["drain"]
        assert await app.workers() == []
        with pytest.raises(NotFound, match=f"no worker '{worker_id}'"):
            await app.drain_worker(worker_id)


async def test_a_worker_runs_on_the_loop_of_another_thread_until_it_is_told_to_drain(make_app: MakeApp) -> None:
    """Signals reach only the main thread, so it installs no handlers for them elsewhere."""
    app = make_app(naps)
    async with app:
        worker = app.worker()
        serving = asyncio.create_task(asyncio.to_thread(asyncio.run, worker.run()))
        handle = await app.enqueue(naps(seconds=0))
        assert await handle.result(10) == 1
        await app.drain_worker(worker.id)
        assert await asyncio.wait_for(serving, 10) is True


async def test_what_a_told_worker_had_not_started_goes_back_at_once(make_app: MakeApp) -> None:
    """R19, R11: others need not wait until a long handler ends."""
    app = make_app(naps)
    async with app, app.worker(concurrency=1, grace=0) as told, asyncio.timeout(30):
        for _ in range(20):  # quick ones: from now on it takes some ahead
            await app.enqueue(naps(seconds=0)).result()
        started.clear()
        long, *ahead = await app.enqueue_many([naps(seconds=60), *(naps(seconds=0) for _ in range(20))])
        await started.wait()
        while (await app.workers())[0].held < 2:
            await asyncio.sleep(0.01)
        await app.drain_worker(told.id)
        ids = [handle.id for handle in ahead]
        while set((await app.states(ids)).values()) != {State.SCHEDULED}:
            await asyncio.sleep(0.01)
        assert (await long.status()).state is State.RUNNING


async def test_a_worker_may_be_stopped_again(make_app: MakeApp) -> None:
    """By whoever left the block in which it ran, while somebody else stops it, or afterwards."""
    app = make_app(naps)
    async with app, app.worker() as worker:
        handle = await app.enqueue(naps(seconds=0.2))
        await asyncio.wait_for(started.wait(), 5)
        assert [*await asyncio.gather(worker.stop(), worker.stop())] == [True, True]
        assert (await handle.status()).state is State.COMPLETED, "the second waited for the same end"
        assert await worker.stop()


async def test_a_worker_that_never_started_cannot_be_stopped(make_app: MakeApp) -> None:
    with pytest.raises(RuntimeError, match="not running"):
        await make_app(naps).worker().stop()


async def test_a_worker_may_be_stopped_and_started_again(make_app: MakeApp) -> None:
    app = make_app(naps)
    async with app:
        worker = app.worker()
        for _ in range(2):
            async with worker:
                assert await app.enqueue(naps(seconds=0.0)).result(timeout=5) is not None
                assert await worker.stop()
