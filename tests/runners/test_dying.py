"""Processes that are killed, die, or take others along: noticed, named, replaced, and nothing is left behind."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from ropewalk.domain.failure import Category
from ropewalk.domain.outcome import Completed, Crashed, Outcome
from ropewalk.runners.processes import ProcessPool
from tests.runners import handlers
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
    assert not running(await killed_by_cancelling(pool, Recording(handlers.spins)))


async def test_a_kill_costs_only_that_process(make_pool: MakePool) -> None:
    pool = make_pool(size=2)
    innocent = Recording(handlers.waits_for_cancel)
    other = asyncio.ensure_future(pool.run(innocent))
    await killed_by_cancelling(pool, Recording(handlers.spins))
    innocent.cancel = CANCELLED
    async with asyncio.timeout(10):
        assert isinstance(await other, Completed)


async def test_a_kill_takes_what_the_handler_started(pool: ProcessPool) -> None:
    await gone(await killed_by_cancelling(pool, Recording(handlers.leaves_orphan, then_die=False)))


@pytest.mark.parametrize(
    ("attempt", "message"),
    [
        (lambda: Recording(handlers.leaves, code=3), "the handler's process exited with code 3"),
        (lambda: Recording(handlers.leaves, code=0), "the handler's process exited with code 0"),
        (
            lambda: Recording(handlers.kills_itself),
            "the handler's process was killed by SIGKILL (out of memory?)",
        ),
        (
            lambda: Recording(handlers.kills_its_group),
            "the handler's process was killed by SIGKILL (out of memory?)",
        ),
        (lambda: Recording(handlers.segfaults), "the handler's process was killed by SIGSEGV"),
        (lambda: Recording(handlers.closes_everything), "the handler's process exited with code 1"),
    ],
    ids=["exit", "quiet exit", "kill", "group kill", "segfault", "closed pipe"],
)
async def test_a_death_is_a_crash_that_says_how(pool: ProcessPool, attempt: object, message: str) -> None:
    async with asyncio.timeout(20):
        assert crash(await pool.run(attempt())) == message  # type: ignore[operator]
        assert await pool.run(Recording(handlers.add, a=1, b=2)) == Completed(b"3")


async def test_a_death_takes_what_the_handler_started(pool: ProcessPool) -> None:
    attempt = Recording(handlers.leaves_orphan, then_die=True)
    async with asyncio.timeout(20):
        assert crash(await pool.run(attempt)) == "the handler's process exited with code 7"
    await gone(int(attempt.told[0][1] or ""))


async def test_a_death_is_noticed_while_a_stranger_holds_the_pipe(pool: ProcessPool) -> None:
    async with asyncio.timeout(4):  # the stranger lives for longer
        assert crash(await pool.run(Recording(handlers.leaves_daemon))) == "the handler's process exited with code 7"


async def test_nonsense_on_the_pipe_is_a_crash(pool: ProcessPool) -> None:
    async with asyncio.timeout(20):
        message = crash(await pool.run(Recording(handlers.talks_nonsense)))
    assert message.startswith("the handler's process was killed because it sent what is no message")


async def test_signals_are_for_the_worker(pool: ProcessPool) -> None:
    assert await pool.run(Recording(handlers.signalled)) == Completed(b'"alive"')


async def test_programs_a_handler_forks_hear_signals(pool: ProcessPool) -> None:
    outcome = await pool.run(Recording(handlers.terminates_forked))
    assert outcome == Completed(str(-signal.SIGTERM).encode())


async def test_a_session_of_its_own(pool: ProcessPool) -> None:
    outcome = await pool.run(Recording(handlers.session))
    assert isinstance(outcome, Completed)
    pid, group, session = handlers.session.decode_result(outcome.result)
    assert pid == group == session != os.getpid()


WORKER = """
    import asyncio, sys
    from ropewalk import Limits
    from ropewalk.engine.runtime import SystemRuntime
    from ropewalk.runners.processes import ProcessPool
    from tests.runners import handlers
    from tests.runners.recording import Recording

    class Telling(Recording):
        def progress(self, percent, message):
            print(message, flush=True)

    async def main():
        pool = ProcessPool(
            size=1, limits=Limits(), strict_return=True, runtime=SystemRuntime(), report=lambda *_: None
        )
        await pool.run(Telling(getattr(handlers, sys.argv[1])))

    asyncio.run(main())
"""


@pytest.mark.parametrize("handler", ["spins", "holds_the_gil", "waits_long"])
async def test_no_process_outlives_its_worker(handler: str) -> None:
    worker = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(WORKER), handler], stdout=subprocess.PIPE, text=True, cwd=ROOT
    )
    with worker:
        assert worker.stdout is not None
        pid = int(await asyncio.to_thread(worker.stdout.readline))
        assert running(pid)
        worker.kill()
    await gone(pid)
