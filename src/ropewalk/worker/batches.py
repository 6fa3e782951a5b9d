"""Batch types: attempts gathered by (type, tenant, queue), run in one handler call, settled one by one.

A batch takes one slot, that of its first item; the others join it and leave their slots free to fetch more. So
`concurrency` counts handler calls, as everywhere else, and a batch may be larger than it. Every item is leased, renewed
and stopped on its own: the call itself is cancelled only when all of its items are. An item that was running when a
worker died is run in a batch of its own, so that a killer is told from its neighbours.

One handler call for many attempts. It knows which of them still matter; the call ends early only when none does.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from ropewalk.definitions.context.context import Context
from ropewalk.definitions.job_types.batch_decorator import argument_of, item_of, outcomes_of_batch
from ropewalk.definitions.results.classify import bad_input
from ropewalk.domain.jobs.outcome import Completed, Outcome, Released
from ropewalk.domain.time import SECOND
from ropewalk.errors import InvalidInput
from ropewalk.runtime.wake import Wake
from ropewalk.worker.attempt import Attempt
from ropewalk.worker.completion import pending_fold
from ropewalk.worker.context import WorkerContext
from ropewalk.worker.handler_call import dependencies_loaded

if TYPE_CHECKING:
    from ropewalk.worker.executor import Executor


class BatchCall:
    """A Stoppable (by shape): what each of its attempts runs on."""

    def __init__(
        self, attempts: list[Attempt], slot: asyncio.Task[Any], bench: WorkerContext, executor: Executor
    ) -> None:
        self.attempts = attempts
        self.cancelled = False
        """every attempt was stopped, and the slot with them"""
        self._slot = slot
        self._bench = bench
        self._executor = executor

    def cancel(self) -> None:
        """One of the attempts was stopped."""
        if not self.cancelled and all(each.stopped is not None for each in self.attempts):
            self.cancelled = True
            self._slot.cancel()

    async def run(self) -> list[Outcome]:
        """An outcome for each attempt, in order. Raises what the handler raises."""
        refused: dict[Attempt, Outcome] = {}
        items: dict[Attempt, object] = {}
        for attempt in self.attempts:
            if attempt.job.gate is not None and not await dependencies_loaded(attempt, self._bench):
                refused[attempt] = Released(SECOND)
                continue
            try:
                items[attempt] = item_of(attempt.job_type, attempt.job.input)
            except InvalidInput as error:
                refused[attempt] = bad_input(error)
        outcomes = dict(zip(items, await self._call(list(items), list(items.values())), strict=True))
        return [refused.get(each) or outcomes[each] for each in self.attempts]

    async def _call(self, attempts: Sequence[Attempt], items: list[object]) -> list[Outcome]:
        if not attempts:
            return []
        job_type, bench = attempts[0].job_type, self._bench
        contexts = [Context(attempt) for attempt in attempts]
        for context in contexts:
            context.join(tuple(contexts))
        call = functools.partial(job_type.handler, argument_of(job_type, items, contexts))
        inside = call if job_type.style == "async" else lambda: self._executor.in_thread(self.attempts, call)
        onion = self._executor.onions.get(job_type.name)
        value = await (inside() if onion is None else onion.run(contexts[0], inside))
        outcomes = outcomes_of_batch(
            job_type,
            contexts,
            value,
            bench.limits,
            strict=bench.defaults.strict_return,
            judge=lambda error, number: bench.verdict(error, job_type, number),
        )
        for attempt, outcome, output in zip(attempts, outcomes, _outputs(value), strict=False):
            if isinstance(outcome, Completed) and outcome.sequel is not None:
                attempt.fold = pending_fold(output)
        return outcomes


def _outputs(value: object) -> Sequence[object]:
    return cast("Sequence[object]", value) if isinstance(value, Sequence) else ()


_Key: TypeAlias = tuple[str, str, str]


class Batches:
    def __init__(self, bench: WorkerContext, executor: Executor) -> None:
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
