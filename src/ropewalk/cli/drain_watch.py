"""Sees to it that a stopping worker's process ends, whatever its handlers do.

A thread cannot be stopped from outside, and a coroutine may refuse to be: where the drain had to leave one behind, or
does not come to an end at all, the process exits the hard way. Leases that were still held run out by themselves.
"""

from __future__ import annotations

import logging
import os
import sys
from typing import Final

from ropewalk.cli.errors import ExitCode, complain
from ropewalk.engine.runtime import SystemRuntime
from ropewalk.engine.worker import Worker

OVERTIME_SECONDS: Final = 5.0
"""after the grace period: to cancel what still runs and give it back"""

logger = logging.getLogger("ropewalk.worker")


class DrainWatch:
    def __init__(self, grace_seconds: float) -> None:
        self._grace_seconds = grace_seconds
        self._runtime = SystemRuntime()

    async def run(self, worker: Worker) -> None:
        """Worker.run(), which does not say how the drain ended: so its `stop` is watched."""
        stop = worker.stop

        async def watched() -> bool:
            logger.info("draining: nothing new is started, what runs has %g s to finish", self._grace_seconds)
            # In a thread of its own: the worker's loop may be what is stuck.
            self._runtime.thread(self._expire, name="ropewalk-drain-watch")
            clean = await stop()
            if not clean:
                _leave("a handler did not end when it was told to")
            logger.info("drained: every job it held is finished or given back")
            return clean

        worker.stop = watched  # type: ignore[method-assign] # on this one worker only
        await worker.run()

    async def _expire(self) -> None:
        limit_seconds = self._grace_seconds + OVERTIME_SECONDS
        await self._runtime.sleep(limit_seconds)
        _leave(f"the worker did not come to an end within {limit_seconds:g} s")


def _leave(why: str) -> None:
    complain(f"{why}: leaving it behind; what it held was given back or will be when its lease runs out")
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(ExitCode.FAILED)
