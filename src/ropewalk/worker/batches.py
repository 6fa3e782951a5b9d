"""Batch types: a worker gathers attempts by (type, tenant, queue), runs them in one handler call, and settles each of
them by itself.

A batch that is being gathered takes no slot: each item joins it and leaves its slot free to fetch more. The slot that
brings the last item runs the batch; if its time is up before it is full, the next free slot runs it. So `concurrency`
counts handler calls, as everywhere else, and a batch may be larger than `concurrency`, even if there is only one slot.
Every item has a lease of its own, which is renewed and may be lost on its own: the call is cancelled only when all of
its items are stopped. An item that was running when a worker died runs in a batch of its own, which shows whether it is
the one that kills workers.
"""

from __future__ import annotations

import asyncio
import functools
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from ropewalk.definitions.context.context import Context
from ropewalk.definitions.job_types.batch_decorator import argument_of, item_of, outcomes_of_batch, outputs_of
from ropewalk.definitions.results.classify import bad_input
from ropewalk.domain.jobs.outcome import Completed, Outcome, Released
from ropewalk.domain.time import SECOND
from ropewalk.errors import InvalidInput
from ropewalk.ports.runtime import Timer
from ropewalk.worker.attempt import Attempt
from ropewalk.worker.batch_places import BatchPlaces
from ropewalk.worker.completion import pending_fold
from ropewalk.worker.context import WorkerContext
from ropewalk.worker.handler_call import dependencies_loaded
from ropewalk.worker.settler import Settler

if TYPE_CHECKING:
    from ropewalk.worker.executor import Executor


class BatchCall:
    """One handler call for many attempts; each of them has this call as its runner (Stoppable)."""

    def __init__(
        self, attempts: list[Attempt], slot: asyncio.Task[Any], worker_context: WorkerContext, executor: Executor
    ) -> None:
        self.attempts = attempts
        self.cancelled = False
        """Whether every attempt was stopped and the task of the slot was cancelled for that reason."""
        self._slot = slot
        self._worker_context = worker_context
        self._executor = executor

    def cancel(self) -> None:
        """Cancels the call if all of its attempts are stopped; an attempt calls this when it is stopped."""
        if not self.cancelled and all(each.stopped is not None for each in self.attempts):
            self.cancelled = True
            self._slot.cancel()

    async def run(self) -> list[Outcome]:
        """Runs the handler and returns one outcome for each attempt, in order. Raises what the handler raises."""
        refused: dict[Attempt, Outcome] = {}
        items: dict[Attempt, object] = {}
        for attempt in self.attempts:
            if attempt.job.gate is not None and not await dependencies_loaded(attempt, self._worker_context):
                refused[attempt] = Released(SECOND)
                continue
            try:
                items[attempt] = item_of(attempt.job_type, attempt.job.input)
            except InvalidInput as error:
                refused[attempt] = await self._worker_context.misfits.judge(attempt, bad_input(error))
        outcomes = dict(zip(items, await self._call(list(items), list(items.values())), strict=True))
        return [refused.get(each) or outcomes[each] for each in self.attempts]

    async def _call(self, attempts: Sequence[Attempt], items: list[object]) -> list[Outcome]:
        if not attempts:
            return []
        job_type, worker_context = attempts[0].job_type, self._worker_context
        contexts = [Context(attempt) for attempt in attempts]
        for context in contexts:
            context.join(tuple(contexts))
        call = functools.partial(job_type.handler, argument_of(job_type, items, contexts))
        inside = call if job_type.style == "async" else lambda: self._executor.in_thread(self.attempts, call)
        chain = self._executor.middleware_chains.get(job_type.name)
        value = await (inside() if chain is None else chain.run(contexts[0], inside))
        for context in contexts:
            if context.has_calls:
                await context.calls().wait_and_raise()
        outcomes = outcomes_of_batch(
            job_type,
            contexts,
            value,
            worker_context.bounds,
            strict=worker_context.defaults.strict_return,
            classify=lambda error, number: worker_context.classify(error, job_type, number),
        )
        for attempt, outcome, output in zip(attempts, outcomes, outputs_of(value, len(items)) or (), strict=False):
            if isinstance(outcome, Completed) and outcome.plan is not None:
                attempt.fold = pending_fold(output)
        return outcomes


_Key: TypeAlias = tuple[str, str, str]
"""The type, the tenant and the queue of the jobs of a batch."""


class Batches:
    """The batches of one worker that are not running yet."""

    def __init__(self, worker_context: WorkerContext, executor: Executor, settler: Settler) -> None:
        self._worker_context = worker_context
        self._executor = executor
        self._settler = settler
        self._open: dict[_Key, Gathering] = {}
        self.due: deque[Gathering] = deque()
        """Batches whose time is up; the next free slot runs the first of them."""
        self._closed = False
        self._places = {
            each.name: BatchPlaces(most, worker_context.runtime, self._decline)
            for each in worker_context.registry
            if each.options.batch is not None and (most := each.options.batch.max_batches) is not None
        }
        """The places of each type that limits how many of its batches run at once."""
        self.on_declined: Callable[[Sequence[Attempt]], object] = lambda _: None
        """This is called with jobs that waited for a place for so long that other workers should run them."""

    @property
    def gathered(self) -> int:
        """Number of attempts in batches that still wait for more items."""
        return sum(len(each.attempts) for each in self._open.values())

    async def serve(self, attempt: Attempt, me: asyncio.Task[Any]) -> bool:
        """Puts the attempt into a batch, and runs the batch if it is complete now.

        `me` is the task of the slot that calls this. Returns True if that task was cancelled to stop the batch.
        """
        complete = self._gather(attempt)
        if complete is None or not self._has_place(complete):
            self._executor.wants_more()
            return False
        return await self._run(complete, me)

    async def serve_due(self, me: asyncio.Task[Any]) -> bool:
        """Runs the first batch whose time is up, unless another slot took it. Returns True if the task of this slot was
        cancelled to stop the batch."""
        return await self._run(self.due.popleft(), me) if self.due else False

    def room(self, job_type: str, size: int, here: int) -> int:
        """Returns how many more jobs of a type with `max_batches` find a place in batches of `size`, if the worker
        already has `here` jobs of the type."""
        return self._places[job_type].room(size, here)

    def close(self) -> None:
        """Ends the gathering: the batches that are here, and the jobs that a slot still brings, run now.

        Batches that would have to wait for a place are given back.
        """
        self._closed = True
        for places in self._places.values():
            places.close()
        self.start_all()

    def start_all(self) -> None:
        """Runs all incomplete batches now, because no more jobs will come to fill them."""
        for key in list(self._open):
            self._time_is_up(key)

    def give_back(self) -> None:
        """Gives back the batches that found no free slot; none of their jobs has begun."""
        self.start_all()
        while self.due:
            self._release(self.due.popleft())

    def _release(self, batch: Gathering) -> None:
        for attempt in batch.attempts:
            self._settler.settle(attempt, Released())
            self._executor.leave(attempt)

    def _decline(self, batch: Gathering) -> None:
        """Gives back a batch that waited too long for a place, and has claims ignore its jobs for a while."""
        self._release(batch)
        self.on_declined(batch.attempts)

    def _has_place(self, batch: Gathering) -> bool:
        """Whether the batch may run now; otherwise it waits until another batch of its type has ended."""
        places = self._places.get(batch.type)
        return places is None or places.take(batch)

    def _leave_place(self, batch: Gathering) -> None:
        places = self._places.get(batch.type)
        if places is None:
            return
        successor = places.leave(batch)
        if successor is not None:
            self._start_soon(successor)
        self._executor.wants_more()

    def _start_soon(self, batch: Gathering) -> None:
        self.due.append(batch)
        self._executor.wake_slot()

    def _gather(self, attempt: Attempt) -> Gathering | None:
        """Adds the attempt to a batch. Returns the batch if it is complete now, and None if it waits for more items."""
        options, job = attempt.job_type.options.batch, attempt.job
        assert options is not None
        if job.suspect or self._closed:
            return Gathering(attempt, 1)
        key = (job.type, job.tenant, job.queue)
        gathering = self._open.get(key)
        if gathering is None:
            gathering = Gathering(attempt, options.size)
            if not gathering.full:
                self._open[key] = gathering
                seconds = options.max_wait_us / SECOND
                gathering.timer = self._worker_context.runtime.after(seconds, lambda: self._time_is_up(key))
        else:
            gathering.attempts.append(attempt)
            if gathering.full:
                self._end_gathering(key)
        return gathering if gathering.full else None

    def _end_gathering(self, key: _Key) -> Gathering:
        gathering = self._open.pop(key)
        gathering.stop_timer()
        return gathering

    def _time_is_up(self, key: _Key) -> None:
        batch = self._end_gathering(key)
        if self._has_place(batch):
            self._start_soon(batch)

    async def _run(self, batch: Gathering, me: asyncio.Task[Any]) -> bool:
        executor, attempts = self._executor, batch.attempts
        call = BatchCall([each for each in attempts if each.stopped is None], me, self._worker_context, executor)
        try:
            for attempt in attempts:
                if attempt.stopped is not None:
                    self._settler.settle(attempt, executor.outcome_of_stop(attempt))
                else:
                    executor.begin(attempt, call, enter=None)
            if call.attempts:
                await self._call_handler(call, me)
        finally:
            for attempt in attempts:
                attempt.end()
                executor.leave(attempt)
            self._leave_place(batch)
        return call.cancelled

    async def _call_handler(self, call: BatchCall, me: asyncio.Task[Any]) -> None:
        executor, cancelling_before = self._executor, me.cancelling()
        outcomes: list[Outcome]
        try:
            outcomes = await call.run()
        except asyncio.CancelledError as error:
            outcomes = [executor.outcome_of_error(each, error) for each in call.attempts]
            if not call.cancelled and me.cancelling() > cancelling_before:
                for attempt, outcome in zip(call.attempts, outcomes, strict=True):
                    self._settler.settle(attempt, Released() if executor.closing else outcome)
                raise
        except BaseException as error:
            outcomes = [executor.outcome_of_error(each, error) for each in call.attempts]
        took = call.attempts[0].elapsed()
        executor.measure(took / len(call.attempts))
        for attempt, outcome in zip(call.attempts, outcomes, strict=True):
            attempt.note_timing(took)
            self._settler.settle(attempt, outcome if attempt.stopped is None else executor.outcome_of_stop(attempt))


class Gathering:
    """A batch that is not running yet: it waits for more items, for a slot, or for a place."""

    def __init__(self, first: Attempt, size: int) -> None:
        self.attempts = [first]
        self.timer: Timer | None = None
        """While the batch waits for items, this timer ends when the first item has waited for `max_wait`; while it
        waits for a place, the timer ends when it has waited too long."""
        self._size = size

    @property
    def type(self) -> str:
        return self.attempts[0].job.type

    def stop_timer(self) -> None:
        if self.timer is not None:
            self.timer.cancel()

    @property
    def full(self) -> bool:
        return len(self.attempts) >= self._size
