"""The executor runs attempts in slots: it starts a handler, makes an outcome of its end, and passes it to the settler.

Each slot is one long-lived task that runs one attempt after another. A stop (lost lease, timeout, forced cancellation)
cancels this task while the handler runs; the slot swallows the cancellation, which was meant for the handler.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import Callable, Sequence
from typing import Any, Final

from ropewalk.definitions.context.calls import next_loop_turn
from ropewalk.definitions.job_types.job_type import JobType
from ropewalk.definitions.results.classify import error_info, only_leaf
from ropewalk.domain.failure import Category, ErrorInfo
from ropewalk.domain.jobs.flags import UNRECORDED
from ropewalk.domain.jobs.lease import LossReason
from ropewalk.domain.jobs.outcome import (
    Cancelled,
    Errored,
    Expired,
    Misfit,
    Outcome,
    Released,
)
from ropewalk.domain.time import SECOND, Span
from ropewalk.domain.user_calls import as_error, guarded
from ropewalk.errors import JobCancelled
from ropewalk.observe import tracing
from ropewalk.ports.runtime import Task
from ropewalk.runtime.wake import Wake
from ropewalk.worker.attempt import Attempt, Stoppable
from ropewalk.worker.batches import Batches
from ropewalk.worker.buffer import Buffer
from ropewalk.worker.context import WorkerContext
from ropewalk.worker.handler_call import HandlerCall
from ropewalk.worker.middleware_chain import middleware_chains_of
from ropewalk.worker.settler import Settler

BUFFER_SECONDS: Final = 0.1
"""The buffer holds as many jobs as the slots finish in this time."""
BUFFER_MAX: Final = 1024
"""The buffer holds this many jobs at most."""
UNANSWERED_AFTER: Final = SECOND
"""If the store did not answer the commit of a handler's own transaction, its job is given back and ready after this."""
_SMOOTHING = 0.05
"""The weight of each new time in the mean time of a handler."""
_TURN_SECONDS = 0.001
"""A slot takes one job after another for this long before it lets the event loop run."""
_REOPEN_SECONDS = 0.05
"""A slot whose task was cancelled is opened again after this time."""
_STOP_SECONDS = 1.0
"""A stopping executor waits this long for its slots to end."""


class Executor:
    """The slots of one worker."""

    def __init__(self, worker_context: WorkerContext, buffer: Buffer, settler: Settler, *, slots: int) -> None:
        self._worker_context = worker_context
        self._buffer = buffer
        self._settler = settler
        self.slots = slots
        self._numbers = itertools.count()
        self._tasks: dict[int, Task] = {}
        """The tasks of the slots, by their numbers."""
        self._kept_free: int | None = None
        """The number of slots that must be free, if the worker has no bound on concurrency; None otherwise."""
        self.closing = False
        """Whether the slots are about to end."""
        self._tracing = worker_context.tracing
        self._enter = self._leave = self._passed_on = None
        if worker_context.tracing is not None:  # They are looked up once, because every attempt uses them.
            self._enter, self._leave = worker_context.tracing.enter, worker_context.tracing.leave
            self._passed_on = worker_context.tracing.passed_on
        self._handler_calls: dict[str, HandlerCall] = {}
        """The handler call of each type that has run, by its name."""
        self._turn_began_at = self._ended_at = worker_context.runtime.monotonic()
        """The monotonic times at which a slot was last woken and a handler last ended."""
        self.running = buffer.running
        self.idled = Wake(worker_context.runtime)
        """This is set when the last running attempt has ended; the drain waits for it."""
        self.stuck = 0
        """The number of slots whose thread still runs a handler that was given up."""
        self.mean_seconds: float | None = None
        """The smoothed time that a handler takes, from which the size of the buffer follows."""
        self.middleware_chains = middleware_chains_of(worker_context.registry, worker_context.middlewares)
        self.on_begin: Callable[[Attempt], object] | None = None
        """This is called before a handler begins, for policies that count starts."""
        self.batches = Batches(worker_context, self, settler)
        worker_context.in_thread = self.in_thread

    def start(self) -> None:
        """Opens the slots."""
        for _ in range(self.slots):
            self._open_slot(next(self._numbers))

    def keep_free(self, number: int) -> None:
        """Opens slots until `number` are free. When twice as many are free later, some end after their attempt."""
        self._kept_free = number
        while self.slots - len(self.running) < number:
            self._open_slot(next(self._numbers))
            self.slots += 1

    async def stop(self) -> None:
        """Ends the slots. A slot that waits for a stuck thread is left behind: the thread ends with the process."""
        self.closing = True
        tasks = tuple(self._tasks.values())
        for task in tasks:
            task.cancel()
        # A handler that resists its cancellation must not delay the end of everything else.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_STOP_SECONDS):
                for task in tasks:
                    await task.finished()

    def expected_seconds(self) -> float | None:
        """Returns the longer one of the mean time of a handler and the mean age of the handlers that run now."""
        if self.mean_seconds is None or not self.running:
            return self.mean_seconds
        return max(self.mean_seconds, sum(each.elapsed() for each in self.running) / len(self.running))

    def work_in(self, seconds: float, slots: int) -> int:
        """Returns how many attempts the slots should finish in this time; 0 while no handler has been measured."""
        mean = self.expected_seconds()
        return 0 if mean is None else int(min(float(BUFFER_MAX), slots * seconds / max(mean, 1e-6)))

    def _open_slot(self, number: int) -> None:
        if not self.closing:
            self._tasks[number] = self._worker_context.runtime.spawn(
                self._keep_slot(number), name=f"ropewalk-slot-{number}"
            )

    async def _keep_slot(self, number: int) -> None:
        """Runs a slot, and opens it again if its handler cancelled the task of the slot although the worker goes on."""
        try:
            await self._slot()
        except BaseException:
            # The slot is not opened at once: if the whole event loop is ending, this call never happens.
            asyncio.get_running_loop().call_later(_REOPEN_SECONDS, self._open_slot, number)
            raise
        del self._tasks[number]

    async def _slot(self) -> None:
        """Runs attempts until the worker stops, or until more slots than needed are free."""
        me, buffer, settler, due = asyncio.current_task(), self._buffer, self._settler, self.batches.due
        assert me is not None
        while not self.closing:
            attempt = buffer.take() if not due and self._in_time() else None
            if attempt is None and not due:
                attempt = await buffer.wait()
                self._turn_began_at = self._worker_context.runtime.monotonic()
            if attempt is None:
                cancelled = await self.batches.serve_due(me)
            elif attempt.job_type.options.batch is None:
                cancelled = await self._perform(attempt, me)
            else:
                cancelled = await self.batches.serve(attempt, me)
            if cancelled:
                await _swallow_cancellation(me)
            if settler.full:
                await settler.room()
            if self._kept_free is not None and self.slots - len(self.running) > 2 * self._kept_free:
                self.slots -= 1
                return

    def _in_time(self) -> bool:
        """Whether a slot may take the next job at once: handlers that never wait must not block the event loop."""
        return self._ended_at - self._turn_began_at < _TURN_SECONDS

    def leave(self, attempt: Attempt) -> None:
        """Records that an attempt does not run any more, in whatever way it ended."""
        self.running.discard(attempt)
        if not self.running:
            self.idled.set()

    def wake_slot(self) -> None:
        """Wakes a waiting slot for work that is not in the buffer: a batch whose time is up."""
        self._buffer.wake_runner()

    def wants_more(self) -> None:
        """Has the claimer look for more jobs, because a slot is free again although no attempt was settled."""
        self._buffer.on_low()

    def measure(self, took: float) -> None:
        """Adds the time of a handler to the mean."""
        if self.mean_seconds is None:
            self.mean_seconds = took
        self.mean_seconds += (took - self.mean_seconds) * _SMOOTHING

    async def _perform(self, attempt: Attempt, me: asyncio.Task[Any]) -> bool:
        """Runs the handler and hands over its outcome; every way in which it can end is an outcome.

        Returns True if this task was cancelled to stop the attempt. Raises only if the slot itself is cancelled.
        """
        cancelling_before = me.cancelling()
        entered = None
        try:
            if attempt.stopped is not None:
                outcome = self.outcome_of_stop(attempt)
            else:
                entered = self.begin(attempt, me, self._enter)
                handler_call = self._handler_calls.get(attempt.job.type) or self._handler_call_of(attempt.job_type)
                outcome = await handler_call.call(attempt)
                if isinstance(outcome, Misfit):
                    outcome = await self._worker_context.misfits.judge(attempt, outcome)
        except asyncio.CancelledError as error:
            outcome = self.outcome_of_error(attempt, error)
            if attempt.stopped is None and me.cancelling() > cancelling_before:
                self._ended(attempt, Released() if self.closing else outcome, entered)
                raise
        except BaseException as error:
            outcome = self.outcome_of_error(attempt, error)
        self._ended(attempt, outcome, entered)
        return attempt.stop_sent

    def _handler_call_of(self, job_type: JobType[..., Any, Any]) -> HandlerCall:
        """Makes the handler call of a type once. Raises DefinitionError if the annotations cannot be resolved."""
        handler_call = HandlerCall(
            job_type, self.middleware_chains.get(job_type.name), self._worker_context, self.in_thread
        )
        return self._handler_calls.setdefault(job_type.name, handler_call)

    def _ended(self, attempt: Attempt, outcome: Outcome, entered: object) -> None:
        if entered is not None and self._leave is not None:
            try:
                self._leave(entered)
            except BaseException as error:
                self._worker_context.events.report(as_error(error), tracing.PHASE)
        attempt.end()
        self._ended_at = self._worker_context.runtime.monotonic()
        if attempt.began_at is not None:
            took = self._ended_at - attempt.began_at
            attempt.note_timing(took)
            self.measure(took)
        try:
            self._settler.settle(attempt, outcome)
        finally:
            self.leave(attempt)

    def begin(self, attempt: Attempt, me: Stoppable, enter: Callable[[Any], object] | None) -> object:
        """Records that a handler starts. Returns what `enter` returned, which is needed to leave the tracing span."""
        job, worker_context = attempt.job, self._worker_context
        deadline_in = None
        if job.deadline is not None and job.started_at is not None:
            since_claim = round(attempt.since_claim() * SECOND)
            deadline_in = max(0, job.deadline - job.started_at - since_claim)
        if self.on_begin is not None:
            self.on_begin(attempt)
        attempt.begin(me, timeout_us=self._timeout(attempt), deadline_in_us=deadline_in)
        events = worker_context.events
        if events.meter is not None:
            events.meter.began(job.type)
        events.emit_about(job, "started")
        if self._tracing is None:
            return None
        try:  # This stands here because a call into observe/tracing.py took a seventh of the cost of a dropped trace.
            if job.flags & UNRECORDED and self._passed_on is not None:
                return None if enter is None else enter(self._passed_on(job.trace))
            span = self._tracing.attempt(job, worker_context.owner)
            if span.trace is not None:
                job.trace, attempt.span = span.trace, span  # This changes only our copy and not the stored job.
            return None if enter is None else enter(span)
        except BaseException as error:
            events.report(as_error(error), tracing.PHASE)
            return None

    def _timeout(self, attempt: Attempt) -> Span | None:
        return attempt.job.timeout_us or attempt.job_type.options.timeout_us or self._worker_context.defaults.timeout_us

    async def in_thread(self, attempts: Sequence[Attempt], call: Callable[[], object]) -> object:
        """Runs a call in a thread, which cannot be stopped: if the attempts are, their slot waits until it returns."""
        done = asyncio.Event()
        loop = asyncio.get_running_loop()

        def work() -> object:
            try:
                return call()
            finally:
                if not loop.is_closed():
                    loop.call_soon_threadsafe(done.set)

        try:
            return await self._worker_context.runtime.in_thread(work)
        except asyncio.CancelledError as error:
            if any(attempt.stopped is None for attempt in attempts):
                raise
            for attempt in attempts:
                self._settler.settle(attempt, self.outcome_of_error(attempt, error))
            self.stuck += 1
            try:
                await done.wait()
            finally:
                self.stuck -= 1
            raise

    def outcome_of_error(self, attempt: Attempt, error: BaseException) -> Outcome:
        """Returns the outcome for an exception of the handler, even a broken one, so that no job can end a slot."""
        if attempt.stopped is not None:
            return self.outcome_of_stop(attempt)
        try:
            return guarded(self._classified, attempt, error)
        except Exception as broken:
            self._worker_context.events.report(broken, f"judging {type(error).__name__}")
            message = f"{type(error).__name__}, which could not be described: {type(broken).__name__}"
            return Errored(ErrorInfo(category=Category.SYSTEM, code="indescribable", message=message))

    def _classified(self, attempt: Attempt, error: BaseException) -> Outcome:
        if isinstance(error, JobCancelled) and attempt.cancellation() is not None:
            secrets = attempt.job_type.hidden_names(self._worker_context.logs.secret_keys)
            return Cancelled(error_info(error, Category.CANCELLED, secrets=secrets))
        if attempt.store_error is not None and only_leaf(error) is attempt.store_error:
            self._worker_context.events.report(error, f"transaction of {attempt.job.type}")
            return Released(UNANSWERED_AFTER)
        return self._worker_context.classify(error, attempt.job_type, attempt.job.attempt)

    def outcome_of_stop(self, attempt: Attempt) -> Outcome:
        """Returns the outcome of an attempt that was stopped, which follows from the reason of the stop."""
        assert attempt.stopped is not None
        match attempt.stopped.reason:
            case LossReason.TIMEOUT:
                return Errored(_timed_out(self._timeout(attempt) or 0))
            case LossReason.DEADLINE:
                return Expired()
            case LossReason.CANCELLED:
                return Cancelled()
            case _:
                return Released()


async def _swallow_cancellation(me: asyncio.Task[Any]) -> None:
    """Ends a cancellation that was meant for the handler, whether it was raised there or has not been raised yet."""
    with contextlib.suppress(asyncio.CancelledError):
        await next_loop_turn()
    while me.cancelling():
        me.uncancel()


def _timed_out(span: Span) -> ErrorInfo:
    message = f"the attempt ran longer than its timeout of {span / SECOND:g} s"
    return ErrorInfo(category=Category.TIMEOUT, code="timeout", type="TimeoutError", message=message)
