"""Retries of one run that somebody has seen, and retries that keep the durable steps before a named one."""

from __future__ import annotations

import asyncio

import pytest

from ropewalk import Context, InvalidInput, RetryStatus, State, job
from tests.apps import MakeApp

did: list[str] = []
broken: list[str] = []


@pytest.fixture(autouse=True)
def _forget() -> None:
    did.clear()
    broken[:] = ["ship"]


def do(what: str) -> str:
    did.append(what)
    if what in broken:
        raise ValueError(f"{what} is broken")
    return f"{what} {did.count(what)}"


@job(max_attempts=1)
async def order(ctx: Context) -> list[str]:
    return [await ctx.step(each, do, each) for each in ("reserve", "charge", "ship")]


@job(max_attempts=1)
async def breaks() -> None:
    raise ValueError("broken")


async def test_steps_before_the_named_one_are_kept(make_app: MakeApp) -> None:
    app = make_app(order)
    async with app.running():
        handle = await app.enqueue(order())
        assert (await app.wait(handle.id, timeout=10)).state is State.DEAD_LETTER
        broken.clear()
        answer = await app.retry(handle.id, from_step="charge")
        assert (answer.status, answer.new_state) == (RetryStatus.QUEUED, State.SCHEDULED)
        assert await handle.result(timeout=10) == ["reserve 1", "charge 2", "ship 2"]


async def test_from_the_first_step_nothing_is_kept(make_app: MakeApp) -> None:
    app = make_app(order)
    async with app.running():
        handle = await app.enqueue(order())
        await app.wait(handle.id, timeout=10)
        broken.clear()
        await app.retry(handle.id, from_step="reserve")
        assert await handle.result(timeout=10) == ["reserve 2", "charge 2", "ship 2"]


async def test_a_step_that_is_not_stored_is_refused(make_app: MakeApp) -> None:
    """The step that failed left nothing to forget: a retry does it again anyway."""
    app = make_app(order, breaks)
    async with app.running():
        handle, plain = await app.enqueue(order()), await app.enqueue(breaks())
        for each in (handle, plain):
            await app.wait(each.id, timeout=10)
            for name in ("ship", "reserves"):
                answer = await app.retry(each.id, from_step=name)
                assert (answer.status, answer.reason) == (RetryStatus.NOT_RETRIABLE, "no_such_step")
        assert (await app.retry("nope", from_step="ship")).status is RetryStatus.NOT_FOUND
        assert {(await each.status()).run for each in (handle, plain)} == {1}


async def test_fresh_and_a_step_contradict_one_another(make_app: MakeApp) -> None:
    app = make_app(order)
    with pytest.raises(InvalidInput, match=r"from_step='charge' keeps .* and fresh=True none: give only one") as wrong:
        await app.retry("any", from_step="charge", fresh=True)
    assert wrong.value.field == "from_step"
    with pytest.raises(InvalidInput, match="from_step is empty"):
        await app.retry("any", from_step="")


async def test_of_those_who_saw_a_failure_one_retries_it(make_app: MakeApp) -> None:
    app = make_app(breaks)
    async with app.running():
        handle = await app.enqueue(breaks())
        seen = await app.wait(handle.id, timeout=10)
        answers = await asyncio.gather(*(app.retry(handle.id, of_run=seen.run) for _ in range(5)))
        assert [each.status for each in answers].count(RetryStatus.QUEUED) == 1
        assert (await app.wait(handle.id, timeout=10)).state is State.DEAD_LETTER
        late = await app.retry(handle.id, of_run=seen.run)
        assert (late.status, late.reason) == (RetryStatus.NOT_RETRIABLE, "another_run")
        assert (await handle.status()).run == 2
        with pytest.raises(InvalidInput, match="of_run=0"):
            await app.retry(handle.id, of_run=0)
