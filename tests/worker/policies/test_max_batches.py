"""How many batches of a type run at once in one worker. What finds no room is not kept from other types or workers."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from ropewalk import App, Handle, State, batch_job, job
from tests.apps import MakeApp

PATIENCE = 20

calls: list[list[int]] = []
"""the batches that run now, and wait for the gate"""
most: list[int] = []
"""how many did, at each start"""
gate: list[asyncio.Event] = []


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    gate[:] = [asyncio.Event()]
    yield
    calls.clear()
    most.clear()


async def work(items: list[int]) -> list[int]:
    calls.append(items)
    most.append(len(calls))
    try:
        await gate[0].wait()
    finally:
        calls.remove(items)
    return items


@batch_job(size=3, max_wait=0, max_batches=2)
async def two_at_once(items: list[int]) -> list[int]:
    return await work(items)


@batch_job(size=3, max_wait=0, max_batches=1)
async def one_at_once(items: list[int]) -> list[int]:
    return await work(items)


@batch_job(size=3, max_wait=60, max_batches=1)
async def patient(items: list[int]) -> list[int]:
    return items


@job
async def quick() -> str:
    return "done"


async def runs(*batches: int) -> None:
    """Until batches of these sizes run."""
    async with asyncio.timeout(PATIENCE):
        while sorted(len(call) for call in calls) != sorted(batches):
            await asyncio.sleep(0.01)


async def results(handles: list[Handle[int, int]]) -> list[int]:
    return [await handle.result(timeout=PATIENCE) for handle in handles]


async def states(handles: list[Handle[int, int]]) -> list[State]:
    return [(await handle.status()).state for handle in handles]


async def test_no_more_batches_run_and_others_go_past_them(make_app: MakeApp) -> None:
    app = make_app(two_at_once, quick)
    handles = await app.enqueue_many(two_at_once(number) for number in range(30))
    async with app.worker(concurrency=10):
        await runs(3, 3)
        for _ in range(3):
            assert await app.enqueue(quick()).result(timeout=PATIENCE) == "done"
        assert (await states(handles)).count(State.RUNNING) == 6, "the others were not even claimed"
        gate[0].set()
        assert await results(handles) == list(range(30))
    assert max(most) == 2
    assert len(most) == 10, "they were full"


async def test_what_a_worker_has_no_room_for_another_one_runs(make_app: MakeApp) -> None:
    app = make_app(one_at_once)
    async with app, app.worker(), app.worker():
        handles = await app.enqueue_many(one_at_once(number) for number in range(9))
        await runs(3, 3)
        gate[0].set()
        assert await results(handles) == list(range(9))


async def test_a_batch_that_was_not_full_counts_as_one(make_app: MakeApp) -> None:
    app = make_app(one_at_once)
    async with app.worker():
        first = await app.enqueue_many([one_at_once(1)])
        await runs(1)
        rest = await app.enqueue_many(one_at_once(number) for number in range(2, 5))
        gate[0].set()
        assert await results(first + rest) == [1, 2, 3, 4]
    assert max(most) == 1


async def two_tenants(app: App) -> list[Handle[int, int]]:
    """Jobs that one claim brings, and that fit into no batch together."""
    return [
        *await app.enqueue_many([one_at_once(1)]),
        *await app.tenant("acme").enqueue_many([one_at_once(2)]),
    ]


async def test_a_batch_that_waits_for_another_to_end_takes_no_slot(make_app: MakeApp) -> None:
    app = make_app(one_at_once, quick)
    async with app:
        handles = await two_tenants(app)
        async with app.worker(concurrency=2):
            await runs(1)
            assert await app.enqueue(quick()).result(timeout=PATIENCE) == "done"
            gate[0].set()
            assert await results(handles) == [1, 2]
    assert most == [1, 1]


async def test_a_batch_that_waits_for_long_is_given_back_to_other_workers(make_app: MakeApp) -> None:
    app = make_app(one_at_once)
    async with app:
        handles = await two_tenants(app)
        async with app.worker():
            await runs(1)
            async with app.worker():
                await runs(1, 1)
                gate[0].set()
                assert await results(handles) == [1, 2]
        for handle in handles:
            assert (await handle.status()).attempt == 1, "to wait costs no attempt"


async def test_the_end_of_a_cancelled_batch_lets_the_next_one_run(make_app: MakeApp) -> None:
    app = make_app(one_at_once)
    async with app:
        handles = await two_tenants(app)
        async with app.worker(concurrency=2):
            await runs(1)
            running = calls[0][0]
            await handles[running - 1].cancel(force=True)
            gate[0].set()
            assert await results([each for number, each in enumerate(handles, 1) if number != running]) == [3 - running]


async def test_a_drain_gives_back_what_waits(make_app: MakeApp) -> None:
    app = make_app(one_at_once)
    async with app:
        handles = await two_tenants(app)
        async with app.worker(grace=0.1):
            await runs(1)
        for handle in handles:
            info = await handle.status()
            assert (info.state, info.attempt) == (State.SCHEDULED, 0)


async def test_a_batch_that_is_being_gathered_takes_in_more(make_app: MakeApp) -> None:
    app = make_app(patient)
    async with app.worker():
        first = await app.enqueue_many([patient(1)])
        rest = await app.enqueue_many([patient(2), patient(3)])
        assert await results(first + rest) == [1, 2, 3]
