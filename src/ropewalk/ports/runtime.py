"""The seam to the world: clock, waiting, randomness, ids, tasks and threads.

Everything else gets time and chance from here, so the whole engine also runs under a fake clock or a simulator.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, Protocol, TypeVar

T = TypeVar("T")


class Task(Protocol):
    """A spawned coroutine or thread."""

    def cancel(self) -> object:
        """Ask it to end. Safe from any thread."""

    async def finished(self) -> None:
        """Wait until it ended, whatever way; never raises its error."""


class Timer(Protocol):
    def cancel(self) -> None: ...


class Runtime(Protocol):
    def now(self) -> int:
        """Wall clock, µs since 1970 UTC. Only a store that lives in this process may decide by it."""
        ...

    def monotonic(self) -> float:
        """Seconds that only go forward: for waits and self-checks."""
        ...

    async def sleep(self, seconds: float) -> None: ...

    def after(self, seconds: float, call: Callable[[], object]) -> Timer:
        """Call back once on the current loop, unless cancelled before."""
        ...

    def random(self) -> float:
        """In [0, 1)."""
        ...

    def new_id(self) -> str:
        """A fresh job id; ids made later sort later."""
        ...

    def token(self) -> str:
        """An unguessable name, for worker instances."""
        ...

    def spawn(self, work: Coroutine[Any, Any, object], *, name: str) -> Task:
        """Run on the current loop; the runtime holds the reference, the caller supervises."""
        ...

    def thread(self, main: Callable[[], Coroutine[Any, Any, object]], *, name: str) -> Task:
        """Run `main()` on an event loop of its own in a thread of its own (under simulation: a task).

        The thread never keeps the interpreter alive.
        """
        ...

    async def in_thread(self, call: Callable[[], T]) -> T:
        """Run a blocking call off the loop."""
        ...

    async def call_off_the_loop(self, call: Callable[[], T]) -> T:
        """Run a call that should take a moment, and must not block the loop if it takes longer.

        A fake clock runs it on the loop, so that no time passes beside it.
        """
        ...
