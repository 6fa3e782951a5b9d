"""`ctx.sync`: the context's verbs that reach the store, for handlers that cannot await."""

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
"""seconds for which a `once` key is remembered"""


class SyncContext:
    """`ctx.sync`: the verbs that reach the store, blocking, for handlers in threads and processes."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._port = context.port

    def checkpoint(self, value: object) -> None:
        """Record `value` durably; a later attempt reads it as `last_checkpoint`. Raises LeaseLost."""
        self._port.blocking(self._context.checkpoint(value))

    def spawn(self, job: Job[Any, Any], *, key: str | None = None) -> str:
        """Queue a child in the same group, at once; its id."""
        return self._port.blocking(self._context.spawn(job, key=key))

    def spawn_many(self, jobs: Iterable[Job[Any, Any]]) -> list[str]:
        """Queue children, all or none; ids in order."""
        return self._port.blocking(self._context.spawn_many(jobs))

    def step(self, name: str, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Call `fn` and keep what it returns: when the handler runs again from the top, that is the value at once."""
        calls = self._context.calls()
        calls.check_open()
        with calls.begin():
            return self._context.steps.step_blocking(name, fn, *args, **kwargs)

    def sleep(self, seconds: Seconds) -> None:
        """Give the slot back for so long; then the handler runs again from the top."""
        self._port.blocking(self._context.sleep(seconds))

    def wait_for(self, name: str, timeout: Seconds | None = None) -> Any:
        """The value of the next signal of this name; waits like `sleep`. Raises WaitTimeout."""
        return self._port.blocking(self._context.wait_for(name, timeout))

    def transaction(self) -> SyncTransaction:
        """`with ctx.sync.transaction() as tx:` — own writes and the job's completion commit together. Threads only."""
        return SyncTransaction(self._context)

    def states(self, ids: Iterable[str]) -> dict[str, State]:
        """How other jobs of this tenant are; unknown ids are absent."""
        return self._port.blocking(self._context.states(ids))

    def once(self, key: str, ttl: Seconds = ONCE_TTL) -> bool:
        """True for the first caller of this key until `ttl` has passed, in the whole fleet."""
        return self._port.blocking(self._context.once(key, ttl))
