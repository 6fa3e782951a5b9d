"""A supervisor keeps background loops alive: if a loop fails, the supervisor reports the error, waits, and starts the
loop again.

A loop ends only when it returns or is stopped. If something in the loop raised CancelledError, or if somebody else
cancelled its task, the loop is started again. While the store is away (StoreUnavailable), a loop waits for it, however
long that takes, because a new process could not reach the store either. If a loop fails for another reason and has no
success for `give_up_seconds`, its worker would do nothing without knowing it, so the supervisor calls `on_give_up`.
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
    """The waits before a failing loop is started again, which double from `first_seconds` up to `max_seconds`, and the
    time after which the supervisor gives up."""

    first_seconds: float = 0.05
    max_seconds: float = 5.0
    give_up_seconds: float = 60.0


BACKING_OF_STORE_CALLS: Final = Backing(first_seconds=0.05, max_seconds=1.0)
"""The waits between the tries of a call that a handler waits for, or that renews leases."""


class Supervisor:
    """Runs the loops of one component, and reports their errors to `on_error`."""

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
        """Whether the component is about to stop its loops. Until it does, a cancelled loop is still started again, but
        its cancellation is not reported, because `asyncio.run` cancels all tasks when it ends."""
        self.on_give_up: Callable[[BaseException, str], object] | None = None
        """This is called when a loop keeps failing. None means that loops are restarted for ever, which is right inside
        a user's program, because the library must not decide to end it."""

    def start(
        self,
        name: str,
        loop: Callable[[], Coroutine[Any, Any, None]],
        progress: Callable[[], object] | None = None,
    ) -> None:
        """Keeps `loop` running in the background. For `progress` see `keep`."""
        if not self._stopping:
            self._tasks.append(self._runtime.spawn(self._kept(name, loop, progress), name=f"ropewalk-{name}"))

    async def _kept(
        self, name: str, loop: Callable[[], Coroutine[Any, Any, None]], progress: Callable[[], object] | None
    ) -> None:
        try:
            await self.keep(name, loop, progress)
        except asyncio.CancelledError:
            if not self._stopping:
                # The loop is not started at once: if the whole event loop is ending, this call never happens.
                self._runtime.after(self._backing.first_seconds, lambda: self._cancelled(name, loop, progress))
            raise

    def _cancelled(
        self, name: str, loop: Callable[[], Coroutine[Any, Any, None]], progress: Callable[[], object] | None
    ) -> None:
        """Starts a loop again whose task was cancelled by somebody other than the supervisor."""
        if not self._stopping and not self.ending:
            self._on_error(RuntimeError(f"the task of the loop {name} was cancelled, and it is started again"), name)
        self.start(name, loop, progress)

    async def keep(
        self, name: str, loop: Callable[[], Awaitable[None]], progress: Callable[[], object] | None = None
    ) -> None:
        """Runs `loop` until it returns. After an error it waits, twice as long each time, and runs the loop again.

        `progress` returns a value that changes whenever the loop has a success, such as the number of claims that were
        answered. Without `progress`, a loop that ran for longer than the longest wait counts as a success.
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
        """Cancels all loops and waits until they have ended."""
        self._stopping = True
        for task in self._tasks:
            task.cancel()
        for task in self._tasks:
            await task.finished()
        self._tasks.clear()


def spread(seconds: float, runtime: Runtime) -> float:
    """Returns the wait shortened by up to a half at random, so that loops which failed together do not all try again at
    the same time."""
    return seconds * (0.5 + runtime.random() / 2)


class Failures:
    """The failures of one loop since its last success, from which follow the wait after each failure and the time to
    give up.

    The time is counted from the first failure, and not from the start of the run that ended with it.
    """

    def __init__(self, backing: Backing) -> None:
        self._backing = backing
        self._pause = GrowingPause(backing.first_seconds, backing.max_seconds)
        self._broken_since: float | None = None
        """The time of the first failure for another reason than an absent store; None if there was none."""

    def add(self, error: Exception, now: float, *, succeeded_before: bool) -> float:
        """Records one more failure. Returns how many seconds to wait before the next try."""
        if succeeded_before:
            self._pause.start_over()
            self._broken_since = None
        if isinstance(error, StoreUnavailable):
            self._broken_since = None
        elif self._broken_since is None:
            self._broken_since = now
        return self._pause.after()

    def hopeless(self, now: float) -> bool:
        """Whether the loop has failed for `give_up_seconds` for another reason than an absent store."""
        return self._broken_since is not None and now - self._broken_since > self._backing.give_up_seconds
