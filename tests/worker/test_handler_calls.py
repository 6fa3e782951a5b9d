"""What a handler asks of the store through its context while the store is away."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from ropewalk import Context, State, StoreUnavailable, job
from ropewalk.definitions.context.attempt_port import Cancellation
from ropewalk.domain.jobs.lease import LossReason
from tests.apps import MakeApp
from tests.worker.faults import Faults

ran: list[str] = []
began = threading.Event()
seen: list[str] = []


@pytest.fixture(autouse=True)
def _forget() -> None:
    ran.clear()
    seen.clear()
    began.clear()


async def pay() -> str:
    ran.append("pay")
    return "paid"


@job
async def child() -> None: ...


@job(max_attempts=1)
async def ask(ctx: Context, verb: str) -> str:
    ran.append("ask")
    return str(await CALLS[verb](ctx))


async def _spawn(ctx: Context) -> str:
    await ctx.spawn(child())
    return "spawned"


async def _states(ctx: Context) -> str:
    return (await ctx.states([ctx.id]))[ctx.id].value


CALLS: dict[str, Callable[[Context], Awaitable[object]]] = {
    "note": lambda ctx: ctx.checkpoint(1),
    "record_step": lambda ctx: ctx.step("pay", pay),
    "take_signal": lambda ctx: ctx.wait_for("go"),
    "submit": _spawn,
    "get": _states,
    "once": lambda ctx: ctx.once("k"),
}
ANSWERS = {
    "note": "None",
    "record_step": "paid",
    "take_signal": "1",
    "submit": "spawned",
    "get": "running",
    "once": "True",
}


@job(max_attempts=1)
def ask_in_a_thread(ctx: Context) -> bool:
    return ctx.sync.once("k")


@job(max_attempts=1, timeout=60)
def wait_in_a_thread(ctx: Context) -> None:
    began.set()
    try:
        ctx.sync.checkpoint(1)
    except Exception as error:
        seen.append(type(error).__name__)
        raise


@job(max_attempts=1, executor="process")
def ask_in_a_process(ctx: Context) -> bool:
    return ctx.sync.once("k")


@pytest.mark.parametrize("how", ["refuse", "lose_reply"])
@pytest.mark.parametrize("verb", list(CALLS))
async def test_a_call_waits_for_the_store(make_app: MakeApp, verb: str, how: str) -> None:
    """live-4: an outage, or a lost answer, costs no attempt, and what the handler asks for happens once."""
    async with make_app(ask, child) as app:
        handle = await app.enqueue(ask(verb))
        await app.signal(handle.id, "go", 1)
        getattr(Faults(app), how)(verb, 2)
        async with app.worker():
            assert await handle.result(timeout=20) == ANSWERS[verb]
        assert ran.count("ask") == 1
        assert ran.count("pay") <= 1
        if verb == "submit":
            assert len((await app.search()).jobs) == 2


@pytest.mark.parametrize("job_type", [ask_in_a_thread, ask_in_a_process])
async def test_also_from_a_thread_and_a_process(make_app: MakeApp, job_type: Any) -> None:
    """live-4"""
    async with make_app(job_type) as app:
        Faults(app).lose_reply("once", 3)
        async with app.worker():
            assert await (await app.enqueue(job_type())).result(timeout=20) is True


async def test_a_handler_in_a_thread_is_told_at_once_that_it_is_cancelled(make_app: MakeApp) -> None:
    """live-4: waiting for the store keeps no handler from hearing that it must end."""
    async with make_app(wait_in_a_thread) as app:
        Faults(app).refuse("note", 1_000_000)
        async with app.worker():
            handle = await app.enqueue(wait_in_a_thread())
            await asyncio.to_thread(began.wait)
            await handle.cancel()
            status = await app.wait(handle.id, timeout=20)
            assert status.state is State.CANCELLED
            assert seen == ["JobCancelled"]


async def test_a_handler_in_a_thread_is_told_at_once_that_its_lease_is_lost(make_app: MakeApp) -> None:
    """live-4, safe-5: only the store says so, with a renewal; then nobody waits for it any longer."""
    async with make_app(wait_in_a_thread) as app:
        Faults(app).refuse("note", 1_000_000)
        async with app.worker(lease=1) as worker:
            await app.enqueue(wait_in_a_thread())
            await asyncio.to_thread(began.wait)
            [held] = worker._started.worker_context.attempts.values()
            held.stop(Cancellation(LossReason.TAKEN_BY_ANOTHER_WORKER, None))
            async with asyncio.timeout(10):
                while not seen:
                    await asyncio.sleep(0.01)
            assert seen == ["LeaseLost"]


@job(max_attempts=1, timeout=0.3)
def times_out(ctx: Context) -> None:
    try:
        ctx.sync.checkpoint(1)
    except Exception as error:
        seen.append(type(error).__name__)
        raise


async def test_a_timeout_ends_the_wait(make_app: MakeApp) -> None:
    """live-4: the attempt's own timeout bounds how long its handler waits for the store."""
    async with make_app(times_out) as app:
        Faults(app).refuse("note", 1_000_000)
        async with app.worker():
            handle = await app.enqueue(times_out())
            status = await app.wait(handle.id, timeout=20)
        assert status.error is not None and status.error.code == "timeout"
        assert seen == ["JobCancelled"]


@job(max_attempts=1)
async def raises_its_own(ctx: Context) -> None:
    raise StoreUnavailable("of another store")


async def test_an_error_of_the_handlers_own_is_charged(make_app: MakeApp) -> None:
    """Only what a call of the context raised says something about the store."""
    async with make_app(raises_its_own) as app, app.worker():
        handle = await app.enqueue(raises_its_own())
        assert (await app.wait(handle.id, timeout=20)).state is State.DEAD_LETTER
