"""What a handler forgets to write: an `await` before a call of its context, a `raise` before an outcome.

Each lost work once while the job was `completed`; each fails the job for good, with an error that says what to write.
"""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ropewalk import Abort, App, Batch, CallNext, Context, Defer, Filter, Job, JobFailed, Retry, State, batch_job, job
from tests.apps import MakeApp


@job
async def child(n: int) -> int:
    return n


def work() -> int:
    return 7


CALLS: dict[str, Callable[[Context], object]] = {
    "checkpoint": lambda ctx: ctx.checkpoint(1),
    "spawn": lambda ctx: ctx.spawn(child(1)),
    "spawn_many": lambda ctx: ctx.spawn_many([child(1)]),
    "step": lambda ctx: ctx.step("a", work),
    "sleep": lambda ctx: ctx.sleep(3600),
    "wait_for": lambda ctx: ctx.wait_for("paid"),
    "states": lambda ctx: ctx.states(["a"]),
    "once": lambda ctx: ctx.once("a"),
}


@job
async def forgets(ctx: Context, call: str) -> int:
    CALLS[call](ctx)
    return 3


@job
def forgets_in_a_thread(ctx: Context, call: str) -> int:
    CALLS[call](ctx)
    return 3


@job(executor="process")
def forgets_in_a_process(ctx: Context) -> int:
    _ = ctx.spawn(child(1))
    return 3


async def failure_of(app: Any, new: Job[Any, Any]) -> Any:
    """The error of a job, which has failed for good."""
    async with app.running():
        handle = await app.enqueue(new)
        with pytest.raises(JobFailed):
            await handle.result(timeout=30)
        info = await app.get(handle.id)
        assert info.state is State.FAILED
        assert await app.count(Filter(parent_id=handle.id)) == 0
        return info.error


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("kind", [forgets, forgets_in_a_thread])
async def test_a_call_that_is_never_awaited_fails_the_job(make_app: MakeApp, kind: Any, call: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        error = await failure_of(make_app(kind, child), kind(call))
    assert error.code == "never_awaited"
    assert error.category == "permanent"
    assert f"ctx.{call}(...) at {__file__}:" in error.message
    assert f"`await ctx.{call}(...)`" in error.message
    assert f"ctx.sync.{call}(...)" in error.message


async def test_a_call_that_is_never_awaited_fails_the_job_of_a_process(make_app: MakeApp) -> None:
    error = await failure_of(make_app(forgets_in_a_process, child), forgets_in_a_process())
    assert error.code == "never_awaited"
    assert "ctx.spawn(...)" in error.message


@batch_job(size=2, max_wait=0.01)
async def batch(items: Batch[int]) -> list[int]:
    _ = items.contexts[0].checkpoint(1)
    return items.items


async def test_a_call_that_is_never_awaited_fails_the_job_of_a_batch(make_app: MakeApp) -> None:
    assert (await failure_of(make_app(batch), batch(1))).code == "never_awaited"


@job
async def forgets_in_a_transaction(ctx: Context) -> None:
    async with ctx.transaction() as tx:
        _ = tx.execute("SELECT 1")
        tx.complete(None)


async def test_a_statement_that_is_never_awaited_undoes_its_transaction(tmp_path: Path) -> None:
    async with App(f"sqlite:///{tmp_path}/jobs.db", jobs=[forgets_in_a_transaction]) as app:
        error = await failure_of(app, forgets_in_a_transaction())
    assert "tx.execute(...) at" in error.message


async def forgetful(ctx: Context, proceed: CallNext) -> object:
    value = await proceed()
    _ = ctx.once("a")
    return value


@job
def in_a_thread() -> int:
    return 3


@job(executor="process")
def in_a_process() -> int:
    return 3


@pytest.mark.parametrize("kind", [in_a_process, in_a_thread])
async def test_a_middleware_that_forgets_fails_the_job(make_app: MakeApp, kind: Any) -> None:
    assert (await failure_of(make_app(kind, middlewares=[forgetful]), kind())).code == "never_awaited"


@job
async def forgets_many(ctx: Context) -> None:
    for n in range(5):
        _ = ctx.spawn(child(n))
        await ctx.checkpoint(n)


async def test_of_many_the_first_three_are_named(make_app: MakeApp) -> None:
    error = await failure_of(make_app(forgets_many, child), forgets_many())
    assert error.message.count("ctx.spawn(...) at") == 3
    assert " and 2 more were not awaited" in error.message


@job
async def awaits(ctx: Context) -> list[Any]:
    one = await ctx.spawn(child(1))
    two, three = await asyncio.gather(ctx.spawn(child(2)), ctx.spawn(child(3)))
    four = await asyncio.wait_for(ctx.spawn(child(4)), 10)
    five = await asyncio.ensure_future(ctx.spawn(child(5)))
    six = await asyncio.create_task(ctx.spawn(child(6)))
    async with asyncio.TaskGroup() as group:
        seven = group.create_task(ctx.spawn(child(7)))
    first = await ctx.step("inside a step", ctx.once, "key")
    done, _ = await asyncio.wait([asyncio.create_task(ctx.checkpoint(1))])
    assert len(done) == 1
    assert first
    return [one, two, three, four, five, six, seven.result()]


async def test_every_way_of_awaiting_goes_on_working(make_app: MakeApp) -> None:
    app = make_app(awaits, child)
    async with app.running():
        handle = await app.enqueue(awaits())
        ids = await handle.result(timeout=10)
        assert len(set(ids)) == 7
        assert await app.count(Filter(parent_id=handle.id)) == 7


# ── a forgotten raise ──────────────────────────────────────────────────────────────────────────────────────────

OUTCOMES: dict[str, Callable[[], Exception]] = {
    "Abort": lambda: Abort("no money"),
    "Retry": lambda: Retry("later", after=5),
    "Defer": lambda: Defer("later", delay=5),
}


@job
async def returns(outcome: str):  # type: ignore[no-untyped-def]  # the point: no annotation keeps it from being stored
    return OUTCOMES[outcome]()


@job
async def returns_within(ctx: Context, outcome: str):  # type: ignore[no-untyped-def]
    return ctx.result(OUTCOMES[outcome]())


@job
async def returns_from_a_step(ctx: Context, outcome: str):  # type: ignore[no-untyped-def]
    await ctx.step("pay", OUTCOMES[outcome])


@pytest.mark.parametrize("outcome", OUTCOMES)
@pytest.mark.parametrize("kind", [returns, returns_within, returns_from_a_step])
async def test_an_outcome_that_is_returned_fails_the_job(make_app: MakeApp, kind: Any, outcome: str) -> None:
    error = await failure_of(make_app(kind), kind(outcome))
    assert (error.category, error.code) == ("permanent", "bad_result")
    assert f"raise {outcome}(...)" in error.message


@job
async def returns_an_error():  # type: ignore[no-untyped-def]
    return ValueError("a value like any other")


async def test_other_exceptions_stay_values(make_app: MakeApp) -> None:
    app = make_app(returns_an_error)
    async with app.running():
        told = await app.enqueue(returns_an_error()).result(timeout=5)
    assert "a value like any other" in str(told)
