"""Calls of a handler to the store: while the store is away they wait, for as long as the attempt may go on. Jobs that a
handler spawns have keys, so that neither a repeated call nor a later attempt spawns them again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable
from typing import TypeVar

from ropewalk.domain.jobs.idempotency import input_hash
from ropewalk.domain.jobs.record import NewJob
from ropewalk.errors import StoreUnavailable
from ropewalk.runtime.supervisor import BACKING_OF_STORE_CALLS, Failures, spread
from ropewalk.runtime.wake import Wake
from ropewalk.worker.context import WorkerContext

T = TypeVar("T")


class StoreCalls:
    """The calls to the store of one attempt.

    check: raises LeaseLost or JobCancelled if the attempt must end, so that its calls must not wait any longer. There
    is no other way to stop a handler that runs in a thread.
    """

    def __init__(self, worker_context: WorkerContext, check: Callable[[StoreUnavailable], None]) -> None:
        self._worker_context = worker_context
        self._check = check
        self._waiting: list[Wake] = []

    async def answer(self, call: Callable[[], Awaitable[T]]) -> T:
        """Returns the answer of the store. Every call that is made here may be repeated after its answer was lost."""
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
        """Has all waiting calls check at once whether the attempt must end."""
        for wake in self._waiting:
            wake.set()

    async def _wait(self, seconds: float) -> None:
        wake = Wake(self._worker_context.runtime)
        self._waiting.append(wake)
        try:
            await wake.wait(seconds)
        finally:
            self._waiting.remove(wake)


class SpawnKeys:
    """The spawn keys of the jobs of one attempt that were spawned without a key of their own."""

    def __init__(self) -> None:
        self._spawned: Counter[tuple[str, bytes]] = Counter()
        """How often the attempt has spawned a job of the same type and input."""

    def default(self, new: NewJob) -> str:
        """Returns a key made of the type, the input, and the count of such jobs so far. A later attempt gets the same
        keys."""
        hashed = input_hash(new.input)
        pair = (new.type, hashed)
        self._spawned[pair] += 1
        return f"{new.type[:180]}:{hashed.hex()}:{self._spawned[pair]}"
