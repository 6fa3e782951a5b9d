"""How a worker stops: nothing new, time to finish, then everything given back. No attempt is burned."""

from __future__ import annotations

from typing import Final

from ropewalk.definitions.context.attempt_port import Cancellation
from ropewalk.domain.jobs.lease import LossReason
from ropewalk.worker.buffer import Buffer
from ropewalk.worker.context import Workbench
from ropewalk.worker.executor import Executor
from ropewalk.worker.settler import Settler

CLEAN_UP_SECONDS: Final = 3.0
"""how long a cancelled handler may take to clean up before it is left behind"""


class Drain:
    def __init__(self, bench: Workbench, buffer: Buffer, executor: Executor, settler: Settler) -> None:
        self._bench = bench
        self._buffer = buffer
        self._executor = executor
        self._settler = settler
        self._hurry = False

    def hurry(self) -> None:
        """A second signal: do not wait for handlers any longer."""
        self._hurry = True
        self._executor.idled.set()

    def begin(self) -> None:
        """What has not started is given back. The claimer has stopped before."""
        self._settler.release(self._buffer.take_all())
        self._executor.batches.start_all()

    async def run(self, grace_seconds: float) -> bool:
        """True when every handler ended."""
        self.begin()
        if not await self._idle_within(grace_seconds):
            for attempt in list(self._executor.running):
                attempt.stop(Cancellation(LossReason.SHUTDOWN, "the worker is stopping"))
        self._hurry = False
        return await self._idle_within(CLEAN_UP_SECONDS)

    async def _idle_within(self, seconds: float) -> bool:
        until = self._bench.runtime.monotonic() + seconds
        while self._executor.running:
            left = until - self._bench.runtime.monotonic()
            if self._hurry or left <= 0:
                return False
            await self._executor.idled.wait(left)
        return True
