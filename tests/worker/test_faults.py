"""A store that fails for a while: nothing lost, the worker resumes by itself, or gives up loudly (live-4, rule 4)."""

from __future__ import annotations

import asyncio

import pytest

from ropewalk import Context, OutcomeUnknown, State, StoreRefused, StoreUnavailable, job
from ropewalk.worker.settler import ALONE_TRIES_MAX
from tests.apps import MakeApp
from tests.worker.faults import Faults

ran: list[object] = []


@pytest.fixture(autouse=True)
def _forget() -> None:
    ran.clear()


@job
async def count(ctx: Context, number: int) -> int:
    ran.append(number)
    return ctx.attempt


@pytest.mark.parametrize("verb", ["claim", "settle", "renew", "sweep"])
async def test_an_outage_is_survived(make_app: MakeApp, verb: str) -> None:
    reported: list[str] = []
    app = make_app(count, on_error=lambda error, phase: reported.append(phase))
    async with app:
        faults = Faults(app)
        faults.refuse(verb, 3)
        async with app.worker(poll=0.05, lease=1.0):
            handles = await app.enqueue_many(count(number=n) for n in range(20))
            assert [await handle.result(timeout=10) for handle in handles] == [1] * 20
    assert sorted(ran, key=str) == sorted(range(20), key=str)
    if verb in ("claim", "settle"):
        assert len(reported) >= 3


async def test_a_settlement_whose_reply_was_lost_counts_once(make_app: MakeApp) -> None:
    """safe-17: the store has it; asking again is refused as stale and harmless."""
    app = make_app(count, on_error=lambda error, phase: None)
    async with app:
        over = Faults(app).lose_reply("settle", 1)
        async with app.worker() as worker:
            handle = await app.enqueue(count(number=1))
            assert await handle.result(timeout=5) == 1
            await asyncio.wait_for(over.wait(), 5)
            await asyncio.wait_for(worker.idle(), 10)
            assert worker.refused == 1
        assert [entry.kind for entry in await app.history(handle.id)] == ["queued", "started", "complete"]
    assert ran == [1]


async def test_an_enqueue_whose_reply_was_lost_says_unknown_and_repeats_safely(make_app: MakeApp) -> None:
    app = make_app(count)
    async with app:
        Faults(app).lose_reply("submit", 1)
        built = count(number=1)
        with pytest.raises(OutcomeUnknown):
            await app.enqueue(built)
        again = await app.enqueue(built)
        assert (again.id, again.duplicate) == (built.id, True)
        assert await app.count() == 1


async def test_an_enqueue_that_failed_queued_nothing(make_app: MakeApp) -> None:
    app = make_app(count)
    async with app:
        Faults(app).refuse("submit", 1)
        with pytest.raises(StoreUnavailable):
            await app.enqueue(count(number=1))
        assert await app.count() == 0


async def test_everything_works_with_every_hint_lost(make_app: MakeApp) -> None:
    """Rule 5: hints only shorten latency."""
    app = make_app(count)
    async with app:
        app._app_state.store.notifier.publish = lambda hint: None  # type: ignore[method-assign]
        async with app.worker(poll=0.05):
            handle = await app.enqueue(count(number=1))
            assert await handle.result(timeout=5) == 1


async def test_state_after_an_outage_is_consistent(make_app: MakeApp) -> None:
    app = make_app(count, on_error=lambda error, phase: None)
    async with app:
        faults = Faults(app)
        for verb in ("claim", "settle", "settle"):
            faults.lose_reply(verb, 2)
        async with app.worker(poll=0.05, lease=1.0) as worker:
            handles = await app.enqueue_many(count(number=n) for n in range(10))
            infos = [await app.wait(handle.id, timeout=20) for handle in handles]
            await asyncio.wait_for(worker.idle(), 10)
    assert {info.state for info in infos} == {State.COMPLETED}


@pytest.mark.parametrize(
    "error", [StoreRefused("no longer allowed"), RuntimeError("a defect")], ids=["refused", "defect"]
)
async def test_settlements_that_failed_for_another_reason_are_handed_in_again(
    make_app: MakeApp, error: Exception
) -> None:
    """live-3, live-4: the handlers have run, and nobody else would ever settle what this worker goes on renewing."""
    app = make_app(count, on_error=lambda error, phase: None)
    async with app:
        over = Faults(app).fail("settle", 2, error)
        async with app.worker(poll=0.05, lease=1.0):
            handles = await app.enqueue_many(count(number=n) for n in range(20))
            assert [await handle.result(timeout=20) for handle in handles] == [1] * 20
        assert over.is_set()
    assert sorted(ran, key=str) == sorted(range(20), key=str)


async def test_one_settlement_that_cannot_be_written_holds_up_no_other(make_app: MakeApp) -> None:
    """live-3: it is given up alone, and its job goes on when its lease has run out."""
    told: list[BaseException] = []
    app = make_app(count, on_error=lambda error, phase: told.append(error))
    async with app:
        bad = await app.enqueue(count(number=0))
        Faults(app).fail_settling(bad.id, RuntimeError("a defect"), times=1 + ALONE_TRIES_MAX)
        async with app.worker(poll=0.05, lease=1.0):
            handles = await app.enqueue_many(count(number=n) for n in range(1, 20))
            assert [await handle.result(timeout=20) for handle in handles] == [1] * 19
            assert await bad.result(timeout=30) == 2
    assert sorted(ran, key=str) == sorted([0, *range(20)], key=str)
    assert [str(each) for each in told].count("a defect") == 1 + ALONE_TRIES_MAX
