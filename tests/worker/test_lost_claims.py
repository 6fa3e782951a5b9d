"""Claims whose answer never arrives: what they leased is given back and loses nothing (safe-7)."""

from __future__ import annotations

import asyncio

import pytest

from ropewalk import App, Context, StoreUnavailable, job
from ropewalk.ports.store.claims import Claimed, ClaimRequest
from tests.apps import MakeApp
from tests.worker.faults import Faults

LONG_LEASE = 60.0
"""Nothing here may wait for a lease to run out."""

started: list[str] = []


@pytest.fixture(autouse=True)
def _forget() -> None:
    started.clear()


@job(max_attempts=1)
async def only_once(ctx: Context) -> int:
    started.append(ctx.id)
    return ctx.attempt


@job
async def blocks(ctx: Context) -> None:
    started.append(ctx.id)
    await asyncio.sleep(60)


def quiet(error: BaseException, phase: str) -> None:
    """Errors are expected here."""


@pytest.mark.parametrize("lost", [1, 3])
async def test_a_claim_whose_answer_is_lost_costs_nothing(make_app: MakeApp, lost: int) -> None:
    app = make_app(only_once, on_error=quiet)
    async with app:
        handles = await app.enqueue_many(only_once() for _ in range(30))
        over = Faults(app).lose_reply("claim", lost)
        async with app.worker(lease=LONG_LEASE, poll=0.05, concurrency=4) as worker:
            assert [await handle.result(timeout=10) for handle in handles] == [1] * 30
            await asyncio.wait_for(worker.idle(), 10)
        assert over.is_set()
        infos = [await handle.status() for handle in handles]
    assert {(info.attempt, info.crashes) for info in infos} == {(1, 0)}
    assert sorted(started) == sorted(handle.id for handle in handles), "each started once"


async def test_a_worker_without_a_free_slot_gives_them_back_too(make_app: MakeApp) -> None:
    """Others can run them meanwhile."""
    app = make_app(only_once, blocks, on_error=quiet)
    async with app:
        over = asyncio.Event()
        async with app.worker(lease=LONG_LEASE, poll=0.05, concurrency=1, grace=0) as worker:
            await app.enqueue(blocks())
            await _until(lambda: bool(started))
            claimer = worker._started.claimer
            handle = await app.enqueue(only_once())
            over = Faults(app).lose_reply("claim", 1)
            with pytest.raises(StoreUnavailable):
                await claimer._claim(1)
            assert over.is_set()
            await _until_waiting(app, handle.id)


async def test_a_claim_that_is_under_way_when_the_worker_stops(make_app: MakeApp) -> None:
    """A drain costs no attempt: what is leased meanwhile is released before the worker says goodbye."""
    app = make_app(only_once)
    async with app:
        claiming, go_on = _held_up_claim(app)
        handle = await app.enqueue(only_once())
        worker = app.worker(lease=LONG_LEASE, poll=0.05)
        await worker.__aenter__()
        await asyncio.wait_for(claiming.wait(), 5)
        stopping = asyncio.ensure_future(worker.stop())
        await _until(lambda: worker._parts is not None and worker._parts.draining)
        go_on.set()
        await asyncio.wait_for(stopping, 10)
        info = await handle.status()
        assert (info.state, info.attempt, started) == ("scheduled", 0, [])


async def test_a_claim_that_is_lost_when_the_worker_stops(make_app: MakeApp) -> None:
    app = make_app(only_once, on_error=quiet)
    async with app:
        handle = await app.enqueue(only_once())
        over = Faults(app).lose_reply("claim", 1)
        worker = app.worker(lease=LONG_LEASE, poll=0.05)
        await worker.__aenter__()
        await asyncio.wait_for(over.wait(), 5)
        await asyncio.wait_for(worker.stop(), 10)
        info = await handle.status()
        assert (info.state, info.attempt, started) == ("scheduled", 0, [])


def _held_up_claim(app: App) -> tuple[asyncio.Event, asyncio.Event]:
    """The first claim that leases anything is answered late: when the second event says so."""
    store, claim = app._app_state.store, app._app_state.store.claim
    claiming, go_on = asyncio.Event(), asyncio.Event()

    async def slow(request: ClaimRequest) -> Claimed:
        claimed = await claim(request)
        if claimed.jobs:
            claiming.set()
            await go_on.wait()
        return claimed

    store.claim = slow  # type: ignore[method-assign]
    return claiming, go_on


async def _until(condition: object) -> None:
    assert callable(condition)
    async with asyncio.timeout(5):
        while not condition():
            await asyncio.sleep(0.01)


async def _until_waiting(app: App, job_id: str) -> None:
    async with asyncio.timeout(5):
        while (await app.get(job_id)).state != "scheduled":
            await asyncio.sleep(0.01)
