"""Calls functions of users that are not handlers, so that whatever they raise is an ordinary error.

A hook that asks a cancelled task for its result raises CancelledError, and one that calls sys.exit() raises SystemExit.
Neither is an Exception, so either would end the loop that called the hook. A KeyboardInterrupt or SystemExit that a
signal handler raised while the function ran does not come from the function, and is raised again.

The return values of such functions belong to users, too: testing them for truth, comparing them or turning them into
text calls functions of their classes. The library does this only inside a guarded call, too.
"""

from __future__ import annotations

import asyncio
import functools
import signal
import threading
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from types import CodeType, TracebackType
from typing import Final, Generic, ParamSpec, TypeVar

from ropewalk.errors import UnexpectedExit

P = ParamSpec("P")
T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

_FUNCTION: Final = "a function that is no handler"


def guarded(call: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Calls a function and returns its answer. If it raises something that is not an Exception, this raises
    UnexpectedExit."""
    try:
        return call(*args, **kwargs)
    except Exception:
        raise
    except BaseException as error:
        raise as_error(error) from error


async def guarded_await(answer: Awaitable[T], whose: str = _FUNCTION) -> T:
    """Awaits the answer of a function and returns it. If it raises something that is not an Exception, this raises
    UnexpectedExit, except for a cancellation of the current task.

    `whose` names the function in the message.
    """
    try:
        return await answer
    except Exception:
        raise
    except asyncio.CancelledError as error:
        if is_being_cancelled():
            raise
        raise as_error(error, whose) from error
    except BaseException as error:
        raise as_error(error, whose) from error


class GuardedContext(Generic[T_co]):
    """A context manager of a user in `async with`: whatever it raises is an Exception here.

    It learns what its block raises, but it cannot suppress that.
    """

    def __init__(self, make: Callable[[], AbstractAsyncContextManager[T_co]], whose: str) -> None:
        self._make = make
        self._whose = whose

    async def __aenter__(self) -> T_co:
        self._context = guarded(self._make)
        return await guarded_await(self._context.__aenter__(), self._whose)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        async def leave() -> None:
            try:
                await self._context.__aexit__(kind, error, trace)
            except BaseException as raised:
                if raised is not error:
                    raise

        await guarded_await(leave(), self._whose)


def as_error(error: BaseException, whose: str = _FUNCTION) -> Exception:
    """Returns what a function raised as an Exception. Raises it again if it came from a signal handler. The function
    must have been called and not awaited."""
    if isinstance(error, Exception):
        return error
    if isinstance(error, KeyboardInterrupt | SystemExit) and _came_from_a_signal(error):
        raise error
    unexpected = UnexpectedExit(f"{whose} raised {_exit(error)}: only an Exception tells what is wrong")
    unexpected.__cause__ = error
    return unexpected


def _exit(error: BaseException) -> str:
    """Returns the name of the class, with the argument of sys.exit()."""
    code = error.code if isinstance(error, SystemExit) else None
    return type(error).__name__ if not isinstance(code, int | str) else f"{type(error).__name__}({code!r})"


def is_being_cancelled() -> bool:
    """Whether somebody cancelled the current task. If not, a CancelledError in it came from something that it
    called."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _came_from_a_signal(error: BaseException) -> bool:
    """Whether a signal handler raised an error. Python runs these handlers in the main thread at any place, even in the
    middle of a function."""
    if threading.current_thread() is not threading.main_thread():
        return False
    handlers = [signal.getsignal(each) for each in signal.valid_signals()]
    if isinstance(error, KeyboardInterrupt) and signal.default_int_handler in handlers:
        return True  # This handler is built in and leaves no frame in the traceback.
    codes = {_code_of(each) for each in handlers if callable(each)}
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code in codes:
            return True
        trace = trace.tb_next
    return False


def _code_of(handler: object) -> CodeType | None:
    while isinstance(handler, functools.partial):
        handler = handler.func
    return getattr(handler, "__code__", None)
