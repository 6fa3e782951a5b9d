"""Waiting for a result while the store is away: a short outage is not the caller's business, a long one is."""

from __future__ import annotations

import asyncio

import pytest

from ropewalk import StoreRefused, StoreUnavailable, WaitTimeout, job
from ropewalk.client import waiter
from tests.apps import MakeApp
from tests.worker.faults import Faults


@job
async def greet() -> str:
    return "hello"


async def test_a_result_is_waited_for_through_an_outage(make_app: MakeApp) -> None:
    """live-4: by those who waited before it, and by those who begin to wait in it."""
    app = make_app(greet)
    async with app:
        handle = await app.enqueue(greet())
        before = asyncio.ensure_future(handle.result(timeout=30))
        over = Faults(app).refuse("get", 4)
        async with asyncio.timeout(30):
            within = asyncio.ensure_future(handle.result(timeout=30))
            await over.wait()
        async with app.worker():
            assert tuple(await asyncio.gather(before, within)) == ("hello", "hello")


async def test_a_long_outage_ends_the_wait(make_app: MakeApp, monkeypatch: pytest.MonkeyPatch) -> None:
    """It counts from the first look that failed, however long somebody had waited before that."""
    monkeypatch.setattr(waiter, "AWAY_SECONDS_MAX", 1.2)
    app = make_app(greet)
    async with app:
        handle = await app.enqueue(greet())
        waiting = asyncio.ensure_future(handle.result(timeout=60))
        await asyncio.wait([waiting], timeout=1.5)  # longer than an outage may be: nothing is wrong so far
        faults = Faults(app)
        over = faults.refuse("get", 2)
        await asyncio.wait_for(over.wait(), 30)
        assert not waiting.done()
        faults.refuse("get", 1000)
        with pytest.raises(StoreUnavailable):
            await waiting
        with pytest.raises(WaitTimeout):
            await handle.result(timeout=0.1)


async def test_another_error_ends_the_wait_at_once(make_app: MakeApp) -> None:
    """A store that answers so will answer so again."""
    app = make_app(greet)
    async with app:
        handle = await app.enqueue(greet())
        Faults(app).fail("get", 1, StoreRefused("not yours"))
        with pytest.raises(StoreRefused):
            await handle.result(timeout=30)
