"""How a worker asks for work: rarely and much at a time while there is plenty, and no more than it can use soon."""

from __future__ import annotations

import asyncio
from itertools import accumulate

import pytest

from ropewalk import job
from ropewalk.ports.store.claims import Claimed, ClaimRequest
from tests.apps import MakeApp

CONCURRENCY = 100
JOBS = 6_000
WARM_UP_JOBS = 1_000
"""by then it has measured how long a handler takes, whatever happened to the first ones"""


@job
async def nothing() -> None:
    pass


async def test_a_busy_worker_claims_in_large_batches(make_app: MakeApp, monkeypatch: pytest.MonkeyPatch) -> None:
    app = make_app(nothing)
    await app.enqueue_many(nothing() for _ in range(JOBS))
    store, given = app._app_state.store, list[int]()
    claim = store.claim

    async def counted(request: ClaimRequest) -> Claimed:
        claimed = await claim(request)
        given.append(len(claimed.jobs))
        return claimed

    monkeypatch.setattr(store, "claim", counted)
    async with app.worker(concurrency=CONCURRENCY) as worker:
        await worker.idle()

    assert sum(given) == JOBS
    warm = [size for size, before in zip(given, accumulate(given, initial=0), strict=False) if before >= WARM_UP_JOBS]
    large = [size for size in warm if size >= CONCURRENCY + 50]
    # The last batch is what is left; a claim of about a slot's worth each means asking twice for the same runners.
    assert len([size for size in warm if size]) - len(large) <= 1, given


@job(queue="flood")
async def drop() -> None:
    await asyncio.sleep(0.001)


@job(queue="mail", max_attempts=1)
async def letter() -> None:
    pass


async def test_a_flood_elsewhere_keeps_no_last_attempt_from_starting(make_app: MakeApp) -> None:
    """live-5: it starts only in a free slot, and a busy worker has one for it."""
    started: list[str] = []
    app = make_app(drop, letter, on_event=lambda event: started.append(event.type) if event.kind == "started" else None)
    async with app:
        await app.enqueue_many(drop() for _ in range(600))
        await app.enqueue_many(letter() for _ in range(5))
        async with app.worker(concurrency=2) as worker:
            await asyncio.wait_for(worker.idle(), 30)
    letters = [place for place, kind in enumerate(started) if kind == "letter"]
    assert len(letters) == 5 and letters[-1] < 100, letters


async def test_where_it_was_held_up_it_goes_on(make_app: MakeApp, monkeypatch: pytest.MonkeyPatch) -> None:
    """live-5: with the next claim that asks for jobs, and not before a slot is free; others only permit starts."""
    app = make_app(drop, letter)
    claims: list[tuple[ClaimRequest, Claimed]] = []
    store, claim = app._app_state.store, app._app_state.store.claim

    async def noted(request: ClaimRequest) -> Claimed:
        claimed = await claim(request)
        claims.append((request, claimed))
        return claimed

    async with app:
        await app.enqueue_many(drop() for _ in range(1000))
        monkeypatch.setattr(store, "claim", noted)
        async with app.worker(concurrency=4) as worker:
            async for _ in app.events():
                if worker.settled > 200:  # by now it has work at hand for a while
                    break
            await app.enqueue_many(letter() for _ in range(20))
            await asyncio.wait_for(worker.idle(), 30)
    held_up, only_permitted = None, 0
    for request, claimed in claims:
        assert request.first == held_up
        only_permitted += held_up is not None and request.limit == 0
        if request.limit:
            assert request.slots or held_up is None
            held_up = claimed.held_up
    assert only_permitted, "or this shows nothing about them"
