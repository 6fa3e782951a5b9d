"""Keeps background loops alive: an error is reported, the loop backs off and starts again.

A loop ends only when it returns by itself or is cancelled. One that keeps failing without a success for
`give_up_seconds` makes a worker that is deaf and does not know it: the supervisor then calls `on_give_up`, if set.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from msgspec import Struct

from ropewalk.ports.runtime import Runtime, Task


class Backing(Struct, frozen=True):
    """How a failing loop is restarted."""

    first_seconds: float = 0.05
    max_seconds: float = 5.0
    give_up_seconds: float = 60.0


class Supervisor:
    """Holds the loops of one component, and its errors."""

    def __init__(
        self,
        runtime: Runtime,
        *,
        on_error: Callable[[BaseException, str], object],
        backing: Backing | None = None,
    ) -> None:
        self._runtime = runtime
        self._on_error = on_error
        self._backing = backing or Backing()
        self._tasks: list[Task] = []
        self.restarts = 0
        self.on_give_up: Callable[[BaseException, str], object] | None = None
        """None goes on for ever: right inside somebody else's program, where ending is not ours to decide"""

    def start(self, name: str, loop: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self._tasks.append(self._runtime.spawn(self.keep(name, loop), name=f"ropewalk-{name}"))

    async def keep(self, name: str, loop: Callable[[], Awaitable[None]]) -> None:
        """Run `loop` until it returns; after an error wait, twice as long each time, and run it again."""
        wait = self._backing.first_seconds
        failing_since: float | None = None
        while True:
            began = self._runtime.monotonic()
            try:
                return await loop()
            except asyncio.CancelledError:
                raise
            except Exception as error:
                self.restarts += 1
                self._on_error(error, name)
                ended = self._runtime.monotonic()
                if ended - began > self._backing.max_seconds:
                    # It worked for a while: this is a new trouble, not the old one going on.
                    wait, failing_since = self._backing.first_seconds, None
                failing_since = began if failing_since is None else failing_since
                if self.on_give_up is not None and ended - failing_since > self._backing.give_up_seconds:
                    self.on_give_up(error, name)
                    return None
            await self._runtime.sleep(wait * (0.5 + self._runtime.random() / 2))
            wait = min(wait * 2, self._backing.max_seconds)

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        for task in self._tasks:
            await task.finished()
        self._tasks.clear()
