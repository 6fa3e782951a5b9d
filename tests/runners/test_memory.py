"""R20: a handler over its memory_mb fails by itself: no crash, nobody else disturbed."""

from __future__ import annotations

import os
import resource
import socket
import sys
from collections.abc import Awaitable

import pytest

from ropewalk import App, DefinitionError, JobFailed, State, Unsupported, job
from ropewalk.domain.failure import Category
from ropewalk.domain.jobs.outcome import Aborted, Completed, Crashed, Errored, Outcome
from ropewalk.runners import memory
from ropewalk.runners.child import Pipe
from ropewalk.runners.processes import ProcessPool
from tests.runners import handlers, hungry
from tests.runners.conftest import MakePool
from tests.runners.recording import Recording


async def test_over_it_the_attempt_fails_and_says_why(pool: ProcessPool) -> None:
    outcome = await pool.run(Recording(hungry.takes, megabytes=300))
    assert isinstance(outcome, Errored)
    error = outcome.error
    assert (error.category, error.code, error.type) == (Category.SYSTEM, "memory", "MemoryError")
    assert error.message == "the handler's process went over memory_mb=128"
    assert error.traceback is not None and "bytearray(megabytes * MEBIBYTE)" in error.traceback


async def test_under_it_nothing_is_different(pool: ProcessPool) -> None:
    assert await pool.run(Recording(hungry.takes, megabytes=50)) == Completed(b"50")


async def test_small_pieces_count_too(pool: ProcessPool) -> None:
    outcome = await pool.run(Recording(hungry.takes_bit_by_bit))
    assert isinstance(outcome, Errored) and outcome.error.code == "memory"


async def test_it_is_told_whoever_meets_it(pool: ProcessPool) -> None:
    outcome = await pool.run(Recording(hungry.asks_with_nothing_left))
    assert isinstance(outcome, Errored) and outcome.error.code == "memory"


async def test_a_listener_without_memory_is_no_crash(pool: ProcessPool) -> None:
    silent = await pool.run(Recording(hungry.leaves_with, code=memory.EXIT_CODE))
    assert isinstance(silent, Errored)
    assert (silent.error.code, silent.error.type) == ("memory", "MemoryError")
    assert isinstance(await pool.run(Recording(hungry.leaves_with, code=1)), Crashed)


def test_a_listener_that_meets_it_ends_the_process_saying_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def meets(*_: object) -> None:
        raise MemoryError

    def leaves(code: int) -> None:
        raise SystemExit(code)

    monkeypatch.setattr(Pipe, "_read", meets)
    monkeypatch.setattr(os, "_exit", leaves)
    ours, theirs = socket.socketpair()
    with ours, theirs, pytest.raises(SystemExit) as left:
        Pipe(theirs).listen()
    assert left.value.code == memory.EXIT_CODE


def test_the_bound_is_lifted_before_anything_is_said() -> None:
    before = resource.getrlimit(resource.RLIMIT_DATA)
    plenty_mb = 1024 * 1024
    with pytest.raises(ZeroDivisionError), memory.bounded_to(plenty_mb):
        assert resource.getrlimit(resource.RLIMIT_DATA) == (plenty_mb * memory.MEBIBYTE, before[1])
        _ = 1 / 0
    assert resource.getrlimit(resource.RLIMIT_DATA) == before


async def test_the_type_may_call_it_permanent(pool: ProcessPool) -> None:
    outcome = await pool.run(Recording(hungry.gives_up))
    assert isinstance(outcome, Aborted)
    assert (outcome.error.category, outcome.error.code) == (Category.PERMANENT, "memory")


async def test_the_process_is_not_used_again_and_others_are_not_bounded(make_pool: MakePool) -> None:
    pool = make_pool(size=1)
    first = await _pid(pool.run(Recording(hungry.pid)))
    assert await _pid(pool.run(Recording(hungry.pid))) == first, "of the same bound: the same process"
    await pool.run(Recording(hungry.takes, megabytes=300))
    second = await _pid(pool.run(Recording(hungry.pid)))
    assert second != first
    assert await pool.run(Recording(hungry.takes_unbounded, megabytes=300)) == Completed(b"300")


async def test_a_process_is_for_one_bound_and_still_there_are_never_too_many(make_pool: MakePool) -> None:
    """What an unbounded handler left in its process does not count against the next one's bound."""
    pool = make_pool(size=2)
    kinds = (hungry.pid, hungry.pid_of_the_narrow, handlers.pid)
    pids = [await _pid(pool.run(Recording(kind))) for kind in (*kinds, *kinds)]
    assert len(set(pids)) == 6, "each made room for the one after the next"
    assert len(pool._processes) == 2
    for each in pids[:4]:
        with pytest.raises(ProcessLookupError):
            os.kill(each, 0)


async def test_a_memory_error_of_its_own_is_an_error_like_any_other(pool: ProcessPool) -> None:
    outcome = await pool.run(Recording(hungry.pretends))
    assert isinstance(outcome, Errored)
    assert (outcome.error.category, outcome.error.code) == (Category.TEMPORARY, None)


async def test_in_a_worker_it_costs_attempts_and_no_crash() -> None:
    app = App("memory://", jobs=[hungry.takes, handlers.add])
    async with app.running(concurrency=2):
        greedy = await app.enqueue(hungry.takes(300))
        assert await app.enqueue(handlers.add(1, 2)).result(timeout=30) == 3
        info = await app.wait(greedy.id, timeout=30)
        assert (info.state, info.attempt, info.crashes) == (State.DEAD_LETTER, 2, 0)
        with pytest.raises(JobFailed, match="went over memory_mb=128"):
            await greedy.result()
        assert await app.enqueue(hungry.takes(10)).result(timeout=30) == 10


async def test_where_no_process_is_held_to_it_the_worker_does_not_start(monkeypatch: pytest.MonkeyPatch) -> None:
    app = App("memory://", jobs=[hungry.takes, handlers.add])
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(Unsupported, match=r"memory_mb=128 of takes: darwin holds no process to such a bound"):
        async with app.running():
            pass
    async with app, app.worker(types=["add"]):
        pass


def test_it_is_for_processes_only() -> None:
    with pytest.raises(DefinitionError, match="memory_mb bounds a process: it needs executor='process'"):
        job(memory_mb=64)(_plain)  # type: ignore[call-overload] # that is the point
    with pytest.raises(DefinitionError, match="memory_mb=0 must be at least 1"):
        job(executor="process", memory_mb=0)(_plain)


def _plain() -> None:
    pass


async def _pid(running: Awaitable[Outcome]) -> int:
    ended = await running
    assert isinstance(ended, Completed)
    return int(ended.result or b"")
