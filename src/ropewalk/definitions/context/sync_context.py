"""`ctx.sync`: the methods of the context that reach the store, for handlers that are plain functions."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeVar

from ropewalk.definitions.context.transaction import SyncTransaction
from ropewalk.definitions.job import Job
from ropewalk.domain.jobs.states import State
from ropewalk.domain.time import Seconds

if TYPE_CHECKING:
    from ropewalk.definitions.context.context import Context

P = ParamSpec("P")
T = TypeVar("T")

ONCE_TTL: Final = 86_400
"""Seconds for which a key of `once` is remembered by default."""


class SyncContext:
    """`ctx.sync`: methods of the context that block until the store has answered, for handlers that cannot await."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._port = context.port

    def checkpoint(self, value: object) -> None:
        """Write `value` durably; a later attempt reads it as `last_checkpoint`. Raises LeaseLost."""
        self._port.blocking(self._context.checkpoint(value))

    def spawn(self, job: Job[Any, Any], *, key: str | None = None) -> str:
        """Queue a child in the same group at once, and return its id."""
        return self._port.blocking(self._context.spawn(job, key=key))

    def spawn_many(self, jobs: Iterable[Job[Any, Any]]) -> list[str]:
        """Queue children in the same group at once, all or none, and return their ids in order."""
        return self._port.blocking(self._context.spawn_many(jobs))

    def step(self, name: str, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Call `fn` and store what it returns; when the handler runs again from the top, return the stored value."""
        calls = self._context.calls()
        calls.check_open()
        with calls.begin():
            return self._context.steps.step_blocking(name, fn, *args, **kwargs)

    def sleep(self, seconds: Seconds) -> None:
        """Give the slot back for so long; after that, the handler runs again from the top."""
        self._port.blocking(self._context.sleep(seconds))

    def wait_for(self, name: str, timeout: Seconds | None = None) -> Any:
        """Wait for the next signal with this name, as `sleep` waits, and return its value. Raises WaitTimeout."""
        return self._port.blocking(self._context.wait_for(name, timeout))

    def transaction(self) -> SyncTransaction:
        """`with ctx.sync.transaction() as tx:` commits the handler's writes and the job's completion together.

        Only handlers in threads can use it.
        """
        return SyncTransaction(self._context)

    def states(self, ids: Iterable[str]) -> dict[str, State]:
        """The states of other jobs of this tenant by id, without those that do not exist."""
        return self._port.blocking(self._context.states(ids))

    def once(self, key: str, ttl: Seconds = ONCE_TTL) -> bool:
        """Whether this is the first call with this key, on any worker, until `ttl` has passed."""
        return self._port.blocking(self._context.once(key, ttl))
