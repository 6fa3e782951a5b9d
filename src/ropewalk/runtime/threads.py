"""Daemon threads for blocking calls: as many as are busy at once, reused when idle.

Not concurrent.futures: its threads are joined at exit, so one stuck handler would hang the interpreter.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextvars import copy_context
from queue import SimpleQueue
from typing import TypeVar

T = TypeVar("T")


class DaemonThreads:
    def __init__(self, name: str) -> None:
        self._name = name
        self._calls: SimpleQueue[Callable[[], object]] = SimpleQueue()
        self._idle = 0
        self._lock = threading.Lock()

    async def run(self, call: Callable[[], T]) -> T:
        """The call's value or error. Cancelling stops the wait, never the call: a thread cannot be stopped."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[T] = loop.create_future()
        context = copy_context()

        def work() -> None:
            try:
                value = context.run(call)
            except BaseException as error:
                _deliver(loop, answer, None, error)
            else:
                _deliver(loop, answer, value, None)

        self._start(work)
        return await answer

    def _start(self, work: Callable[[], object]) -> None:
        with self._lock:
            if self._idle > 0:
                self._idle -= 1
            else:
                threading.Thread(target=self._serve, name=self._name, daemon=True).start()
        self._calls.put(work)

    def _serve(self) -> None:
        while True:
            self._calls.get()()
            with self._lock:
                self._idle += 1


def _deliver(
    loop: asyncio.AbstractEventLoop, answer: asyncio.Future[T], value: T | None, error: BaseException | None
) -> None:
    def settle() -> None:
        if answer.cancelled():
            return
        if error is None:
            answer.set_result(value)  # type: ignore[arg-type] # None only together with an error
        elif isinstance(error, StopIteration):
            answer.set_exception(RuntimeError(f"handler raised StopIteration: {error}"))  # futures refuse it
        else:
            answer.set_exception(error)

    if not loop.is_closed():
        loop.call_soon_threadsafe(settle)
