"""Calls of the functions of schedules. Functions that are not async run in threads, and each call has a time limit."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Final, TypeVar

from ropewalk.domain.schedules.schedule import Schedule
from ropewalk.domain.user_calls import guarded_await
from ropewalk.errors import WaitTimeout
from ropewalk.ports.runtime import Runtime

T = TypeVar("T")

FUNCTION_SECONDS_MAX: Final = 30.0
"""The functions of one schedule may take this long for all fires that are due at one look."""


class FunctionCall:
    """The calls of the functions of one schedule for one look."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._is_blocking = False
        self._is_awaited = False

    @property
    def over(self) -> bool:
        """Whether nothing of it runs any more. A thread cannot be stopped, and a coroutine may resist its
        cancellation."""
        return not (self._is_blocking or self._is_awaited)

    async def off_the_loop(self, call: Callable[[], T]) -> T:
        """Runs a function in a thread and returns its value."""

        def tracked() -> T:
            try:
                return call()
            finally:
                self._is_blocking = False

        self._is_blocking = True
        return await self._runtime.call_off_the_loop(tracked)

    async def run(self, work: Coroutine[Any, Any, T], answer: asyncio.Future[T]) -> None:
        """Runs a coroutine and puts its result or error into `answer`, unless that was given up."""
        self._is_awaited = True
        try:
            value = await guarded_await(work)
        except Exception as error:
            if not answer.done():
                answer.set_exception(error)
        else:
            if not answer.done():
                answer.set_result(value)
        finally:
            self._is_awaited = False


class FunctionCalls:
    """Gives up calls that take too long. Until such a call has ended, the functions of its schedule are not called
    again."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._overdue: dict[tuple[str, str], FunctionCall] = {}

    async def within_limit(self, schedule: Schedule, work: Callable[[FunctionCall], Coroutine[Any, Any, T]]) -> T:
        """Returns the result of `work`. Raises WaitTimeout if the functions take too long, and what they raise."""
        if not schedule.plan.functions:
            return await work(FunctionCall(self._runtime))
        key = schedule.tenant, schedule.name
        overdue = self._overdue.get(key)
        if overdue is not None and not overdue.over:
            raise WaitTimeout(f"{_named(schedule)}, which was given up before, has still not ended")
        self._overdue.pop(key, None)
        call = FunctionCall(self._runtime)
        answer: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        task = self._runtime.spawn(call.run(work(call), answer), name="ropewalk-schedule-function")

        def give_up() -> None:
            if not answer.done():
                self._overdue[key] = call
                answer.set_exception(
                    WaitTimeout(f"{_named(schedule)} took more than {FUNCTION_SECONDS_MAX:g} s and is given up")
                )

        timer = self._runtime.after(FUNCTION_SECONDS_MAX, give_up)
        try:
            return await answer
        finally:
            timer.cancel()
            task.cancel()


def _named(schedule: Schedule) -> str:
    names = " or ".join(repr(name) for name in schedule.plan.functions)
    return f"the function {names} of schedule {schedule.name!r}"
