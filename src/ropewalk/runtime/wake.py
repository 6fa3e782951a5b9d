"""Two ways to wait on one loop: `Wake` is remembered until one waiter saw it, `Signal` wakes all who wait now."""

from __future__ import annotations

import asyncio
import contextlib

from ropewalk.ports.runtime import Runtime


class Wake:
    """Created on the loop that waits, for one waiter. Setting it twice before it is seen wakes once."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._loop = asyncio.get_running_loop()
        self._is_set = False
        self._waiter: asyncio.Future[bool] | None = None

    def set(self) -> None:
        """On the loop itself."""
        self._is_set = True
        if self._waiter is not None:
            self._end_wait(woken=True)

    def set_threadsafe(self) -> None:
        """From anywhere; a loop that is gone needs no waking."""
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self.set)

    def clear(self) -> None:
        self._is_set = False

    async def wait(self, timeout_seconds: float | None = None) -> bool:
        """True when it was set (and clears it), False when the time was up."""
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
    """Fired, it wakes everybody who waits at that moment and is forgotten."""

    def __init__(self) -> None:
        self._waiters: set[asyncio.Future[None]] = set()

    def fire(self) -> None:
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)

    async def wait(self) -> None:
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.add(waiter)
        try:
            await waiter
        finally:
            self._waiters.discard(waiter)
