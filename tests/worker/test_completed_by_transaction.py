"""How a handler with `ctx.transaction()` ends: what it does or returns beside the transaction is never lost unheard."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest

from ropewalk import (
    App,
    Context,
    Filter,
    Job,
    JobFailed,
    JobInfo,
    LeaseLost,
    Result,
    State,
    TransactionNotCompleted,
    job,
)
from tests.apps import MakeApp, on_shared_stores

pytestmark = on_shared_stores

WRITE = "INSERT INTO mine VALUES (1)"
raised: list[BaseException] = []
heard: list[tuple[BaseException, str]] = []


@pytest.fixture(autouse=True)
def _forget() -> None:
    raised.clear()
    heard.clear()


@job
async def mail() -> None: ...


@job
async def prepare(ctx: Context) -> None:
    async with ctx.transaction() as tx:
        await tx.execute("CREATE TABLE mine (n INTEGER)")
        tx.complete(None)


@job
async def drop(ctx: Context) -> None:
    async with ctx.transaction() as tx:
        await tx.execute("DROP TABLE mine")
        tx.complete(None)


@job
async def count(ctx: Context) -> int:
    async with ctx.transaction() as tx:
        [(number,)] = await tx.execute("SELECT count(*) FROM mine")
        written: int = number
        return tx.complete(written)


# ── a block without tx.complete ────────────────────────────────────────────────────────────────────────────────


@job(max_attempts=3)
async def writes_and_returns(ctx: Context) -> Result[None, None]:
    try:
        async with ctx.transaction() as tx:
            await tx.execute(WRITE)
    except TransactionNotCompleted as error:
        raised.append(error)
        raise
    return ctx.queue(mail())


@job(max_attempts=3)
def writes_in_a_thread(ctx: Context) -> str:
    with ctx.sync.transaction() as tx:
        tx.execute(WRITE)
    return "receipt"


@job(max_attempts=3)
async def returns_within(ctx: Context) -> int:
    async with ctx.transaction() as tx:
        await tx.execute(WRITE)
        return 7


@pytest.mark.parametrize("kind", [writes_and_returns, writes_in_a_thread, returns_within])
async def test_a_block_without_completion_is_rolled_back_and_fails_the_job(app: App, kind: Any) -> None:
    info = await ended(app, kind())
    assert info.state is State.FAILED
    assert info.error is not None
    assert (info.error.type, info.error.code) == ("TransactionNotCompleted", "not_completed")
    assert "tx.complete(value)" in info.error.message
    assert await app.enqueue(count()).result(timeout=30) == 0
    assert await app.count(Filter(types="mail")) == 0
    assert len(raised) == (kind is writes_and_returns)


@job(max_attempts=1)
async def tries_again(ctx: Context) -> int | None:
    try:
        async with ctx.transaction() as tx:
            await tx.execute(WRITE)
    except TransactionNotCompleted:
        async with ctx.transaction() as tx:
            await tx.execute(WRITE)
            return tx.complete(7)
    return None


async def test_the_error_can_be_handled(app: App) -> None:
    assert await app.enqueue(tries_again()).result(timeout=30) == 7
    assert await app.enqueue(count()).result(timeout=30) == 1
    assert heard == []


@job(max_attempts=1)
def without_async(ctx: Context) -> None:
    with ctx.transaction():  # type: ignore[attr-defined]
        pass


async def test_a_plain_with_names_the_blocking_transaction(app: App) -> None:
    info = await ended(app, without_async())
    assert info.error is not None
    assert "ctx.sync.transaction()" in info.error.message


@job(max_attempts=1)
async def completes_with_what_does_not_fit(ctx: Context) -> int:
    async with ctx.transaction() as tx:
        await tx.execute(WRITE)
        tx.complete("text")
    return 1


async def test_a_completion_that_does_not_fit_has_the_code_of_a_result(app: App) -> None:
    info = await ended(app, completes_with_what_does_not_fit())
    assert info.error is not None
    assert (info.state, info.error.code) == (State.FAILED, "bad_result")
    assert await app.enqueue(count()).result(timeout=30) == 0


# ── after a block that completed the job ────────────────────────────────────────────────────────────────────────


async def in_transaction(ctx: Context, value: object = None) -> None:
    async with ctx.transaction() as tx:
        await tx.execute(WRITE)
        tx.complete(value)


@job
async def returns_the_completion(ctx: Context) -> list[int]:
    async with ctx.transaction() as tx:
        tx.complete(made := [1, 2])
    return made


@job
async def returns_an_equal_value(ctx: Context) -> list[int]:
    await in_transaction(ctx, [1, 2])
    return [1, 2]


@job
async def returns_nothing(ctx: Context) -> Any:
    await in_transaction(ctx, [1, 2])


@pytest.mark.parametrize("kind", [returns_the_completion, returns_an_equal_value, returns_nothing])
async def test_the_completion_may_be_returned(app: App, kind: Any) -> None:
    assert await app.enqueue(kind()).result(timeout=30) == [1, 2]
    assert heard == []


@job(max_attempts=3)
async def returns_another_value(ctx: Context) -> int:
    await in_transaction(ctx, 7)
    return 8


@job(max_attempts=3)
async def returns_a_result(ctx: Context) -> Any:
    await in_transaction(ctx)
    return ctx.queue(mail())


@job(max_attempts=3)
async def raises(ctx: Context) -> None:
    await in_transaction(ctx)
    raise ConnectionError("the mail server is away")


@pytest.mark.parametrize(
    ("kind", "told"),
    [
        (returns_another_value, "returned another value, of type int"),
        (returns_a_result, "returned another value, of type Result"),
        (raises, "raised ConnectionError"),
    ],
)
async def test_what_follows_the_completion_is_heard_of(app: App, kind: Any, told: str) -> None:
    info = await ended(app, kind())
    assert (info.state, info.attempt) == (State.COMPLETED, 1)
    [(error, phase)] = heard
    assert told in str(error)
    assert "return what tx.complete(...) returned" in str(error)
    assert phase == f"after the transaction of {kind.name}"
    assert isinstance(error.__cause__, ConnectionError) is (kind is raises)
    assert await app.count(Filter(types="mail")) == 0


CALLS: dict[str, Any] = {
    "spawn": lambda ctx: ctx.spawn(mail()),
    "step": lambda ctx: ctx.step("a", raised.clear),
    "sleep": lambda ctx: ctx.sleep(60),
    "wait_for": lambda ctx: ctx.wait_for("a"),
    "checkpoint": lambda ctx: ctx.checkpoint(1),
    "transaction": in_transaction,
}


@job(max_attempts=3)
async def calls(ctx: Context, call: str) -> None:
    await in_transaction(ctx)
    try:
        await CALLS[call](ctx)
    except Exception as error:
        raised.append(error)
        raise


@pytest.mark.parametrize("call", CALLS)
async def test_a_call_of_the_context_after_the_completion_raises(app: App, call: str) -> None:
    info = await ended(app, calls(call))
    assert (info.state, info.attempt) == (State.COMPLETED, 1)
    [lost] = raised
    assert isinstance(lost, LeaseLost)
    assert lost.reason == "already_completed"
    assert "was completed by its ctx.transaction()" in str(lost)
    assert "raised LeaseLost" in str(heard[0][0])
    assert await app.enqueue(count()).result(timeout=30) == 1


@job(max_attempts=3)
def steps_in_a_thread(ctx: Context) -> None:
    with ctx.sync.transaction() as tx:
        tx.complete(None)
    ctx.sync.step("a", raised.append, ValueError())


async def test_a_blocking_step_after_the_completion_raises(app: App) -> None:
    assert (await ended(app, steps_in_a_thread())).state is State.COMPLETED
    assert raised == []
    assert "raised LeaseLost" in str(heard[0][0])


JOBS = (
    mail,
    prepare,
    drop,
    count,
    writes_and_returns,
    writes_in_a_thread,
    returns_within,
    tries_again,
    without_async,
    completes_with_what_does_not_fit,
    returns_the_completion,
    returns_an_equal_value,
    returns_nothing,
    returns_another_value,
    returns_a_result,
    raises,
    calls,
    steps_in_a_thread,
)


@pytest.fixture
async def app(make_app: MakeApp) -> AsyncIterator[App]:
    app = make_app(*JOBS, on_error=lambda error, phase: heard.append((error, phase)))
    async with app.running():
        await app.enqueue(prepare()).result(timeout=30)
        yield app
        await app.enqueue(drop()).result(timeout=30)


async def ended(app: App, new: Job[Any, Any]) -> JobInfo:
    """The job, once its handler has ended, too."""
    handle = await app.enqueue(new)
    with contextlib.suppress(JobFailed):
        await handle.result(timeout=30)
    await app.enqueue(count()).result(timeout=30)  # the handler goes on for a moment after its commit
    return await app.get(handle.id)
