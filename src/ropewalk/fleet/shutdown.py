"""Sees to it that the process of a stopping worker ends, whatever its handlers do.

A thread cannot be stopped from outside, a coroutine may refuse to be, and one that blocks the loop keeps the worker
from even hearing the signal. Where a handler had to be left behind, or the end does not come, the process exits the
hard way. Leases that are still held then run out by themselves.

Between the end of the work and that of the process a signal must not spoil the exit code: see `ignore_stop_signals`.
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
    """From here on a signal that says stop changes nothing: the process is about to end."""
    loop = asyncio.get_running_loop()
    # Held back meanwhile: without the loop's handler, and before it is ignored, a signal kills.
    signal.pthread_sigmask(signal.SIG_BLOCK, STOPPING)
    for each in STOPPING:
        loop.remove_signal_handler(each)
        signal.signal(each, signal.SIG_IGN)


OVERTIME_SECONDS: Final = 5.0
"""How long a worker takes at most, after the grace period, to cancel what still runs and give it back."""
KILLED_AFTER_SECONDS: Final = OVERTIME_SECONDS + 1.0
"""How long after the grace period a process that even then has not ended by itself is killed by its supervisor."""
_LOOK_SECONDS: Final = 0.2

logger = logging.getLogger("ropewalk.worker")


class DrainWatch:
    """Runs a worker until it has drained, and ends the process where it does not."""

    def __init__(self, grace_seconds: float, complain: Callable[[str], object]) -> None:
        """`complain` tells people why the process ends the hard way."""
        self._grace_seconds = grace_seconds
        self._complain = complain
        self._runtime = SystemRuntime()
        self._told = False

    async def run(
        self, worker: Worker, *, on_started: Callable[[Worker], object], hurried_by: Collection[signal.Signals]
    ) -> None:
        # In a thread of its own: the worker's loop may be what is stuck.
        watching = self._runtime.thread(self._watch, name="ropewalk-drain-watch")
        asyncio.get_running_loop().call_soon(self._listen)
        try:
            clean = await worker.run(on_started=on_started, on_drain=self._hear_the_store, hurried_by=hurried_by)
        finally:
            watching.cancel()
        if not clean:
            self._leave("a handler did not end when it was told to")
        logger.info("drained: every job it held is finished or given back")

    def _listen(self) -> None:
        """Hear the signals beside the worker, whose own ears are on the loop. It has put them there by now.

        A handler set this way runs between any two bytecodes of the main thread, and the loop is woken all the same.
        """
        for each in STOPPING:
            signal.signal(each, self._hear)

    def _hear(self, _signal: int, _frame: object) -> None:
        self._told = True  # no more than this: a signal may arrive while any lock is held

    def _hear_the_store(self) -> None:
        logger.info("told to drain, by app.drain_worker or `ropewalk workers drain`")
        self._told = True

    async def _watch(self) -> None:
        while not self._told:
            await self._runtime.sleep(_LOOK_SECONDS)
        logger.info("draining: nothing new is started, what runs has %g s to finish", self._grace_seconds)
        limit_seconds = self._grace_seconds + OVERTIME_SECONDS
        await self._runtime.sleep(limit_seconds)
        self._leave(f"the worker did not come to an end within {limit_seconds:g} s")

    def _leave(self, why: str) -> None:
        self._complain(f"{why}: leaving it behind; what it held was given back or will be when its lease runs out")
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(ExitCode.FAILED)
