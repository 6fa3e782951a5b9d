"""Processes are started when needed, reused, replaced when they are gone, and ended with the pool."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Awaitable

import pytest

from ropewalk.domain.jobs.outcome import Completed, Outcome, Released
from ropewalk.runners.processes import NOT_STARTED, ProcessPool
from tests.runners import deadly, handlers
from tests.runners.conftest import MakePool, Troubles, assert_no_children, gone, open_descriptors
from tests.runners.recording import CANCELLED, Recording


async def number(outcome: Awaitable[Outcome]) -> int:
    ended = await outcome
    assert isinstance(ended, Completed)
    return int(ended.result or b"")


async def test_nothing_is_started_before_it_is_needed(make_pool: MakePool) -> None:
    make_pool()
    assert_no_children()


async def test_a_process_serves_one_attempt_after_another(pool: ProcessPool) -> None:
    first = await number(pool.run(Recording(handlers.pid)))
    assert first != os.getpid()
    assert await number(pool.run(Recording(handlers.pid))) == first


async def test_a_handlers_error_does_not_cost_its_process(pool: ProcessPool) -> None:
    first = await number(pool.run(Recording(handlers.pid)))
    await pool.run(Recording(handlers.breaks))
    await pool.run(Recording(handlers.exits))
    assert await number(pool.run(Recording(handlers.pid))) == first


async def test_attempts_run_side_by_side(make_pool: MakePool) -> None:
    pool = make_pool(size=3)
    attempts = [Recording(handlers.waits_for_cancel) for _ in range(3)]
    async with asyncio.timeout(20):
        tasks = [asyncio.ensure_future(pool.run(each)) for each in attempts]
        for each in attempts:
            await each.heard.wait()  # all three run now
        for each in attempts:
            each.cancel = CANCELLED
        assert all(isinstance(each, Completed) for each in await asyncio.gather(*tasks))


async def test_never_more_processes_than_its_size(make_pool: MakePool) -> None:
    pool = make_pool(size=2)
    pids = await asyncio.gather(*(number(pool.run(Recording(handlers.pid))) for _ in range(6)))
    assert len(set(pids)) <= 2


async def test_a_process_that_died_idle_is_replaced(make_pool: MakePool) -> None:
    """And what it left behind is killed."""
    pool = make_pool(size=1)
    outcome = await pool.run(Recording(deadly.dies_later))
    assert isinstance(outcome, Completed)
    for pid in deadly.dies_later.decode_result(outcome.result):
        await gone(pid)
    assert await pool.run(Recording(handlers.add, a=1, b=2)) == Completed(b"3")


async def test_a_process_that_dies_before_the_handler_begins_costs_nothing(make_pool: MakePool) -> None:
    """As long as it did not say so, nothing of the attempt has happened: another process takes it."""
    pool = make_pool(size=1)
    pid = await number(pool.run(Recording(handlers.pid)))
    os.kill(pid, signal.SIGSTOP)  # it will not take the next attempt
    task = asyncio.ensure_future(pool.run(Recording(handlers.add, a=1, b=2)))
    await asyncio.sleep(0)
    os.kill(pid, signal.SIGKILL)
    async with asyncio.timeout(10):
        assert await task == Completed(b"3")


async def test_a_process_that_does_not_come_up(
    pool: ProcessPool, troubles: Troubles, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", [])  # where no ropewalk is found
    async with asyncio.timeout(10):
        assert await pool.run(Recording(handlers.add, a=1, b=2)) == NOT_STARTED
    ((error, phase),) = troubles
    assert (str(error), phase) == ("it exited with code 1 at once", "start of a handler's process")


async def test_an_interpreter_that_cannot_be_started(
    pool: ProcessPool, troubles: Troubles, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    assert await pool.run(Recording(handlers.add, a=1, b=2)) == NOT_STARTED
    ((error, _),) = troubles
    assert isinstance(error, FileNotFoundError)


async def test_closing_gives_running_attempts_back(pool: ProcessPool) -> None:
    attempt = Recording(deadly.spins)
    async with asyncio.timeout(20):
        task = asyncio.ensure_future(pool.run(attempt))
        await attempt.heard.wait()
        await pool.close()
        assert_no_children()
        assert await task == Released()
        assert await pool.run(Recording(handlers.add, a=1, b=2)) == Released()
        await pool.close()


async def test_closing_while_a_process_starts(pool: ProcessPool) -> None:
    task = asyncio.ensure_future(pool.run(Recording(handlers.add, a=1, b=2)))
    await asyncio.sleep(0)
    await pool.close()
    assert_no_children()
    assert await task == Released()


async def test_cancelled_while_a_process_starts(make_pool: MakePool) -> None:
    """Wherever in the start the cancellation strikes, nothing stays behind (the fixture looks)."""
    pool = make_pool(size=8)
    for turns in range(12):
        task = asyncio.ensure_future(pool.run(Recording(handlers.add, a=1, b=2)))
        for _ in range(turns):
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


async def test_nothing_leaks_attempt_by_attempt(make_pool: MakePool) -> None:
    pool = make_pool(size=1)
    await pool.run(Recording(handlers.asks))
    before = open_descriptors()
    for _ in range(3):
        await pool.run(Recording(deadly.leaves, code=1))
        await pool.run(Recording(handlers.asks))
    assert open_descriptors() == before
