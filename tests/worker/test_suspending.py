"""Jobs that sleep, wait for signals, or are ended by somebody outside."""

from __future__ import annotations

import asyncio
import threading

import pytest

from ropewalk import App, Conflict, Context, InvalidInput, JobFailed, NotFound, State, WaitTimeout, job
from ropewalk.observe.events import Event
from ropewalk.ports.store.workflows import SignalAnswer
from tests.apps import MakeApp

ran: list[object] = []


@pytest.fixture(autouse=True)
def _forget() -> None:
    ran.clear()


async def prepare(name: str) -> str:
    ran.append(name)
    return name.upper()


@job
async def sleeper(ctx: Context) -> str:
    made = await ctx.step("prepare", prepare, "a")
    await ctx.sleep(0.05)
    ran.append("awake")
    return made


def count_words(text: str) -> int:
    ran.append(threading.current_thread())
    return len(text.split())


@job
async def counts(ctx: Context) -> int:
    return await ctx.step("count", count_words, "one two three")


release = threading.Event()


def blocks() -> None:
    ran.append("blocks")
    release.wait(30)


@job(timeout=0.05, max_attempts=1)
async def blocked(ctx: Context) -> None:
    await ctx.step("block", blocks)


@job
async def asks(ctx: Context, patience: float | None = None) -> str:
    try:
        return f"told {await ctx.wait_for('answer', timeout=patience)}"
    except WaitTimeout:
        return "nobody said anything"


@job
def asks_in_a_thread(ctx: Context) -> str:
    ctx.sync.sleep(0.01)
    return f"told {ctx.sync.wait_for('answer')}"


@job
async def never(ctx: Context) -> int:
    await asyncio.Event().wait()
    return 1


@job
async def after(ctx: Context) -> str:
    [parent] = ctx.dependencies
    return f"after {parent.result}"


@job
async def mops_up(ctx: Context) -> None:
    assert ctx.compensates is not None
    ran.append(ctx.compensates.error.message)


ALL = (sleeper, counts, blocked, asks, asks_in_a_thread, never, after, mops_up)


async def test_a_sleep_gives_the_attempt_back_and_replays_steps(make_app: MakeApp) -> None:
    heard: list[Event] = []
    app = make_app(*ALL, on_event=heard.append)
    async with app.running():
        handle = await app.enqueue(sleeper().using(max_attempts=1))
        assert await handle.result(timeout=10) == "A"
        assert ran == ["a", "awake"]
        info = await app.get(handle.id)
        assert (info.attempt, info.state) == (1, State.COMPLETED)
        assert [entry.kind for entry in await app.history(handle.id)] == [
            "queued",
            "started",
            "suspend",
            "started",
            "complete",
        ]
    assert [event.kind for event in heard] == ["queued", "started", "suspended", "started", "succeeded"]


async def test_a_step_may_be_a_plain_function(make_app: MakeApp) -> None:
    app = make_app(*ALL)
    async with app.running():
        assert await app.enqueue(counts()).result(timeout=30) == 3
    [thread] = ran
    assert thread is not threading.current_thread()


async def test_a_step_in_a_thread_keeps_its_slot_until_it_returns(make_app: MakeApp) -> None:
    release.clear()
    app = make_app(*ALL)
    async with app.running(concurrency=1):
        handle = await app.enqueue(blocked())
        try:
            with pytest.raises(JobFailed, match="timeout"):
                await handle.result(timeout=30)
            behind = await app.enqueue(counts())
            assert (await app.get(behind.id)).state is State.SCHEDULED
        finally:
            release.set()
        assert await behind.result(timeout=30) == 3
    assert ran[0] == "blocks"


async def test_a_signal_wakes_who_waits_for_it(make_app: MakeApp) -> None:
    app = make_app(*ALL)
    async with app.running():
        handle = await app.enqueue(asks())
        await _until(app, handle.id, State.PENDING)
        why = await app.why(handle.id)
        assert why.cause == "signal"
        assert "'answer'" in why.explanation
        assert (await app.get(handle.id)).awaits == "answer"
        assert await app.signal(handle.id, "other") is SignalAnswer.KEPT
        began = asyncio.get_running_loop().time()
        assert await app.signal(handle.id, "answer", {"by": "Ada"}) is SignalAnswer.DELIVERED
        assert await handle.result(timeout=10) == "told {'by': 'Ada'}"
        assert asyncio.get_running_loop().time() - began < 0.9, "woken by the hint, not by the poll"
        with pytest.raises(Conflict, match="has ended"):
            await app.signal(handle.id, "answer")
        with pytest.raises(NotFound):
            await app.signal("nope", "answer")
        with pytest.raises(InvalidInput, match="name"):
            await app.signal(handle.id, "")


async def test_an_early_signal_is_kept_and_threads_may_wait_too(make_app: MakeApp) -> None:
    app = make_app(*ALL)
    async with app:
        handle = await app.enqueue(asks_in_a_thread())
        assert await app.signal(handle.id, "answer", 1) is SignalAnswer.KEPT
        async with app.worker():
            assert await handle.result(timeout=10) == "told 1"


async def test_a_wait_is_given_up_in_time(make_app: MakeApp) -> None:
    app = make_app(*ALL)
    async with app.running():
        assert await app.enqueue(asks(patience=0.05)).result(timeout=20) == "nobody said anything"


async def test_completed_from_outside(make_app: MakeApp) -> None:
    """What depends on it goes on; the worker that runs it is told, and nothing it says counts."""
    heard: list[Event] = []
    lost = asyncio.Event()

    def listen(event: Event) -> None:
        heard.append(event)
        if event.kind == "lease_lost":
            lost.set()

    app = make_app(*ALL, on_event=listen)
    async with app.running():
        handle = await app.enqueue(never())
        child = await app.enqueue(after(), depends_on=handle)
        await _until(app, handle.id, State.RUNNING)
        with pytest.raises(InvalidInput):
            await app.complete(handle.id, "not a number")
        info = await app.complete(handle.id, 42)
        assert (info.state, info.result) == (State.COMPLETED, 42)
        assert await handle.result(timeout=10) == 42
        assert await child.result(timeout=10) == "after 42"
        await asyncio.wait_for(lost.wait(), 5)
        with pytest.raises(Conflict, match="is already completed"):
            await app.complete(handle.id, 43)
        with pytest.raises(NotFound):
            await app.complete("nope")
        assert [entry.kind for entry in await app.history(handle.id)] == ["queued", "started", "end"]
    [event] = [each for each in heard if each.kind == "lease_lost"]
    assert event.message == "already_completed"


async def test_failed_from_outside(make_app: MakeApp) -> None:
    app = make_app(*ALL)
    async with app.running():
        waiting = await app.enqueue(asks(), on_failure=mops_up(), delay=60)
        info = await app.fail(waiting.id, "the customer left")
        assert info.state is State.FAILED
        assert info.error is not None
        assert (info.error.code, info.error.message) == ("from_outside", "the customer left")
        with pytest.raises(JobFailed, match="the customer left"):
            await waiting.result(timeout=10)
        await waiting.group(timeout=10)
        assert ran == ["the customer left"]
        other = await app.enqueue(asks(), delay=60)
        assert (await app.fail(other.id, KeyError("x"))).error.type == "KeyError"  # type: ignore[union-attr]
        assert [entry.rev for entry in await app.history(other.id)] == [1, 2]


async def test_an_unregistered_type_is_completed_with_an_untyped_value(
    make_app: MakeApp, new_app: MakeApp, url: str
) -> None:
    app = make_app(*ALL)
    async with app:
        handle = await app.enqueue(asks())
        client = app if url.startswith("memory") else new_app()
        async with client:
            assert (await client.complete(handle.id, "done")).result == "done"


async def _until(app: App, job_id: str, state: State) -> None:
    async with asyncio.timeout(10):
        while (await app.get(job_id)).state is not state:
            await asyncio.sleep(0.01)
