"""The runtime: clock, waiting, randomness, ids, tasks and threads.

All other code gets these from here, so that the whole library can run under a fake clock or in a simulation.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, Protocol, TypeVar

T = TypeVar("T")


class Task(Protocol):
    """A spawned coroutine or thread."""

    def cancel(self) -> object:
        """Asks the task to end. This may be called from any thread."""

    async def finished(self) -> None:
        """Waits until the task has ended in whatever way. This never raises the error of the task."""


class Timer(Protocol):
    """A call that was planned with `Runtime.after`."""

    def cancel(self) -> None: ...


class Runtime(Protocol):
    """The source of time, chance and concurrency for one process."""

    def now(self) -> int:
        """The wall clock in µs since 1970 in UTC. Only a store that lives in this process may decide by it."""
        ...

    def monotonic(self) -> float:
        """A clock in seconds that is never set back. Durations are measured with it."""
        ...

    async def sleep(self, seconds: float) -> None: ...

    def after(self, seconds: float, call: Callable[[], object]) -> Timer:
        """Calls a function once on the current loop, unless the timer is cancelled before."""
        ...

    def random(self) -> float:
        """A random number in [0, 1)."""
        ...

    def new_id(self) -> str:
        """A new job id. Ids that are made later sort later."""
        ...

    def token(self) -> str:
        """A name for a worker instance that nobody can guess."""
        ...

    def spawn(self, work: Coroutine[Any, Any, object], *, name: str) -> Task:
        """Runs a coroutine on the current loop. The runtime keeps it alive, and the caller supervises it."""
        ...

    def thread(self, main: Callable[[], Coroutine[Any, Any, object]], *, name: str) -> Task:
        """Runs `main()` on an event loop of its own in a thread of its own; in a simulation, as a task.

        The thread never keeps the interpreter from ending.
        """
        ...

    async def in_thread(self, call: Callable[[], T]) -> T:
        """Runs a blocking call in a thread, so that it does not block the loop."""
        ...

    async def call_off_the_loop(self, call: Callable[[], T]) -> T:
        """Runs a call that should take only a moment, but must not block the loop if it takes longer.

        A fake clock runs the call on the loop, so that no time passes in the meantime.
        """
        ...
