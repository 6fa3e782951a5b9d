"""A runtime whose clock moves only when a test says so.

    runtime = FakeRuntime()
    app = App("memory://", runtime=runtime)
    ...
    await runtime.advance(hours=3)      # everything due within these three hours has happened, in order

The clock stands still between such calls, so the speed of the machine does not matter. Random numbers and ids are
seeded: a test sees the same values in every run. Everything runs as tasks of the current event loop, even what has a
thread with a loop of its own in production. Only blocking calls get a real thread, because they may wait for the loop.
"""

from __future__ import annotations

import asyncio
import heapq
import threading
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime
from random import Random  # noqa: TID251  a runtime is the seam itself
from typing import Any, Final, TypeVar

from ropewalk.domain import checks
from ropewalk.domain.ids import uuid7
from ropewalk.domain.time import SECOND, Instant, Span, to_instant, to_span
from ropewalk.ports.runtime import Runtime, Task, Timer
from ropewalk.runtime.system import DaemonThreads

T = TypeVar("T")

START: Final = datetime(2030, 1, 1, tzinfo=UTC)
"""The time at which the clock starts unless another one is given."""
_ROUNDS_PER_ALARM: Final = 50
"""Turns of the event loop after each alarm: enough for a woken task to wake several others, one after another."""
_COUNTER_BITS: Final = 12
"""Bits of the counter in an id; when it overflows, the millisecond of the id is raised."""


class FakeRuntime(Runtime):
    """A runtime for tests, with a clock that moves only in `advance` and with seeded random numbers and ids."""

    def __init__(self, start: datetime = START, *, seed: int = 0) -> None:
        self._start = to_instant(start, "start")
        self._now = self._start
        self._wall_ahead: Span = 0
        self._random = Random(checks.integer(seed, "seed"))  # noqa: S311  deterministic on purpose
        self._ids_made = 0
        self._alarms: list[Alarm] = []
        self._alarms_set = 0
        self._lock = threading.Lock()
        self._tasks: set[asyncio.Task[object]] = set()
        self._threads = DaemonThreads("ropewalk-handler")

    async def advance(
        self, seconds: float = 0.0, *, minutes: float = 0.0, hours: float = 0.0, days: float = 0.0
    ) -> None:
        """Let time pass; each task that sleeps wakes at its own instant and runs before the clock moves on."""
        parts = (("seconds", seconds, 1), ("minutes", minutes, 60), ("hours", hours, 3600), ("days", days, 86_400))
        until = self._now + sum(to_span(value, name) * factor for name, value, factor in parts)
        await self.settle()  # what was just started sets its alarms from the present, not from the future
        while (alarm := self._next_alarm(until)) is not None:
            self._now = max(self._now, alarm.at)
            alarm.ring()
            await self.settle()
        self._now = until
        await self.settle()

    def set_clock(self, *, ahead_seconds: float = 0.0, back_seconds: float = 0.0) -> None:
        """Set the wall clock ahead or back, as an operator corrects a wrong clock.

        No time passes: a task that sleeps goes on sleeping for the rest of its span, and `monotonic` does not change.
        """
        self._wall_ahead += to_span(ahead_seconds, "ahead_seconds") - to_span(back_seconds, "back_seconds")

    async def settle(self) -> None:
        """Run every task that can run now, without letting time pass."""
        for _ in range(_ROUNDS_PER_ALARM):
            await _one_round()

    def now(self) -> Instant:
        return self._now + self._wall_ahead

    def monotonic(self) -> float:
        return (self._now - self._start) / SECOND

    async def sleep(self, seconds: float) -> None:
        if seconds <= 0:
            await _one_round()
            return
        woken = asyncio.Event()
        alarm = self._set_alarm(seconds, woken.set)
        try:
            await woken.wait()
        finally:
            alarm.cancel()

    def after(self, seconds: float, call: Callable[[], object]) -> Timer:
        return self._set_alarm(seconds, call)

    def random(self) -> float:
        return self._random.random()

    def new_id(self) -> str:
        """Return an id that is greater than the last one, even within one instant."""
        self._ids_made += 1
        later_ms, counter = divmod(self._ids_made, 1 << _COUNTER_BITS)
        return uuid7(self._now + later_ms * 1000, counter, self._random.getrandbits(62))

    def token(self) -> str:
        return f"{self._random.getrandbits(64):016x}"

    def spawn(self, work: Coroutine[Any, Any, object], *, name: str) -> Task:
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return FakeTask(task)

    def thread(self, main: Callable[[], Coroutine[Any, Any, object]], *, name: str) -> Task:
        return self.spawn(main(), name=name)

    async def in_thread(self, call: Callable[[], T]) -> T:
        """Run a blocking call in a real thread, because it may wait for the event loop (`ctx.sync` does).

        The thread is a daemon, so a call that never returns does not keep the program from ending.
        """
        return await self._threads.run(call)

    async def call_off_the_loop(self, call: Callable[[], T]) -> T:
        """Run the call on the event loop, so that it returns at the instant of the fake clock at which it was made."""
        return call()

    def _set_alarm(self, seconds: float, call: Callable[[], object]) -> Alarm:
        with self._lock:
            self._alarms_set += 1
            at = self._now + max(0, round(seconds * SECOND))
            alarm = Alarm(at, self._alarms_set, asyncio.get_running_loop(), call)
            heapq.heappush(self._alarms, alarm)
        return alarm

    def _next_alarm(self, until: Instant) -> Alarm | None:
        with self._lock:
            while self._alarms and self._alarms[0].at <= until:
                alarm = heapq.heappop(self._alarms)
                if not alarm.cancelled:
                    return alarm
        return None


class Alarm(Timer):
    """A timer that calls a function at an instant of the fake clock, on the event loop that set it."""

    def __init__(self, at: Instant, order: int, loop: asyncio.AbstractEventLoop, call: Callable[[], object]) -> None:
        self.at = at
        self.cancelled = False
        self._order = order
        self._loop = loop
        self._call = call

    def __lt__(self, other: Alarm) -> bool:
        return (self.at, self._order) < (other.at, other._order)

    def cancel(self) -> None:
        self.cancelled = True

    def ring(self) -> None:
        """Call the function, on the event loop that set the alarm unless that loop is closed."""
        if self._loop is asyncio.get_running_loop():
            self._call()
        elif not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._call)


class FakeTask(Task):
    """A task of an event loop, behind the protocol of the runtime."""

    def __init__(self, task: asyncio.Task[object]) -> None:
        self._task = task

    def cancel(self) -> object:
        loop = self._task.get_loop()
        return None if loop.is_closed() else loop.call_soon_threadsafe(self._task.cancel)

    async def finished(self) -> None:
        await asyncio.wait([self._task])


async def _one_round() -> None:
    await asyncio.sleep(0)  # noqa: TID251  the seam: gives every ready task one turn
