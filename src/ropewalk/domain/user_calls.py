"""Calls of a function of the user's that is no handler: whatever it raises is an ordinary error of that function.

A hook that asks a cancelled task for its result raises CancelledError, and one that calls sys.exit() raises SystemExit.
Neither is an Exception, so either would end the loop that made the call. A KeyboardInterrupt or SystemExit that the
handler of a signal raised while the function ran is not the function's, and passes.

What such a function answers is the user's, too: whoever asks an answer whether it is true, compares it or writes it out
calls functions of its class, and does so inside of the guard.
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
    """What the function answers. What it raises is an Exception; UnexpectedExit where it was none."""
    try:
        return call(*args, **kwargs)
    except Exception:
        raise
    except BaseException as error:
        raise as_error(error) from error


async def guarded_await(answer: Awaitable[T], whose: str = _FUNCTION) -> T:
    """The same for what has to be awaited. A cancellation of the task that awaits it passes.

    `whose` names what raised, for the message.
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
    """A context manager of the user's, in `async with`: what raises in it raises an Exception here.

    It hears what its block raises, and cannot swallow that.
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
    """What a function raised that was called, not awaited, as an Exception. Raises it again where a signal's handler
    raised it."""
    if isinstance(error, Exception):
        return error
    if isinstance(error, KeyboardInterrupt | SystemExit) and _came_from_a_signal(error):
        raise error
    unexpected = UnexpectedExit(f"{whose} raised {_exit(error)}: only an Exception tells what is wrong")
    unexpected.__cause__ = error
    return unexpected


def _exit(error: BaseException) -> str:
    """The name of the class, and what sys.exit() was called with."""
    code = error.code if isinstance(error, SystemExit) else None
    return type(error).__name__ if not isinstance(code, int | str) else f"{type(error).__name__}({code!r})"


def is_being_cancelled() -> bool:
    """Whether somebody cancelled the task that asks. If not, a CancelledError in it was raised by what it called."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _came_from_a_signal(error: BaseException) -> bool:
    """Python runs handlers of signals in the main thread, wherever that is: in the middle of the function, too."""
    if threading.current_thread() is not threading.main_thread():
        return False
    handlers = [signal.getsignal(each) for each in signal.valid_signals()]
    if isinstance(error, KeyboardInterrupt) and signal.default_int_handler in handlers:
        return True  # it leaves no frame to tell it by
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
