"""Ends the process of a stopping worker, whatever its handlers do.

A thread cannot be stopped from outside, a coroutine may ignore its cancellation, and a handler that blocks the event
loop keeps the worker from noticing the signal. If a handler does not end in time, the process exits without waiting for
it (`os._exit`), and the leases that the worker still holds expire.

After the work has ended and before the process ends, a signal must not change the exit code: see `ignore_stop_signals`.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from collections.abc import Callable, Collection
from typing import Final

from ropewalk.fleet.exit_codes import ExitCode
from ropewalk.runtime.system import SystemRuntime
from ropewalk.worker.worker import STOPPING, Worker


def ignore_stop_signals() -> None:
    """Ignore stop signals from now on, because the process is about to end."""
    loop = asyncio.get_running_loop()
    # Blocked meanwhile: between the removal of the loop's handler and SIG_IGN a signal would kill the process.
    signal.pthread_sigmask(signal.SIG_BLOCK, STOPPING)
    for each in STOPPING:
        loop.remove_signal_handler(each)
        signal.signal(each, signal.SIG_IGN)


OVERTIME_SECONDS: Final = 5.0
"""How long a worker may take, after the grace period, to cancel its running jobs and give them back."""
KILLED_AFTER_SECONDS: Final = OVERTIME_SECONDS + 1.0
"""How long after the grace period a supervisor kills a process that has not ended by itself."""
_CHECK_SECONDS: Final = 0.2

logger = logging.getLogger("ropewalk.worker")


class DrainWatch:
    """A drain watch runs a worker until it has drained, and ends the process if it does not drain in time."""

    def __init__(self, grace_seconds: float, complain: Callable[[str], object]) -> None:
        """`complain` reports why the process ends without waiting for a handler."""
        self._grace_seconds = grace_seconds
        self._complain = complain
        self._runtime = SystemRuntime()
        self._told = False

    async def run(
        self, worker: Worker, *, on_started: Callable[[Worker], object], hurried_by: Collection[signal.Signals]
    ) -> None:
        """Run the worker; `hurried_by` are the signals that end the grace period when they arrive again."""
        # The watch needs a thread of its own, because a handler may block the worker's event loop.
        watching = self._runtime.thread(self._watch, name="ropewalk-drain-watch")
        asyncio.get_running_loop().call_soon(self._listen)
        try:
            clean = await worker.run(on_started=on_started, on_drain=self._hear_the_store, hurried_by=hurried_by)
        finally:
            watching.cancel()
        if not clean:
            self._leave("a handler did not end when it was told to")
        logger.info("drained: every job of this worker is finished or given back")

    def _listen(self) -> None:
        """Notice signals even if the event loop is blocked; the worker has set its handlers on the loop by now.

        A handler set by `signal.signal` runs between any two bytecodes of the main thread, and the loop is woken, too.
        """
        for each in STOPPING:
            signal.signal(each, self._hear)

    def _hear(self, _signal: int, _frame: object) -> None:
        self._told = True  # only this: a signal may arrive while any lock is held

    def _hear_the_store(self) -> None:
        logger.info("asked to drain by app.drain_worker or `ropewalk workers drain`")
        self._told = True

    async def _watch(self) -> None:
        while not self._told:
            await self._runtime.sleep(_CHECK_SECONDS)
        logger.info("draining: no more jobs are started, and running jobs have %g s to finish", self._grace_seconds)
        limit_seconds = self._grace_seconds + OVERTIME_SECONDS
        await self._runtime.sleep(limit_seconds)
        self._leave(f"the worker did not come to an end within {limit_seconds:g} s")

    def _leave(self, why: str) -> None:
        self._complain(
            f"{why}: the process ends without it; its jobs were given back, or will be when their leases expire"
        )
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(ExitCode.FAILED)
