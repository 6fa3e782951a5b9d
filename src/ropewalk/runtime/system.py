"""The system runtime implements the Runtime port with the real clock, random numbers, tasks and threads. Only this
module asks the system for them.

Blocking calls run in daemon threads. concurrent.futures is not used, because the interpreter joins its threads at exit,
so that one stuck handler would keep the process from ending.
"""

from __future__ import annotations

import asyncio
import secrets
import threading
import time
from collections.abc import Callable, Coroutine
from contextvars import copy_context
from queue import SimpleQueue
from random import Random  # noqa: TID251 # this module is the seam
from typing import Any, Final, TypeVar

from ropewalk.definitions.job import new_id
from ropewalk.domain.shown_errors import safe_error_text
from ropewalk.domain.time import SECOND
from ropewalk.ports.runtime import Runtime, Task, Timer

T = TypeVar("T")


class DaemonThreads:
    """A pool of daemon threads that grows to the number of calls that run at once, and reuses idle threads."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._calls: SimpleQueue[Callable[[], object]] = SimpleQueue()
        self._idle = 0
        self._lock = threading.Lock()

    async def run(self, call: Callable[[], T]) -> T:
        """Runs a call in a thread. Returns its value or raises its error. A cancellation ends only the wait for the
        call, because a thread cannot be stopped."""
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
            answer.set_exception(
                RuntimeError(f"handler raised StopIteration: {safe_error_text(error)}")
            )  # futures refuse it
        else:
            answer.set_exception(error)

    if not loop.is_closed():
        loop.call_soon_threadsafe(settle)


TOLERANCE_SECONDS: Final = 1.0
"""The wall clock may run ahead of the monotonic clock by this much without counting as a jump."""
HOLD_SECONDS: Final = 3.0
"""The time that other workers get to renew their leases after a jump: several rounds of the heartbeat, even if the
store is busy."""


class ClockGuard:
    """Notices that the wall clock jumped forwards, because a computer slept or its clock was set.

    By the store's clock every lease may then look expired although its holder is alive. So a worker renews all its
    leases at once after a jump, and takes back no lease of others until they have had the time to do the same. The
    fences keep the jobs safe in any case; the guard only avoids running them twice.

    The worker's loop and its heartbeat both call the guard. A race between them only notices a jump twice.
    """

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._ahead = self._wall_ahead()
        self._jumped_at: float | None = None

    def look(self) -> bool:
        """Returns whether the clock has jumped since the last look."""
        ahead = self._wall_ahead()
        jumped = ahead - self._ahead > TOLERANCE_SECONDS
        self._ahead = ahead
        if jumped:
            self._jumped_at = self._runtime.monotonic()
        return jumped

    @property
    def calm(self) -> bool:
        """Whether the last jump, if there was one, is so long ago that every live worker has renewed its leases."""
        self.look()
        return self._jumped_at is None or self._runtime.monotonic() - self._jumped_at > HOLD_SECONDS

    def _wall_ahead(self) -> float:
        """Returns the wall clock minus the monotonic clock, in seconds."""
        return self._runtime.now() / SECOND - self._runtime.monotonic()


class SystemRuntime(Runtime):
    """The runtime that apps use outside of tests."""

    def __init__(self) -> None:
        self._random = Random()  # noqa: S311 # spreads retries; no secret depends on it
        self._tasks: set[LoopTask] = set()
        self._threads = DaemonThreads("ropewalk-handler")

    def now(self) -> int:
        return time.time_ns() // 1000

    # This is called several times for each job, so it is the function itself, without a call in between.
    monotonic = staticmethod(time.monotonic)  # noqa: TID251 # pyright: ignore[reportAssignmentType]  the seam

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)  # noqa: TID251 # the seam

    def after(self, seconds: float, call: Callable[[], object]) -> Timer:
        return asyncio.get_running_loop().call_later(seconds, call)

    def random(self) -> float:
        return self._random.random()

    def new_id(self) -> str:
        return new_id()

    def token(self) -> str:
        return secrets.token_hex(8)

    def spawn(self, work: Coroutine[Any, Any, object], *, name: str) -> Task:
        task = LoopTask(work, name)
        # asyncio keeps only weak references to tasks, so a task without a reference may vanish before its end.
        self._tasks.add(task)
        task.on_end(lambda: self._tasks.discard(task))
        return task

    def thread(self, main: Callable[[], Coroutine[Any, Any, object]], *, name: str) -> Task:
        return ThreadTask(main, name)

    async def in_thread(self, call: Callable[[], T]) -> T:
        return await self._threads.run(call)

    async def call_off_the_loop(self, call: Callable[[], T]) -> T:
        return await self._threads.run(call)


class LoopTask(Task):
    """A task on the loop that is running when it is made."""

    def __init__(self, work: Coroutine[Any, Any, object], name: str) -> None:
        self._loop = asyncio.get_running_loop()
        self._task = self._loop.create_task(work, name=name)

    def on_end(self, call: Callable[[], object]) -> None:
        """Has `call` called when the task has ended."""
        self._task.add_done_callback(lambda _: call())

    def cancel(self) -> object:
        if self._loop.is_closed():
            return None
        return self._loop.call_soon_threadsafe(self._task.cancel)

    async def finished(self) -> None:
        await asyncio.wait([self._task])


class ThreadTask(Task):
    """A coroutine on a loop of its own in a daemon thread, which does not keep the interpreter alive."""

    def __init__(self, main: Callable[[], Coroutine[Any, Any, object]], name: str) -> None:
        self._main = main
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[object] | None = None
        self._cancelled = False
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def cancel(self) -> object:
        with self._lock:
            self._cancelled = True
            if self._loop is not None and self._task is not None and not self._loop.is_closed():
                self._loop.call_soon_threadsafe(self._task.cancel)
        return None

    async def finished(self) -> None:
        await asyncio.to_thread(self._thread.join)

    def _run(self) -> None:
        try:
            asyncio.run(self._watched())
        except asyncio.CancelledError:
            return

    async def _watched(self) -> object:
        with self._lock:
            if self._cancelled:
                return None
            self._loop = asyncio.get_running_loop()
            self._task = asyncio.current_task()
        try:
            return await self._main()
        finally:
            with self._lock:
                self._task = None
