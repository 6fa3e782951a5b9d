"""Calls of a handler that wait for a store that is away, for as long as its attempt may go on."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from ropewalk.errors import StoreUnavailable
from ropewalk.runtime.supervisor import BACKING_OF_STORE_CALLS, Failures, spread
from ropewalk.runtime.wake import Wake
from ropewalk.worker.context import WorkerContext

T = TypeVar("T")


class StoreCalls:
    """Those of one attempt.

    check: raises LeaseLost or JobCancelled where the attempt must end and nothing may wait any longer. A handler in a
        thread cannot be told in any other way.
    """

    def __init__(self, worker_context: WorkerContext, check: Callable[[StoreUnavailable], None]) -> None:
        self._worker_context = worker_context
        self._check = check
        self._waiting: list[Wake] = []

    async def answer(self, call: Callable[[], Awaitable[T]]) -> T:
        """What the store answers. Every call that comes here may be repeated after a lost answer."""
        failures: Failures | None = None
        while True:
            try:
                return await call()
            except StoreUnavailable as error:
                worker_context = self._worker_context
                worker_context.contact.failed()
                self._check(error)
                if failures is None:
                    failures = Failures(BACKING_OF_STORE_CALLS)
                wait = failures.add(error, worker_context.runtime.monotonic(), succeeded_before=False)
                await self._wait(spread(wait, worker_context.runtime))
                self._check(error)

    def wake(self) -> None:
        """The attempt was told to end: look at once."""
        for wake in self._waiting:
            wake.set()

    async def _wait(self, seconds: float) -> None:
        wake = Wake(self._worker_context.runtime)
        self._waiting.append(wake)
        try:
            await wake.wait(seconds)
        finally:
            self._waiting.remove(wake)
