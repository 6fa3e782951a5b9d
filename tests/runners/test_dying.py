"""Processes that are killed, die, or take others along: noticed, named, replaced, and nothing is left behind."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ropewalk import AppDefaults, Bounds, JobType
from ropewalk.domain.failure import Category
from ropewalk.domain.jobs.outcome import Completed, Crashed, Outcome
from ropewalk.runners.frames import frame_bytes_max
from ropewalk.runners.handler_process import HandlerProcess
from ropewalk.runners.messages import Progress, Run
from ropewalk.runners.processes import ProcessPool
from ropewalk.runners.source import source_of
from tests.runners import deadly, handlers
from tests.runners.conftest import MakePool, gone, running
from tests.runners.recording import CANCELLED, Recording

ROOT = Path(__file__).parents[2]


async def killed_by_cancelling(pool: ProcessPool, attempt: Recording) -> int:
    """Cancel the run once the handler told a process id; that id. Two seconds are plenty for the kill."""
    async with asyncio.timeout(20):
        task = asyncio.ensure_future(pool.run(attempt))
        await attempt.heard.wait()
    async with asyncio.timeout(2):
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    return int(attempt.told[0][1] or "")


def crash(outcome: Outcome) -> str:
    assert isinstance(outcome, Crashed), outcome
    assert (outcome.error.category, outcome.error.code) == (Category.WORKER_LOST, "process_died")
    return outcome.error.message


async def test_a_runaway_loop_is_killed(pool: ProcessPool) -> None:
    assert not running(await killed_by_cancelling(pool, Recording(deadly.spins)))


async def test_a_kill_costs_only_that_process(make_pool: MakePool) -> None:
    pool = make_pool(size=2)
    innocent = Recording(handlers.waits_for_cancel)
    other = asyncio.ensure_future(pool.run(innocent))
    await killed_by_cancelling(pool, Recording(deadly.spins))
    innocent.cancel = CANCELLED
    async with asyncio.timeout(10):
        assert isinstance(await other, Completed)


async def test_a_kill_takes_what_the_handler_started(pool: ProcessPool) -> None:
    await gone(await killed_by_cancelling(pool, Recording(deadly.leaves_orphan, then_die=False)))


NAMELESS = signal.SIGRTMIN + 1


@pytest.mark.parametrize(
    ("handler", "arguments", "how"),
    [
        (deadly.leaves, {"code": 3}, "exited with code 3"),
        (deadly.leaves, {"code": 0}, "exited with code 0"),
        (deadly.dies_of, {"number": signal.SIGKILL}, "was killed by SIGKILL (out of memory?)"),
        (deadly.dies_of, {"number": signal.SIGSEGV}, "was killed by SIGSEGV"),
        (deadly.dies_of, {"number": NAMELESS}, f"was killed by signal {NAMELESS}"),
        (deadly.kills_its_group, {}, "was killed by SIGKILL (out of memory?)"),
        (deadly.closes_everything, {}, "exited with code 1"),
    ],
    ids=["exit", "quiet exit", "kill", "segfault", "nameless signal", "group kill", "closed pipe"],
)
async def test_a_death_is_a_crash_that_says_how(
    pool: ProcessPool, handler: JobType[..., Any, Any], arguments: dict[str, object], how: str
) -> None:
    async with asyncio.timeout(20):
        assert crash(await pool.run(Recording(handler, **arguments))) == f"the handler's process {how}"
        assert await pool.run(Recording(handlers.add, a=1, b=2)) == Completed(b"3")


async def test_a_death_takes_what_the_handler_started(pool: ProcessPool) -> None:
    attempt = Recording(deadly.leaves_orphan, then_die=True)
    async with asyncio.timeout(20):
        assert crash(await pool.run(attempt)) == "the handler's process exited with code 7"
    await gone(int(attempt.told[0][1] or ""))


async def test_a_death_is_noticed_while_a_stranger_holds_the_pipe(pool: ProcessPool) -> None:
    attempt = Recording(deadly.leaves_stranger)
    async with asyncio.timeout(20):  # the stranger lives for longer
        assert crash(await pool.run(attempt)) == "the handler's process exited with code 7"
    os.kill(int(attempt.told[0][1] or ""), signal.SIGKILL)


async def test_nonsense_on_the_pipe_is_a_crash(pool: ProcessPool) -> None:
    async with asyncio.timeout(20):
        message = crash(await pool.run(Recording(deadly.talks_nonsense)))
    assert message.startswith("the handler's process was killed because it sent what is no message")


async def test_signals_are_for_the_worker(pool: ProcessPool) -> None:
    assert await pool.run(Recording(deadly.signalled)) == Completed(b'"alive"')


async def test_programs_a_handler_forks_hear_signals(pool: ProcessPool) -> None:
    outcome = await pool.run(Recording(deadly.terminates_forked))
    assert outcome == Completed(str(-signal.SIGTERM).encode())


async def test_what_a_handler_forks_does_not_speak_for_it(pool: ProcessPool) -> None:
    attempt = Recording(deadly.forked_speaks)
    assert await pool.run(attempt) == Completed(b"1")
    assert attempt.told == []


async def test_a_session_of_its_own(pool: ProcessPool) -> None:
    outcome = await pool.run(Recording(handlers.session))
    assert isinstance(outcome, Completed)
    pid, group, session = handlers.session.decode_result(outcome.result)
    assert pid == group == session != os.getpid()


async def test_programs_a_handler_starts_do_not_get_the_pipe(pool: ProcessPool) -> None:
    assert await pool.run(Recording(handlers.inheritable_descriptors)) == Completed(b"[]")


async def test_a_process_ends_with_its_pipe() -> None:
    """Even in the middle of a handler, and though the worker lives."""
    attempt = Recording(deadly.waits_long)
    run = Run(
        job=attempt.job,
        source=source_of(attempt.job_type),
        bounds=Bounds(),
        defaults=AppDefaults(),
        idempotency_key=attempt.idempotency_key,
        now=attempt.now(),
    )
    process = await HandlerProcess.start(frame_bytes_max(run.bounds))
    process.send(run)
    async with asyncio.timeout(20):
        while not isinstance(await process.receive(), Progress):
            pass
    await process.close_pipe()
    await gone(process.lifetime.pid)
    await process.kill()


HANDLERS = ["spins", "waits_long"]
if sys.platform == "linux":  # elsewhere nothing ends a process that lets no other thread run
    HANDLERS.append("holds_the_gil")


@pytest.mark.parametrize("handler", HANDLERS)
async def test_no_process_outlives_its_worker(handler: str) -> None:
    command = [sys.executable, "-m", "tests.runners.doomed_worker", handler]
    worker = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    with worker:
        assert worker.stdout is not None
        pid = int(await asyncio.to_thread(worker.stdout.readline))
        assert running(pid)
        worker.kill()
    await gone(pid)
