"""Tracks the calls of a context that reach the store: those that the handler forgot to await, and those under way.

The calls are plain coroutines, so that everything that takes a coroutine (gather, wait_for, a TaskGroup) takes them.
Only calls that have not begun, or have not ended, are remembered. So at most one is remembered for a handler that
awaits one call after another.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import sys
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any, Final, Protocol, TypeVar, cast

from msgspec import Struct

from ropewalk.definitions.handler_exceptions import Suspend
from ropewalk.domain.jobs.lease import LossReason
from ropewalk.errors import LeaseLost

Verb = TypeVar("Verb", bound=Callable[..., Coroutine[Any, Any, Any]])
NAMED_MAX: Final = 3
"""How many forgotten calls an error names."""

TURNS_TO_BEGIN: Final = 2
"""A task begins in the next turn of the event loop, and a coroutine that a thread hands to the loop a turn later."""

_mark_as_coroutine_function: Final[Callable[[Any], Any]] = getattr(inspect, "markcoroutinefunction", lambda call: call)
"""Marks a function that returns a coroutine as a coroutine function, which `inspect` supports from Python 3.12 on."""


class Call(Struct, frozen=True, eq=False):
    """One call of a method of the context."""

    work: Coroutine[Any, Any, Any]
    name: str
    """The method as the handler names it, such as `ctx.spawn`."""
    blocking_form: str
    """What a plain function writes instead, such as `ctx.sync.spawn(...)`."""
    file: str
    line: int

    @property
    def begun(self) -> bool:
        """Whether the call has begun to run, because somebody awaits it or made a task of it."""
        return inspect.getcoroutinestate(self.work) != inspect.CORO_CREATED

    def __str__(self) -> str:
        return f"{self.name}(...) at {self.file}:{self.line}"


class CallUnderWay:
    """A call that has begun: a context manager that ends with the call. It may begin and end in any thread."""

    __slots__ = ("_calls", "_over", "_waiters")

    def __init__(self, calls: Calls) -> None:
        self._calls = calls
        self._over = False
        self._waiters: list[Future[None]] = []

    def __enter__(self) -> None:
        self._calls.under_way.add(self)

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self._calls.ended(self, error)
        self._over = True
        for waiter in self._waiters:
            if waiter.set_running_or_notify_cancel():
                waiter.set_result(None)

    async def wait(self) -> None:
        """Wait until the call has ended."""
        waiter = Future[None]()
        self._waiters.append(waiter)
        if not self._over:  # read after the waiter was added, so that an end in another thread cannot be missed
            await asyncio.wrap_future(waiter)


class Calls:
    """The calls of one attempt. A handler in a thread adds its calls from there."""

    def __init__(self) -> None:
        self._recent: list[Call] = []
        self._closed: str | None = None
        self._errors: list[Exception] | None = None
        """The errors of calls that were under way when the handler returned; None while it runs."""
        self.under_way: set[CallUnderWay] = set()
        """Calls that have begun and have not ended."""

    def add(self, call: Call) -> None:
        """Remember a call, and forget calls before it that have begun."""
        # Slices raise nothing if another thread has emptied the list meanwhile.
        while (last := self._recent[-1:]) and last[0].begun:
            del self._recent[-1:]
        self._recent.append(call)

    def close(self, why: str) -> None:
        """Refuse every further call, because the job is completed."""
        self._closed = why

    def check_open(self) -> None:
        """Raises LeaseLost once the job is completed."""
        if self._closed is not None:
            raise LeaseLost(self._closed, reason=LossReason.ALREADY_COMPLETED.value)

    def begin(self) -> CallUnderWay:
        """Begin a call, which is under way until the block ends."""
        return CallUnderWay(self)

    def ended(self, call: CallUnderWay, error: BaseException | None) -> None:
        """Take note of the end of a call, with the error that it raised."""
        self.under_way.discard(call)
        if self._errors is not None and isinstance(error, Exception):
            self._errors.append(error)

    async def wait_and_raise(self) -> None:
        """Wait as `wait` does after the handler has returned, and raise the error of the first call that fails."""
        self._errors = []
        await self.wait()
        if self._errors:
            raise self._errors[0]

    async def wait(self) -> None:
        """Wait until all calls have ended that have begun or are about to begin in a task."""
        for _ in range(TURNS_TO_BEGIN):
            if all(each.begun for each in self._recent):
                break
            await next_loop_turn()
        while under_way := list(self.under_way):
            for each in under_way:
                await each.wait()

    def never_awaited(self) -> str | None:
        """A sentence about the calls that the handler forgot to await, or None; these calls are closed.

        It is called after the handler has returned.
        """
        left = [each for each in self._recent if not each.begun]
        if not left:
            return None
        for each in left:
            each.work.close()
        named = ", ".join(str(each) for each in left[:NAMED_MAX])
        more = f" and {len(left) - NAMED_MAX} more" if len(left) > NAMED_MAX else ""
        was = "was" if len(left) == 1 else "were"
        return (
            f"{named}{more} {was} not awaited before the handler returned, and did nothing: write "
            f"`await {left[0].name}(...)`, or in a plain function {left[0].blocking_form}"
        )


async def next_loop_turn() -> None:
    """Let everything that is ready on this event loop run once."""
    turn = asyncio.Event()
    asyncio.get_running_loop().call_soon(turn.set)
    await turn.wait()


class Calling(Protocol):
    """An object with methods whose calls are remembered."""

    def calls(self) -> Calls: ...


def to_be_awaited(blocking_form: str, owner: str = "ctx") -> Callable[[Verb], Verb]:
    """Decorates an async method whose calls are remembered until they end.

    `blocking_form` is what a plain function writes instead.
    """

    def remembered(verb: Verb) -> Verb:
        name = f"{owner}.{verb.__name__}"

        @functools.wraps(verb)
        def call(self: Calling, *args: Any, **kwargs: Any) -> Any:
            calls = self.calls()
            calls.check_open()
            work: Any = _remembered_until_it_ends(calls, lambda: verb(self, *args, **kwargs))
            work.__qualname__ = verb.__qualname__  # Python names a coroutine that nobody awaits in a warning
            caller = sys._getframe(1)
            calls.add(Call(work, name, blocking_form, caller.f_code.co_filename, caller.f_lineno))
            return work

        return cast("Verb", _mark_as_coroutine_function(call))

    return remembered


async def _remembered_until_it_ends(calls: Calls, work: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    try:
        with calls.begin():
            return await work()
    except Suspend:
        # A suspension ends the attempt. A call beside it, such as a step, has to end and to be recorded before. It is
        # waited for here, and not after the handler has ended, because a TaskGroup would have cancelled it by then.
        await calls.wait()
        raise
