"""Two ways to wait on an event loop. A `Wake` stays set until its only waiter has seen it. A `Signal` wakes everybody
who waits at that moment, and nobody who waits later."""

from __future__ import annotations

import asyncio
import contextlib

from ropewalk.ports.runtime import Runtime


class Wake:
    """A flag for which one task waits. It is created on the loop of that task, and setting it twice before the task has
    seen it wakes the task once."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._loop = asyncio.get_running_loop()
        self._is_set = False
        self._waiter: asyncio.Future[bool] | None = None

    def set(self) -> None:
        """Wakes the waiter. Only the loop's own thread may call this."""
        self._is_set = True
        if self._waiter is not None:
            self._end_wait(woken=True)

    def set_threadsafe(self) -> None:
        """Wakes the waiter from any thread. This does nothing if the loop is closed."""
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self.set)

    def clear(self) -> None:
        """Forgets that the flag was set, so that the next wait does not end at once."""
        self._is_set = False

    async def wait(self, timeout_seconds: float | None = None) -> bool:
        """Waits until the flag is set, clears it and returns True. Returns False if the time is up before."""
        if not self._is_set:
            self._waiter = self._loop.create_future()
            timer = None
            if timeout_seconds is not None:
                timer = self._runtime.after(timeout_seconds, lambda: self._end_wait(woken=False))
            try:
                woken = await self._waiter
            finally:
                self._waiter = None
                if timer is not None:
                    timer.cancel()
            if not woken:
                return False
        self._is_set = False
        return True

    def _end_wait(self, *, woken: bool) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(woken)


class Signal:
    """An event without memory: firing it wakes everybody who waits at that moment."""

    def __init__(self) -> None:
        self._waiters: set[asyncio.Future[None]] = set()

    def fire(self) -> None:
        """Wakes everybody who waits now."""
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)

    async def wait(self) -> None:
        """Waits until the signal is fired the next time."""
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.add(waiter)
        try:
            await waiter
        finally:
            self._waiters.discard(waiter)
