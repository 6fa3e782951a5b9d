"""Batch types: attempts gathered by (type, tenant, queue), run in one handler call, settled one by one.

A batch takes one slot, that of its first item; the others join it and leave their slots free to fetch more. So
`concurrency` counts handler calls, as everywhere else, and a batch may be larger than it. Every item is leased, renewed
and stopped on its own: the call itself is cancelled only when all of its items are. An item that was running when a
worker died is run in a batch of its own, so that a killer is told from its neighbours.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, TypeAlias

from ropewalk.domain.jobs.outcome import Outcome, Released
from ropewalk.domain.time import SECOND
from ropewalk.runtime.wake import Wake
from ropewalk.worker.attempt import Attempt
from ropewalk.worker.batch_call import BatchCall
from ropewalk.worker.context import Workbench

if TYPE_CHECKING:
    from ropewalk.worker.executor import Executor

_Key: TypeAlias = tuple[str, str, str]


class Batches:
    def __init__(self, bench: Workbench, executor: Executor) -> None:
        self._bench = bench
        self._executor = executor
        self._open: dict[_Key, Gathering] = {}

    async def serve(self, attempt: Attempt, me: asyncio.Task[Any]) -> bool:
        """Join the open batch, or gather one and run it. True when this slot's task was cancelled for its items."""
        options, job = attempt.job_type.options.batch, attempt.job
        assert options is not None
        key = (job.type, job.tenant, job.queue)
        gathering = self._open.get(key)
        if gathering is not None and not job.suspect:
            if gathering.join(attempt):
                del self._open[key]
            self._executor.wants_more()
            return False
        gathering = Gathering(attempt, 1 if job.suspect else options.size, Wake(self._bench.runtime))
        await self._gather(gathering, key, options.max_wait_us / SECOND)
        return await self._run(gathering.attempts, me)

    def start_all(self) -> None:
        """Nothing more is coming: what is gathered runs now."""
        for gathering in self._open.values():
            gathering.started.set()

    async def _gather(self, gathering: Gathering, key: _Key, wait_seconds: float) -> None:
        if gathering.full:
            return
        self._open[key] = gathering
        try:
            await gathering.started.wait(wait_seconds)
        except asyncio.CancelledError:  # the slot itself is ended: none of them began
            for attempt in gathering.attempts:
                self._executor.hand_over(attempt, Released())
                self._executor.leave(attempt)
            raise
        finally:
            if self._open.get(key) is gathering:
                del self._open[key]

    async def _run(self, attempts: list[Attempt], me: asyncio.Task[Any]) -> bool:
        executor = self._executor
        call = BatchCall([each for each in attempts if each.stopped is None], me, self._bench, executor)
        try:
            for attempt in attempts:
                if attempt.stopped is not None:
                    executor.hand_over(attempt, executor.stopped(attempt))
                else:
                    executor.begin(attempt, call, enter=None)
            if call.attempts:
                await self._settle(call, me)
        finally:
            for attempt in attempts:
                attempt.end()
                executor.leave(attempt)
        return call.cancelled

    async def _settle(self, call: BatchCall, me: asyncio.Task[Any]) -> None:
        executor, cancelling_before = self._executor, me.cancelling()
        outcomes: list[Outcome]
        try:
            outcomes = await call.run()
        except asyncio.CancelledError as error:
            outcomes = [executor.judge(each, error) for each in call.attempts]
            if not call.cancelled and me.cancelling() > cancelling_before:
                for attempt, outcome in zip(call.attempts, outcomes, strict=True):
                    executor.hand_over(attempt, Released() if executor.closing else outcome)
                raise
        except BaseException as error:
            outcomes = [executor.judge(each, error) for each in call.attempts]
        took = call.attempts[0].elapsed()
        executor.measure(took / len(call.attempts))
        for attempt, outcome in zip(call.attempts, outcomes, strict=True):
            attempt.spend(took)
            executor.hand_over(attempt, outcome if attempt.stopped is None else executor.stopped(attempt))


class Gathering:
    """A batch that is not running yet."""

    def __init__(self, first: Attempt, size: int, started: Wake) -> None:
        self.attempts = [first]
        self.started = started
        self._size = size

    @property
    def full(self) -> bool:
        return len(self.attempts) >= self._size

    def join(self, attempt: Attempt) -> bool:
        """True when that was the last it waited for."""
        self.attempts.append(attempt)
        if self.full:
            self.started.set()
        return self.full
