"""How the handler of one job type is called, in every style (async, thread, process, with or without middlewares). The
call is put together once for each type.
"""

from __future__ import annotations

import functools
import operator
from typing import Any, Final, assert_never

from ropewalk.definitions.context.attempt_port import Isolation
from ropewalk.definitions.context.context import Context, activate, deactivate
from ropewalk.definitions.handler_exceptions import Suspend
from ropewalk.definitions.job_types.job_type import JobType
from ropewalk.definitions.results.classify import bad_input, never_awaited
from ropewalk.definitions.results.results import Said, result_of
from ropewalk.definitions.results.returned import outcome_of_return
from ropewalk.domain.failure import ErrorInfo
from ropewalk.domain.jobs.outcome import (
    Aborted,
    Cancelled,
    Completed,
    Crashed,
    Deferred,
    Errored,
    Expired,
    Misfit,
    Outcome,
    Released,
    Suspended,
)
from ropewalk.domain.jobs.states import State
from ropewalk.domain.time import SECOND, to_datetime, to_seconds
from ropewalk.domain.user_calls import guarded
from ropewalk.errors import Defer, InvalidInput, JobCancelled, JobFailed, StoreUnavailable
from ropewalk.worker.attempt import Attempt
from ropewalk.worker.completion import pending_fold
from ropewalk.worker.context import InThread, WorkerContext
from ropewalk.worker.middleware_chain import MiddlewareChain

_NOTHING: Final = object()


class Isolated:
    """The run of one attempt in another process, as the middlewares around it see it: as a value or an exception.

    The original exception exists only in that process, which has already made an outcome of it. So if the middlewares
    pass the value or the exception on unchanged, that outcome counts; only what a middleware puts in its place becomes
    an outcome here.
    """

    def __init__(self, attempt: Attempt, context: Context, isolation: Isolation) -> None:
        self._attempt = attempt
        self._context = context
        self._isolation = isolation
        self._outcome: Outcome | None = None
        self._given: object = _NOTHING
        self._raised: BaseException | None = None

    async def run(self, chain: MiddlewareChain) -> tuple[Outcome | None, object]:
        """Runs the handler inside the middlewares. Returns the outcome of the process; if a middleware replaced its
        value, returns None and the new value."""
        try:
            value = await chain.run(self._context, self._inside)
        except BaseException as error:
            if error is self._raised and self._outcome is not None:
                return self._outcome, None
            raise
        finally:
            self._raised = None  # Its traceback refers to this frame.
        if value is self._given:
            return self._outcome, value
        self._context.without_steps()
        # Only the process knows whether the handler spawned jobs, so its group may contain more than this job.
        self._context.alone = self._context.alone and self._outcome is None
        return None, value

    async def _inside(self) -> object:
        outcome = self._outcome = await self._isolation.run(self._attempt)
        if isinstance(outcome, Completed):
            self._given = self._value(outcome)
            return self._given
        self._raised = _exception(outcome, self._attempt.job.id)
        raise self._raised

    def _value(self, outcome: Completed) -> object:
        """Returns the value for the middlewares. If other jobs follow, it is a Result, as inside the worker itself, but
        without these jobs."""
        value, plan = self._attempt.job_type.decode_result(outcome.result), outcome.plan
        follows = plan is not None and (plan.children or plan.continuation is not None)
        return result_of(Said(value=value), []) if follows else value


COMPLETED_BEFORE: Final = Completed(None)
"""How an attempt ends that a transaction of its handler has completed and settled."""


def _are_equal(value: object, completion: object) -> bool:
    if value is completion:
        return True
    try:
        return bool(guarded(operator.eq, value, completion))
    except Exception:  # The comparison of the user's own classes may raise anything.
        return False


class GivenBack(BaseException):
    """No handler ran, because the job was given back. Middlewares cannot handle this exception but can clean up."""


def _exception(outcome: Outcome, job_id: str) -> BaseException:
    """Returns the exception that the middlewares get for an outcome of the other process."""
    match outcome:
        case Errored(error) | Crashed(error) | Aborted(error) | Misfit(error):
            return _failed(error, job_id)
        case Deferred(delay_us, at):
            return Defer(at=to_datetime(at)) if at is not None else Defer(delay=to_seconds(delay_us or 0))
        case Suspended(suspension):
            return Suspend(suspension)
        case Cancelled():
            return JobCancelled(f"job {job_id} was cancelled", job_id=job_id)
        case Released() | Expired():
            return GivenBack(type(outcome).__name__)
        case Completed():
            raise AssertionError("a completion is a value")
        case _:
            assert_never(outcome)


def _failed(error: ErrorInfo, job_id: str) -> JobFailed:
    message = error.message if error.type is None else f"{error.type}: {error.message}"
    return JobFailed(message, job_id=job_id, state=State.RUNNING.value, error=error)


class HandlerCall:
    """The way in which the handler of one job type is called."""

    def __init__(
        self,
        job_type: JobType[..., Any, Any],
        chain: MiddlewareChain | None,
        worker_context: WorkerContext,
        in_thread: InThread,
    ) -> None:
        contract = job_type.resolve()
        self._job_type = job_type
        self._chain = chain
        self._worker_context = worker_context
        self._in_thread = in_thread
        self._isolated = job_type.style == "process" and chain is None
        self._plain = job_type.style == "async" and chain is None
        self._handler = job_type.handler
        self._takes_context = contract.takes_context
        self._decode = contract.arguments.decode

    async def call(self, attempt: Attempt) -> Outcome:
        """Runs the handler for an attempt and returns the outcome. Raises what the handler raises."""
        if attempt.job.gate is not None and not await dependencies_loaded(attempt, self._worker_context):
            return Released(SECOND)
        if self._isolated:
            return self._checked(await self._worker_context.isolation.run(attempt))
        try:
            arguments = self._decode(attempt.job.input)
        except InvalidInput as error:
            return bad_input(error)
        context = Context(attempt)
        token = activate(context)
        try:
            if not self._plain:
                return await self._within(attempt, context, arguments)
            # Most handlers are called here, because one more coroutine would make each of them slower.
            value = await (self._handler(context, **arguments) if self._takes_context else self._handler(**arguments))
            if context.has_calls:
                await context.calls().wait_and_raise()
        except (Exception, Suspend) as error:
            await self._raised(context, error)
            if context.completion is None:
                raise
            return COMPLETED_BEFORE
        finally:
            deactivate(token)
        return self._returned(attempt, context, value)

    async def _raised(self, context: Context, error: Exception | Suspend) -> None:
        """Deals with an exception of the handler, after the calls that it has not awaited have ended. Raises
        Nondeterministic if the handler took other steps than in an earlier attempt (Context.raise_step_fault)."""
        if context.has_calls:
            await context.calls().wait()
        if context.completion is not None:
            self._report_after_completion(context, f"raised {type(error).__name__}", error)
        elif isinstance(error, Exception):
            context.raise_step_fault(error)

    def _report_after_completion(self, context: Context, what: str, cause: BaseException | None = None) -> None:
        """Reports what a handler does after its transaction has completed the job, because it changes nothing any
        more."""
        lost = RuntimeError(
            f"job {context.id} was completed by its ctx.transaction(), and then its handler {what}, which changes "
            "nothing: after the block return what tx.complete(...) returned, or nothing"
        )
        lost.__cause__ = cause
        self._worker_context.events.report(lost, f"after the transaction of {context.type}")

    def _returned(self, attempt: Attempt, context: Context, value: object) -> Outcome:
        worker_context = self._worker_context
        if context.completion is not None:
            if value is not None and not _are_equal(value, context.completion[0]):
                self._report_after_completion(context, f"returned another value, of type {type(value).__name__}")
            if (forgotten := context.never_awaited()) is not None:
                self._report_after_completion(context, f"returned, although {forgotten}")
            return COMPLETED_BEFORE
        outcome = outcome_of_return(
            self._job_type, context, value, worker_context.bounds, strict=worker_context.defaults.strict_return
        )
        if isinstance(outcome, Completed) and outcome.plan is not None:
            attempt.fold = pending_fold(value)
        return outcome

    def _checked(self, outcome: Outcome) -> Outcome:
        """Returns the outcome of a handler's process after checking the types of the jobs that should follow. The
        process cannot check them, because it does not know the app."""
        if isinstance(outcome, Completed) and outcome.plan is not None:
            plan = outcome.plan
            for new in (*plan.children, *(() if plan.continuation is None else (plan.continuation,))):
                self._worker_context.unregistered.check(new)
        return outcome

    async def _within(self, attempt: Attempt, context: Context, arguments: dict[str, object]) -> Outcome:
        """Calls the handler in a thread, or inside middlewares, and returns the outcome."""
        style, chain = self._job_type.style, self._chain
        call = functools.partial(self._handler, *((context,) if self._takes_context else ()), **arguments)
        if chain is None:
            value = await self._in_thread([attempt], call)
        elif style == "process":
            outcome, value = await Isolated(attempt, context, self._worker_context.isolation).run(chain)
            if outcome is not None:
                forgotten = context.never_awaited() if isinstance(outcome, Completed) else None
                return self._checked(outcome) if forgotten is None else never_awaited(forgotten)
        elif style == "async":
            value = await chain.run(context, call)
        else:
            value = await chain.run(context, lambda: self._in_thread([attempt], call))
        if context.has_calls:
            await context.calls().wait_and_raise()
        return self._returned(attempt, context, value)


async def dependencies_loaded(attempt: Attempt, worker_context: WorkerContext) -> bool:
    """Loads the dependencies of a job before its handler begins. Returns False if the store is away: the attempt is
    then given back, so that it does not count."""
    try:
        await attempt.load_dependencies()
    except StoreUnavailable as error:
        worker_context.events.report(error, "dependencies")
        return False
    return True
