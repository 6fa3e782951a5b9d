"""The moments between the end of the work and that of the process, in which a signal must not spoil the exit code.

Sees to it that a stopping worker's process ends, whatever its handlers do.

A thread cannot be stopped from outside, a coroutine may refuse to be, and one that blocks the loop keeps the worker
from even hearing the signal. Where a handler had to be left behind, or the end does not come, the process exits the
hard way. Leases that are still held then run out by themselves.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from collections.abc import Callable, Collection
from typing import Final

from ropewalk.cli.errors import ExitCode, complain
from ropewalk.runtime.system import SystemRuntime
from ropewalk.worker.worker import STOPPING, Worker


def ignore_stop_signals() -> None:
    """Whoever asks again to stop has what they ask for."""
    loop = asyncio.get_running_loop()
    # Held back meanwhile: without the loop's handler, and before it is ignored, a signal kills.
    signal.pthread_sigmask(signal.SIG_BLOCK, STOPPING)
    for each in STOPPING:
        loop.remove_signal_handler(each)
        signal.signal(each, signal.SIG_IGN)


OVERTIME_SECONDS: Final = 5.0
"""after the grace period: to cancel what still runs and give it back"""
_LOOK_SECONDS: Final = 0.2

logger = logging.getLogger("ropewalk.worker")


class DrainWatch:
    def __init__(self, grace_seconds: float) -> None:
        self._grace_seconds = grace_seconds
        self._runtime = SystemRuntime()
        self._told = False

    async def run(
        self, worker: Worker, *, on_started: Callable[[Worker], object], hurried_by: Collection[signal.Signals]
    ) -> None:
        # In a thread of its own: the worker's loop may be what is stuck.
        watching = self._runtime.thread(self._watch, name="ropewalk-drain-watch")
        asyncio.get_running_loop().call_soon(self._listen)
        try:
            clean = await worker.run(
                on_started=on_started, on_told_to_drain=self._hear_the_store, hurried_by=hurried_by
            )
        finally:
            watching.cancel()
        if not clean:
            _leave("a handler did not end when it was told to")
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
        _leave(f"the worker did not come to an end within {limit_seconds:g} s")


def _leave(why: str) -> None:
    complain(f"{why}: leaving it behind; what it held was given back or will be when its lease runs out")
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(ExitCode.FAILED)
