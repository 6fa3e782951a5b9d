"""The face a running job shows its handler: what it is, what it may say, what it may ask of the store."""

from __future__ import annotations

import builtins
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Never, TypeVar, cast

from ropewalk.definitions.attempt_port import AttemptPort, Cancellation
from ropewalk.definitions.compensated import Compensated, compensated
from ropewalk.definitions.job_log import JobLog
from ropewalk.definitions.result import Result, result_of
from ropewalk.domain.instants import Seconds, to_datetime
from ropewalk.domain.states import State
from ropewalk.errors import InvalidInput, JobCancelled

if TYPE_CHECKING:
    from ropewalk.definitions.job import Job

T = TypeVar("T")

ONCE_TTL: Final = 86_400
"""seconds for which a `once` key is remembered"""


class Context:
    """Given to a handler whose first parameter is annotated with it; `ropewalk.current()` finds it anywhere else."""

    def __init__(self, port: AttemptPort) -> None:
        self._port = port
        self._job = port.job
        self._results: list[Result[Any, Any]] = []

    # ── what it is ──────────────────────────────────────────────────────────────────────────────────────────

    @property
    def id(self) -> str:
        return self._job.id

    @property
    def type(self) -> str:
        """The name of the job type."""
        return self._job.type

    @property
    def attempt(self) -> int:
        """1 in the first."""
        return self._job.attempt

    @property
    def max_attempts(self) -> int | None:
        return self._job.max_attempts

    @property
    def run(self) -> int:
        """1, and one more for every manual retry."""
        return self._job.run

    @property
    def group_id(self) -> str:
        """The root job's id, for the root itself too."""
        return self._job.group_id or self._job.id

    @property
    def parent(self) -> str | None:
        """The id of the job that spawned this one, or that it compensates."""
        return self._job.parent_id

    @property
    def created_at(self) -> datetime:
        return to_datetime(self._job.created_at)

    @property
    def deadline(self) -> datetime | None:
        return None if self._job.deadline is None else to_datetime(self._job.deadline)

    @property
    def correlation_id(self) -> str | None:
        return self._job.correlation_id

    @property
    def tags(self) -> Mapping[str, str]:
        return MappingProxyType(self._job.tags)

    @property
    def tenant(self) -> str:
        return self._job.tenant

    @property
    def queue_name(self) -> str:
        return self._job.queue

    @property
    def workflow_id(self) -> str | None:
        return self._job.workflow_id

    @property
    def fence(self) -> int:
        """Increases with every start of this job: hand it to systems that refuse older writers."""
        return self._job.fence

    @property
    def idempotency_key(self) -> str:
        """The same in every attempt of a run: hand it to systems that refuse repetitions."""
        return self._port.idempotency_key

    @property
    def last_checkpoint(self) -> Any:
        """What `checkpoint` recorded last, in this attempt or an earlier one; None if nothing."""
        return self._port.last_checkpoint()

    @property
    def compensates(self) -> Compensated | None:
        """The failed job this one makes up for; None for an ordinary job."""
        return None if self._job.origin is None else compensated(self._job.origin)

    @cached_property
    def log(self) -> JobLog:
        """A logger whose lines say which job they are about."""
        return JobLog(self._port)

    def resource(self, kind: builtins.type[T]) -> T:
        """What the app's lifespan yielded, by class. Raises LookupError."""
        return self._port.resource(kind)

    # ── what it says ────────────────────────────────────────────────────────────────────────────────────────

    def result(self, value: T) -> Result[T, T]:
        """Return this: the job's result is `value`. The same as returning `value` itself."""
        return self._remember(result_of(value))

    def void(self) -> Result[None, Never]:
        """Return this: the job has no result. The same as returning None."""
        return self._remember(cast("Result[None, Never]", result_of(None)))

    def unreturned(self, returned: object) -> list[Result[Any, Any]]:
        """The Results made here that are not `returned`: for the engine, which calls that an error (strict return)."""
        return [each for each in self._results if each is not returned]

    def progress(self, percent: float, message: str | None = None) -> None:
        """Say how far it is, 0 to 100. Cheap: the newest is sent with the next renewal of the lease."""
        if isinstance(percent, bool) or not isinstance(percent, int | float) or not 0 <= percent <= 100:
            raise InvalidInput(f"percent={percent!r} must be a number from 0 to 100", field="percent")
        if message is not None and not isinstance(message, str):
            raise InvalidInput(f"message={message!r} must be a string", field="message")
        self._port.progress(float(percent), message)

    # ── whether it should go on ─────────────────────────────────────────────────────────────────────────────

    @property
    def cancelled(self) -> bool:
        """True when this attempt should end; `cancellation` says why."""
        return self._port.cancellation() is not None

    @property
    def cancellation(self) -> Cancellation | None:
        return self._port.cancellation()

    def raise_if_cancelled(self) -> None:
        """Raises JobCancelled when this attempt should end."""
        why = self._port.cancellation()
        if why is not None:
            told = why.reason.value if why.message is None else f"{why.reason.value}: {why.message}"
            raise JobCancelled(f"job {self.id} should end ({told})", job_id=self.id)

    # ── what it asks of the store ───────────────────────────────────────────────────────────────────────────

    async def checkpoint(self, value: object) -> None:
        """Record `value` durably; a later attempt reads it as `last_checkpoint`. Raises LeaseLost."""
        await self._port.checkpoint(value)

    async def spawn(self, job: Job[Any, Any], *, key: str | None = None) -> str:
        """Queue a child in the same group, at once; its id. A later attempt that spawns the same gets that child."""
        (child,) = await self._port.spawn([(self._port.prepare(job), key)])
        return child

    async def spawn_many(self, jobs: Iterable[Job[Any, Any]]) -> list[str]:
        """Queue children, all or none; ids in order."""
        return await self._port.spawn([(self._port.prepare(job), None) for job in jobs])

    async def states(self, ids: Sequence[str]) -> dict[str, State]:
        """How other jobs of this tenant are; unknown ids are absent."""
        return await self._port.states(ids)

    async def once(self, key: str, ttl: Seconds = ONCE_TTL) -> bool:
        """True for the first caller of this key until `ttl` has passed, in the whole fleet."""
        return await self._port.once(key, ttl)

    @cached_property
    def sync(self) -> SyncContext:
        """The same verbs, blocking, for handlers in threads and processes."""
        return SyncContext(self, self._port)

    def _remember(self, result: Result[T, Any]) -> Result[T, Any]:
        self._results.append(result)
        return result


class SyncContext:
    """`ctx.sync`: the verbs that reach the store, blocking, for handlers in threads and processes."""

    def __init__(self, context: Context, port: AttemptPort) -> None:
        self._context = context
        self._port = port

    def checkpoint(self, value: object) -> None:
        """Record `value` durably; a later attempt reads it as `last_checkpoint`. Raises LeaseLost."""
        self._port.blocking(self._context.checkpoint(value))

    def spawn(self, job: Job[Any, Any], *, key: str | None = None) -> str:
        """Queue a child in the same group, at once; its id."""
        return self._port.blocking(self._context.spawn(job, key=key))

    def spawn_many(self, jobs: Iterable[Job[Any, Any]]) -> list[str]:
        """Queue children, all or none; ids in order."""
        return self._port.blocking(self._context.spawn_many(jobs))

    def states(self, ids: Sequence[str]) -> dict[str, State]:
        """How other jobs of this tenant are; unknown ids are absent."""
        return self._port.blocking(self._context.states(ids))

    def once(self, key: str, ttl: Seconds = ONCE_TTL) -> bool:
        """True for the first caller of this key until `ttl` has passed, in the whole fleet."""
        return self._port.blocking(self._context.once(key, ttl))
