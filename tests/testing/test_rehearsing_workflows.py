"""Workflows on the fake clock: children run in a drain, sleeps and timeouts wake when time is advanced."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ropewalk import App, Context, JobFailed, Result, State, WaitTimeout, job
from ropewalk.testing import Rehearsal


@job
async def leaf(ctx: Context, number: int) -> Result[int, int]:
    return ctx.result(number, append="sum")


@job
async def done(ctx: Context) -> int:
    return len(ctx.dependencies)


@job
async def tree(ctx: Context, count: int) -> Result[None, int]:
    return ctx.queue(*(leaf(number) for number in range(count))).next(done())


@job
async def naps(ctx: Context) -> str:
    await ctx.sleep(3600)
    return "rested"


@job
async def asks(ctx: Context) -> str:
    try:
        return str(await ctx.wait_for("answer", timeout=3600))
    except WaitTimeout:
        return "no answer"


@job
async def countdown(ctx: Context, n: int) -> Result[str, str]:
    return ctx.continue_with(countdown(n - 1)) if n else ctx.result("lift-off")


app = App("memory://", jobs=[leaf, done, tree, naps, asks, countdown])


async def test_a_drain_runs_children_and_what_comes_after_them(rehearse: Callable[[App], Rehearsal]) -> None:
    rehearsal = rehearse(app)
    handle = await rehearsal.enqueue(tree(4))
    assert await rehearsal.drain() == 6
    assert await handle.group() == 6
    assert (await rehearsal.assert_enqueued(done)).result == 4


async def test_a_drain_goes_through_a_large_fan_out(rehearse: Callable[[App], Rehearsal]) -> None:
    rehearsal = rehearse(app)
    root = await rehearsal.enqueue(leaf(1))
    many = [done().using(depends_on=root) for _ in range(1500)]
    await rehearsal.enqueue_many(many)
    assert await rehearsal.drain(concurrency=50) == 1501


async def test_time_wakes_sleepers(rehearse: Callable[[App], Rehearsal]) -> None:
    rehearsal = rehearse(app)
    handle = await rehearsal.enqueue(naps())
    await rehearsal.drain()
    assert (await handle.status()).state is State.DELAYED
    await rehearsal.advance(hours=1)
    await rehearsal.drain()
    assert await handle.result() == "rested"


async def test_time_ends_waits_and_signals_do_so_earlier(rehearse: Callable[[App], Rehearsal]) -> None:
    rehearsal = rehearse(app)
    ignored, answered = await rehearsal.enqueue_many([asks(), asks()])
    await rehearsal.drain()
    await rehearsal.signal(answered.id, "answer", "yes")
    await rehearsal.drain()
    assert await answered.result() == "yes"
    assert (await ignored.status()).state is State.PENDING
    await rehearsal.advance(hours=1)
    await rehearsal.drain()
    assert await ignored.result() == "no answer"


async def test_a_gate_is_given_up_in_time(rehearse: Callable[[App], Rehearsal]) -> None:
    rehearsal = rehearse(app)
    parent = await rehearsal.enqueue(naps())
    child = await rehearsal.enqueue(done(), depends_on=parent, gate_timeout=60)
    await rehearsal.drain()
    await rehearsal.advance(minutes=1)
    await rehearsal.drain()
    with pytest.raises(JobFailed, match="not settled in time"):
        await child.result()


async def test_run_follows_a_chain(rehearse: Callable[[App], Rehearsal]) -> None:
    assert await rehearse(app).run(countdown(3)) == "lift-off"
