"""The real world behind the runtime seam: the only place that asks the system for time, chance, tasks and threads."""

from __future__ import annotations

import asyncio
import secrets
import threading
import time
from collections.abc import Callable, Coroutine
from random import Random  # noqa: TID251 # this module is the seam
from typing import Any, TypeVar

from ropewalk.definitions.identity import new_id
from ropewalk.ports.runtime import Runtime, Task, Timer
from ropewalk.runtime.threads import DaemonThreads

T = TypeVar("T")


class SystemRuntime(Runtime):
    def __init__(self) -> None:
        self._random = Random()  # noqa: S311 # spreads retries; no secret depends on it
        self._tasks: set[LoopTask] = set()
        self._threads = DaemonThreads("ropewalk-handler")

    def now(self) -> int:
        return time.time_ns() // 1000

    # Asked several times a job: without a frame of its own.
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
        # asyncio keeps only weak references to tasks: one nobody holds may vanish in the middle.
        self._tasks.add(task)
        task.on_end(lambda: self._tasks.discard(task))
        return task

    def thread(self, main: Callable[[], Coroutine[Any, Any, object]], *, name: str) -> Task:
        return ThreadTask(main, name)

    async def in_thread(self, call: Callable[[], T]) -> T:
        return await self._threads.run(call)


class LoopTask(Task):
    def __init__(self, work: Coroutine[Any, Any, object], name: str) -> None:
        self._loop = asyncio.get_running_loop()
        self._task = self._loop.create_task(work, name=name)

    def on_end(self, call: Callable[[], object]) -> None:
        self._task.add_done_callback(lambda _: call())

    def cancel(self) -> object:
        if self._loop.is_closed():
            return None
        return self._loop.call_soon_threadsafe(self._task.cancel)

    async def finished(self) -> None:
        await asyncio.wait([self._task])


class ThreadTask(Task):
    """A coroutine on a loop of its own in a daemon thread: it must never keep the interpreter alive."""

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
