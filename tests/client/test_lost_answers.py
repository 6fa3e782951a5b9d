"""safe-17: the answer to a call was lost after the commit; the client asks again, or its caller does."""

from __future__ import annotations

from typing import Any

import pytest

from ropewalk import App, Context, OutcomeUnknown, StoreUnavailable, job
from ropewalk.errors import RopewalkError
from ropewalk.ports.store.workflows import SignalAnswer
from tests.apps import MakeApp


@job
async def listen(ctx: Context) -> list[object]:
    first = await ctx.wait_for("ring")
    return [first, await ctx.wait_for("end")]


@job
async def charge(ctx: Context) -> bool:
    return await ctx.once("charge")


def losing(app: App, verb: str, *errors: RopewalkError) -> None:
    """The next calls fail with these: what may have happened has."""
    store: Any = app._app_state.store
    real, left = getattr(store, verb), list(errors)

    async def faulty(*args: Any, **kwargs: Any) -> Any:
        if not left:
            return await real(*args, **kwargs)
        error = left.pop(0)
        if isinstance(error, OutcomeUnknown):
            await real(*args, **kwargs)
        raise error

    setattr(store, verb, faulty)


LOST = OutcomeUnknown("injected: repeat it with the same id")
AWAY = StoreUnavailable("injected")


async def test_a_signal_whose_answer_was_lost_is_stored_once(make_app: MakeApp) -> None:
    app = make_app(listen)
    async with app, app.worker(poll=0.05):
        handle = await app.enqueue(listen())
        losing(app, "signal", LOST, AWAY)
        assert await app.signal(handle.id, "ring", 1) is SignalAnswer.DUPLICATE
        await app.signal(handle.id, "end", 2)
        assert await handle.result(timeout=10) == [1, 2]


async def test_a_signal_is_repeated_by_whoever_sends_it(make_app: MakeApp) -> None:
    app = make_app(listen)
    async with app:
        handle = await app.enqueue(listen())
        losing(app, "signal", LOST, *[AWAY] * 3)
        with pytest.raises(OutcomeUnknown, match="id='call-1'"):
            await app.signal(handle.id, "ring", 1, id="call-1")
        assert await app.signal(handle.id, "ring", 1, id="call-1") is SignalAnswer.DUPLICATE


async def test_whoever_was_first_is_told_so_when_the_answer_was_lost(make_app: MakeApp) -> None:
    app = make_app(charge)
    async with app, app.worker(poll=0.05):
        losing(app, "once", LOST)
        assert await app.once("report")
        assert not await app.once("report")
        losing(app, "once", LOST)
        assert await (await app.enqueue(charge())).result(timeout=10)


async def test_once_is_repeated_by_whoever_asks(make_app: MakeApp) -> None:
    app = make_app(charge)
    async with app:
        losing(app, "once", LOST, *[AWAY] * 3)
        with pytest.raises(OutcomeUnknown, match="id='night-1'"):
            await app.once("report", id="night-1")
        assert await app.once("report", id="night-1")
        assert not await app.once("report", id="night-2")


async def test_a_store_that_is_away_is_not_asked_again(make_app: MakeApp) -> None:
    """Nothing was changed: the caller is told at once."""
    app = make_app(listen)
    async with app:
        losing(app, "once", AWAY)
        with pytest.raises(StoreUnavailable) as raised:
            await app.once("report")
        assert not isinstance(raised.value, OutcomeUnknown)


async def test_a_schedule_is_triggered_once_under_one_id(make_app: MakeApp) -> None:
    app = make_app(charge)
    async with app:
        await app.create_schedule("nightly", every=3600, job=charge())
        losing(app, "submit", LOST)
        with pytest.raises(OutcomeUnknown):
            await app.trigger_schedule("nightly", id="extra")
        assert (await app.trigger_schedule("nightly", id="extra")).id == "extra"
        assert await app.count() == 1
