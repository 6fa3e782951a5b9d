"""R15: around a handler in a process of its own, middlewares run in the worker, with what the worker has."""

from __future__ import annotations

import asyncio

import pytest

from ropewalk import (
    App,
    Backoff,
    CallNext,
    Context,
    Defer,
    JobCancelled,
    JobFailed,
    Middleware,
    Registry,
    Result,
    State,
    job,
)
from ropewalk.domain.failure import ErrorInfo
from ropewalk.domain.jobs.operations import UpdateRequest
from tests.runners import deadly, handlers

seen: list[object] = []


@pytest.fixture(autouse=True)
def _forget() -> None:
    seen.clear()


@job(executor="process", max_attempts=2, backoff=Backoff.constant(0))
def divide(by: int) -> float:
    return 10 / by


@job(executor="process")
def defers_once(ctx: Context) -> int:
    if not ctx.sync.once("deferred"):
        return ctx.attempt
    raise Defer(delay=0)


@job(executor="process")
def sleeps(ctx: Context) -> str:
    ctx.sync.sleep(0.01)
    return "awake"


@job(executor="process")
def delegates(ctx: Context, number: int) -> Result[None, int]:
    return ctx.queue(handlers.add(number, 1))


@job(executor="process")
def spawns(ctx: Context) -> int:
    ctx.sync.spawn(handlers.add(1, 2))
    return 1


@job(executor="process")
def looks_for_a_list(ctx: Context) -> list[int]:
    return ctx.resource(list)


@job(executor="process")
def waits_for_cancel(ctx: Context) -> None:
    ctx.progress(1, "running")
    while not ctx.cancelled:
        pass
    ctx.raise_if_cancelled()


TYPES = Registry(
    *(divide, defers_once, sleeps, delegates, spawns, looks_for_a_list, waits_for_cancel),
    *(handlers.add, deadly.kills_itself, deadly.spins),
)


async def looks(ctx: Context, call_next: CallNext) -> object:
    try:
        value = await call_next()
    except BaseException as error:
        seen.append(error)
        raise
    seen.append(value)
    return value


def an_app(*middlewares: Middleware) -> App:
    return App("memory://", jobs=[TYPES], middlewares=middlewares)


async def test_it_sees_arguments_and_the_value_and_may_replace_it() -> None:
    async def doubled(ctx: Context, call_next: CallNext) -> object:
        seen.append(dict(ctx.arguments))
        value = await call_next()
        assert isinstance(value, float)
        return value * 2

    app = an_app(doubled, looks)
    async with app.running():
        assert await app.enqueue(divide(4)).result(timeout=30) == 5.0
    assert seen == [{"by": 4}, 2.5]


async def test_what_was_raised_over_there_is_a_job_failed_here_and_means_what_it_meant() -> None:
    app = an_app(looks)
    async with app.running():
        info = await app.wait((await app.enqueue(divide(0))).id, timeout=30)
    assert (info.state, info.attempt) == (State.DEAD_LETTER, 2)
    assert info.error is not None and info.error.type == "ZeroDivisionError"
    [first, second] = seen
    assert isinstance(first, JobFailed) and isinstance(second, JobFailed)
    assert str(first) == "ZeroDivisionError: division by zero"
    assert isinstance(first.error, ErrorInfo) and "10 / by" in (first.error.traceback or "")


async def test_it_may_make_a_value_of_a_failure_even_of_a_crash() -> None:
    async def saves(ctx: Context, call_next: CallNext) -> object:
        try:
            return await call_next()
        except JobFailed as failed:
            assert isinstance(failed.error, ErrorInfo)
            seen.append(failed.error.code or failed.error.type)
            return None if ctx.type == "kills_itself" else -1.0

    app = an_app(saves)
    async with app.running():
        assert await app.enqueue(divide(0)).result(timeout=30) == -1.0
        assert await app.enqueue(deadly.kills_itself()).result(timeout=30) is None  # type: ignore[func-returns-value]
    assert seen == ["ZeroDivisionError", "process_died"]


async def test_a_crash_that_it_lets_pass_stays_one() -> None:
    app = an_app(looks)
    async with app.running():
        info = await app.wait((await app.enqueue(deadly.kills_itself(), max_attempts=1)).id, timeout=30)
    assert (info.state, info.crashes) == (State.DEAD_LETTER, 1)


async def test_a_value_put_in_its_place_joins_the_group_with_what_was_spawned() -> None:
    async def replaces(ctx: Context, call_next: CallNext) -> object:
        value = await call_next()
        return 100 if ctx.type == "spawns" else value

    app = an_app(replaces)
    async with app.running():
        handle = await app.enqueue(spawns())
        assert await handle.result(timeout=30) == 100
        assert await handle.group(timeout=30) in (100, 3), "whichever ended last"
        assert (await app.group(handle.id)).completed == 2


async def test_one_that_does_not_go_on_starts_no_process() -> None:
    async def answers(ctx: Context, call_next: CallNext) -> object:
        return 7.0

    app = an_app(answers)
    async with app.running() as worker:
        assert await app.enqueue(divide(0)).result(timeout=30) == 7.0
        assert worker._started.worker_context.isolation._processes == set()  # type: ignore[attr-defined] # of the pool behind the port


async def test_deferring_sleeping_and_queueing_pass_through() -> None:
    app = an_app(looks)
    async with app.running():
        assert await app.enqueue(defers_once()).result(timeout=30) == 1
        assert await app.enqueue(sleeps()).result(timeout=30) == "awake"
        assert await app.enqueue(delegates(1)).group(timeout=30) == 2
    assert [type(each).__name__ for each in seen] == ["Defer", "int", "Suspend", "str", "Result", "int"]


async def test_a_timeout_kills_the_process_and_it_cleans_up() -> None:
    app = an_app(looks)
    async with app.running():
        await app.enqueue(handlers.add(1, 2)).result(timeout=30)  # a warm process
        info = await app.wait((await app.enqueue(deadly.spins(), timeout=0.5, max_attempts=1)).id, timeout=30)
    assert info.error is not None and info.error.category == "timeout"
    assert isinstance(seen[-1], asyncio.CancelledError)


async def test_a_cooperative_cancellation_passes_through() -> None:
    running = asyncio.Event()
    app = App("memory://", jobs=[TYPES], middlewares=[looks], on_event=lambda event: _note(event.kind, running))
    async with app.running():
        handle = await app.enqueue(waits_for_cancel())
        await asyncio.wait_for(running.wait(), 30)
        await app.cancel(handle.id)
        assert (await app.wait(handle.id, timeout=30)).state is State.CANCELLED
    assert isinstance(seen[-1], JobCancelled)


async def test_what_it_provides_stays_in_the_worker() -> None:
    async def provides(ctx: Context, call_next: CallNext) -> object:
        ctx.provide(list, [1])
        return await call_next()

    app = an_app(provides)
    async with app.running():
        with pytest.raises(JobFailed, match="not there in a handler's own process"):
            await app.enqueue(looks_for_a_list(), max_attempts=1).result(timeout=30)


async def test_an_input_that_does_not_fit_reaches_no_middleware() -> None:
    app = an_app(looks)
    async with app:
        handle = await app.enqueue(divide(1), delay=3600)
        await app._app_state.store.update("default", handle.id, UpdateRequest(input=b'{"by":"x"}', run_now=True))
        async with app.worker():
            info = await app.wait(handle.id, timeout=30)
    assert info.error is not None and info.error.code == "bad_input"
    assert seen == []


def _note(kind: str, running: asyncio.Event) -> None:
    if kind == "progress":
        running.set()
