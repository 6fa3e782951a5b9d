"""Cancellation: waiting, cooperative, forced, finished, in bulk (safe-13)."""

from __future__ import annotations

import asyncio

import pytest

from ropewalk import CancelStatus, Context, Filter, JobCancelled, State, job
from tests.apps import MakeApp

ran: list[object] = []
started = asyncio.Event()


@pytest.fixture(autouse=True)
def _forget() -> None:
    global started  # noqa: PLW0603 # an event belongs to the loop of its test
    ran.clear()
    started = asyncio.Event()


@job
async def patient(ctx: Context) -> str:
    started.set()
    while not ctx.cancelled:
        await asyncio.sleep(0.01)
    assert ctx.cancellation is not None
    ran.append(ctx.cancellation.message)
    ctx.raise_if_cancelled()
    return "unreachable"


@job
async def finishes_anyway(ctx: Context) -> str:
    started.set()
    while not ctx.cancelled:
        await asyncio.sleep(0.01)
    return "finished"


@job
async def stubborn() -> None:
    started.set()
    try:
        await asyncio.sleep(60)
    finally:
        ran.append("cleaned up")


@job
async def quick() -> int:
    return 1


async def test_a_waiting_job_is_cancelled_at_once(make_app: MakeApp) -> None:
    app = make_app(quick)
    async with app:
        handle = await app.enqueue(quick())
        assert (await handle.cancel(reason="not needed")).status is CancelStatus.CANCELLED
        with pytest.raises(JobCancelled, match="not needed"):
            await handle.result(timeout=5)
        assert (await handle.cancel()).status is CancelStatus.ALREADY_COMPLETE


async def test_a_cooperative_cancel_is_seen_by_the_handler(make_app: MakeApp) -> None:
    app = make_app(patient)
    async with app.running():
        handle = await app.enqueue(patient())
        await asyncio.wait_for(started.wait(), 5)
        assert (await handle.cancel(reason="enough")).status is CancelStatus.CANCEL_REQUESTED
        with pytest.raises(JobCancelled):
            await handle.result(timeout=5)
    assert ran == ["enough"]


async def test_a_handler_that_returns_beats_the_cancellation(make_app: MakeApp) -> None:
    app = make_app(finishes_anyway)
    async with app.running():
        handle = await app.enqueue(finishes_anyway())
        await asyncio.wait_for(started.wait(), 5)
        await handle.cancel()
        assert await handle.result(timeout=5) == "finished"


async def test_force_stops_the_handler_and_the_slot_goes_on(make_app: MakeApp) -> None:
    app = make_app(stubborn, quick)
    async with app.running(concurrency=1):
        handle = await app.enqueue(stubborn())
        await asyncio.wait_for(started.wait(), 5)
        assert (await handle.cancel(force=True)).status is CancelStatus.CANCEL_REQUESTED
        with pytest.raises(JobCancelled):
            await handle.result(timeout=5)
        assert await app.enqueue(quick()).result(timeout=5) == 1
    assert ran == ["cleaned up"]


async def test_unknown_ids_and_bulk_with_dry_run(make_app: MakeApp) -> None:
    app = make_app(quick)
    async with app:
        assert (await app.cancel("nope")).status is CancelStatus.NOT_FOUND
        handles = await app.enqueue_many((quick() for _ in range(5)), tags={"batch": "1"})
        await app.enqueue(quick())
        wanted = Filter(tags={"batch": "1"})
        dry = await app.cancel_many(wanted, dry_run=True)
        assert (dry.requested, dry.done) == (5, 0)
        done = await app.cancel_many(wanted)
        assert (done.requested, done.done) == (5, 5)
        again = await app.cancel_many([handles[0].id, "nope"])
        assert (again.done, again.skipped, again.missing) == (0, 1, 1)
        assert await app.count(Filter(states=(State.CANCELLED,))) == 5
