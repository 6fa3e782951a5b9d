"""Leases in the engine: kept alive past blocking handlers, given up when lost, late words refused (safe-5)."""

from __future__ import annotations

import asyncio
import time

import pytest

from ropewalk import App, Context, Event, State, job
from ropewalk.domain.jobs.states import Move
from ropewalk.domain.jobs.transition import Settlement
from ropewalk.ports.store.claims import ClaimRequest
from ropewalk.ports.store.leases import Renewal
from tests.apps import MakeApp

ran: list[object] = []
started = asyncio.Event()


@pytest.fixture(autouse=True)
def _forget() -> None:
    global started  # noqa: PLW0603 # an event belongs to the loop of its test
    ran.clear()
    started = asyncio.Event()


@job
async def blocks_the_loop(ctx: Context, seconds: float) -> int:
    ran.append(ctx.attempt)
    time.sleep(seconds)
    return ctx.attempt


@job
async def waits(ctx: Context) -> int:
    ran.append(ctx.attempt)
    started.set()
    await asyncio.sleep(60)
    return ctx.attempt


async def test_a_blocking_handler_keeps_its_lease(make_app: MakeApp) -> None:
    app = make_app(blocks_the_loop)
    async with app, app.worker(lease=1.0):
        assert await app.enqueue(blocks_the_loop(seconds=2.5)).result(timeout=10) == 1
    assert ran == [1]


async def test_a_lost_lease_stops_the_handler_and_nothing_it_says_counts(make_app: MakeApp) -> None:
    heard: list[Event] = []
    app = make_app(waits, on_event=heard.append)
    async with app, app.worker(lease=1.0) as worker:
        handle = await app.enqueue(waits())
        await asyncio.wait_for(started.wait(), 5)
        await _steal(app, handle.id)
        async with asyncio.timeout(5):
            while not any(event.kind == "lease_lost" for event in heard):
                await asyncio.sleep(0.02)
        assert (await handle.status()).state is State.COMPLETED
        assert worker.id is not None


async def _steal(app: App, job_id: str) -> None:
    """Take the job away as a second worker would after the lease ran out, and complete it."""
    store = app._app_state.store
    held = (await store.get("default", [job_id])).jobs[job_id]
    assert held.owner is not None
    # A renewal for no time at all: the lease is over by the clock of any store.
    await store.renew(held.owner, [Renewal(seq=held.seq, fence=held.fence, lease_us=0)])
    assert [moved.job.id for moved in (await store.sweep(1)).moved] == [job_id]
    claimed = await store.claim(
        ClaimRequest(owner="thief", types={"waits": 30_000_000}, slots=1, limit=1, first_ticket=1, started_upto=1)
    )
    (job_,) = claimed.jobs
    assert job_.crashes == 1
    settlements = await store.settle(
        "thief", [Settlement(seq=job_.seq, fence=job_.fence, move=Move.COMPLETE, result=b"1")]
    )
    (settled,) = settlements.settled
    assert settled.move is Move.COMPLETE
