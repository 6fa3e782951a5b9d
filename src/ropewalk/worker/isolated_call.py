"""A handler's run in another process, as the middlewares around it see it: a value, or an exception.

The exception itself exists only over there, and there it was judged. So what comes through unchanged means what that
process said; only what a middleware makes of it is judged or encoded here.
"""

from __future__ import annotations

from typing import Final, assert_never

from ropewalk.definitions.context.context import Context
from ropewalk.definitions.context.isolation import Isolation
from ropewalk.definitions.results.result import Said, result_of
from ropewalk.definitions.suspend import Suspend
from ropewalk.domain.failure import ErrorInfo
from ropewalk.domain.jobs.outcome import (
    Aborted,
    Cancelled,
    Completed,
    Crashed,
    Deferred,
    Errored,
    Expired,
    Outcome,
    Released,
    Suspended,
)
from ropewalk.domain.jobs.states import State
from ropewalk.domain.time import to_datetime, to_seconds
from ropewalk.errors import Defer, JobCancelled, JobFailed
from ropewalk.worker.attempt import Attempt
from ropewalk.worker.middleware_chain import Onion

_NOTHING: Final = object()


class Isolated:
    """One attempt."""

    def __init__(self, attempt: Attempt, context: Context, isolation: Isolation) -> None:
        self._attempt = attempt
        self._context = context
        self._isolation = isolation
        self._outcome: Outcome | None = None
        self._given: object = _NOTHING
        self._raised: BaseException | None = None

    async def run(self, onion: Onion) -> tuple[Outcome | None, object]:
        """The process's own outcome, or None and the value that a middleware put in its place."""
        try:
            value = await onion.run(self._context, self._inside)
        except BaseException as error:
            if error is self._raised and self._outcome is not None:
                return self._outcome, None
            raise
        finally:
            self._raised = None  # its traceback leads back here
        if value is self._given:
            return self._outcome, value
        self._context.without_steps()
        # Whether it spawned anything, only the process knows: its group may be more than itself.
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
        """A Result where other jobs follow, as in the worker itself; which those are is not told."""
        value, sequel = self._attempt.job_type.decode_result(outcome.result), outcome.sequel
        follows = sequel is not None and (sequel.children or sequel.continuation is not None)
        return result_of(Said(value=value), []) if follows else value


class GivenBack(BaseException):
    """No handler ran: nothing for a middleware to handle, only to clean up after."""


def _exception(outcome: Outcome, job_id: str) -> BaseException:
    match outcome:
        case Errored(error) | Crashed(error) | Aborted(error):
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
    told = error.message if error.type is None else f"{error.type}: {error.message}"
    return JobFailed(told, job_id=job_id, state=State.RUNNING.value, error=error)
