"""Keeps background loops alive: an error is reported, the loop backs off and starts again.

A loop ends only when it returns by itself or is stopped: one in which something raised CancelledError, or whose task
somebody else cancelled, is started again. While the store is away (StoreUnavailable) a loop waits for it, however long
that takes: a new process could not reach the store either. A loop that keeps failing for another reason without a
success for `give_up_seconds` makes a worker that does nothing and does not know it: the supervisor then calls
`on_give_up`, if set.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Final

from msgspec import Struct

from ropewalk.domain.growing_pause import GrowingPause
from ropewalk.domain.user_calls import as_error, is_being_cancelled
from ropewalk.errors import StoreUnavailable
from ropewalk.ports.runtime import Runtime, Task


class Backing(Struct, frozen=True):
    """How a failing loop is restarted."""

    first_seconds: float = 0.05
    max_seconds: float = 5.0
    give_up_seconds: float = 60.0


BACKING_OF_STORE_CALLS: Final = Backing(first_seconds=0.05, max_seconds=1.0)
"""How a worker repeats calls of a store that a handler waits for, or that keep its leases."""


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
        self._stopping = False
        self.ending = False
        """Set when what the loops belong to is about to stop them. It may still need them until then, but that somebody
        cancelled them is no news: `asyncio.run` cancels all tasks when it ends."""
        self.on_give_up: Callable[[BaseException, str], object] | None = None
        """What is called when a loop keeps failing. None means that loops are restarted for ever, which is right inside
        somebody else's program, where ending is not ours to decide."""

    def start(
        self,
        name: str,
        loop: Callable[[], Coroutine[Any, Any, None]],
        progress: Callable[[], object] | None = None,
    ) -> None:
        """Keep `loop` running in the background. `progress` as in `keep`."""
        if not self._stopping:
            self._tasks.append(self._runtime.spawn(self._kept(name, loop, progress), name=f"ropewalk-{name}"))

    async def _kept(
        self, name: str, loop: Callable[[], Coroutine[Any, Any, None]], progress: Callable[[], object] | None
    ) -> None:
        try:
            await self.keep(name, loop, progress)
        except asyncio.CancelledError:
            if not self._stopping:
                # Later, not at once: when the whole event loop is being ended, there is no later.
                self._runtime.after(self._backing.first_seconds, lambda: self._cancelled(name, loop, progress))
            raise

    def _cancelled(
        self, name: str, loop: Callable[[], Coroutine[Any, Any, None]], progress: Callable[[], object] | None
    ) -> None:
        """Somebody who is not the supervisor cancelled the task of a loop."""
        if not self._stopping and not self.ending:
            self._on_error(RuntimeError(f"the task of the loop {name} was cancelled, and it is started again"), name)
        self.start(name, loop, progress)

    async def keep(
        self, name: str, loop: Callable[[], Awaitable[None]], progress: Callable[[], object] | None = None
    ) -> None:
        """Run `loop` until it returns; after an error wait, twice as long each time, and run it again.

        `progress` answers a value that changes whenever the loop succeeds at something, such as the number of claims
        that were answered. Without it a loop that ran for longer than the longest wait counts as having succeeded.
        """
        failures = Failures(self._backing)
        while True:
            began, before = self._runtime.monotonic(), None if progress is None else progress()
            try:
                return await loop()
            except (Exception, asyncio.CancelledError) as raised:
                if isinstance(raised, asyncio.CancelledError) and is_being_cancelled():
                    raise
                error = as_error(raised)
                self._on_error(error, name)
                now = self._runtime.monotonic()
                succeeded = now - began > self._backing.max_seconds if progress is None else progress() != before
                wait = failures.add(error, now, succeeded_before=succeeded)
                if self.on_give_up is not None and failures.hopeless(now):
                    self.on_give_up(error, name)
                    return None
            await self._runtime.sleep(spread(wait, self._runtime))

    async def stop(self) -> None:
        self._stopping = True
        for task in self._tasks:
            task.cancel()
        for task in self._tasks:
            await task.finished()
        self._tasks.clear()


def spread(seconds: float, runtime: Runtime) -> float:
    """A wait that is up to half shorter, at random: those that failed together do not all try again together."""
    return seconds * (0.5 + runtime.random() / 2)


class Failures:
    """The failures of one loop since it succeeded last: how long to wait after each, and when to give up.

    Time counts from the first failure, never from the beginning of the healthy run before it.
    """

    def __init__(self, backing: Backing) -> None:
        self._backing = backing
        self._pause = GrowingPause(backing.first_seconds, backing.max_seconds)
        self._broken_since: float | None = None
        """When the loop first failed for a reason other than an absent store."""

    def add(self, error: Exception, now: float, *, succeeded_before: bool) -> float:
        """Take in one more failure; the answer is how many seconds to wait before the next try."""
        if succeeded_before:
            self._pause.start_over()
            self._broken_since = None
        if isinstance(error, StoreUnavailable):
            self._broken_since = None
        elif self._broken_since is None:
            self._broken_since = now
        return self._pause.after()

    def hopeless(self, now: float) -> bool:
        """Whether the loop has failed for so long, for another reason than an absent store, that waiting is no help."""
        return self._broken_since is not None and now - self._broken_since > self._backing.give_up_seconds
