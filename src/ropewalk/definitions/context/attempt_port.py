"""What a running attempt offers to its handler's Context: the seam between what users write and the engine.

The port behind which a handler runs in a process of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from msgspec import Struct

from ropewalk.definitions.options import Logs
from ropewalk.domain.bounds import Bounds
from ropewalk.domain.jobs.lease import LossReason
from ropewalk.domain.jobs.outcome import Outcome
from ropewalk.domain.jobs.record import JobRecord, NewJob
from ropewalk.domain.jobs.states import State
from ropewalk.domain.time import Instant, Seconds
from ropewalk.domain.workflow.completion import StepRecord
from ropewalk.errors import StoreUnavailable
from ropewalk.ports.store.user_transactions import UserTransaction
from ropewalk.ports.store.workflows import Dependency

if TYPE_CHECKING:
    from ropewalk.definitions.context.context import Context
    from ropewalk.definitions.job import Job
    from ropewalk.definitions.job_types.job_type import JobType


T = TypeVar("T")


class Cancellation(Struct, frozen=True):
    """Why this attempt should end."""

    reason: LossReason
    message: str | None


class AttemptPort(Protocol):
    """One lease. Plain methods may be called from any thread; async ones run on the worker's loop."""

    @property
    def job(self) -> JobRecord: ...

    @property
    def job_type(self) -> JobType[..., Any, Any]: ...

    @property
    def idempotency_key(self) -> str:
        """The same in every attempt of a run, another in the next run."""
        ...

    @property
    def bounds(self) -> Bounds:
        """The app's."""
        ...

    def now(self) -> Instant:
        """The store's clock when the attempt began, plus what has passed since; never ahead of it."""
        ...

    def cancellation(self) -> Cancellation | None: ...

    def progress(self, percent: float, message: str | None) -> None:
        """Buffered, the newest wins; sent with the next renewal."""
        ...

    @property
    def logs(self) -> Logs:
        """What the app wants done with log lines."""
        ...

    def keep_log_line(self, level: int, message: str, fields: str | None) -> None:
        """Keep a log line with the job; `fields` is a JSON object. Sent with the next renewal or the settlement."""
        ...

    def resource(self, kind: type[T]) -> T:
        """What the app's lifespan yielded, by class. Raises LookupError."""
        ...

    def last_checkpoint(self) -> object:
        """The newest checkpoint of this job, of this attempt or an earlier one; None if there is none."""
        ...

    async def checkpoint(self, value: object) -> None:
        """Durable when it returns. Raises LeaseLost."""
        ...

    def prepare(self, job: Job[Any, Any]) -> NewJob:
        """The job as it would be submitted, by the app's defaults and limits. Raises InvalidInput."""
        ...

    async def spawn(self, jobs: Sequence[tuple[NewJob, str | None]]) -> list[str]:
        """Children with their keys, written at once, all or none; ids in order. Raises LeaseLost, SpawnMismatch."""
        ...

    async def states(self, ids: Sequence[str]) -> dict[str, State]:
        """By id, of this tenant; missing ones are absent."""
        ...

    async def once(self, key: str, ttl: Seconds) -> bool:
        """True for the first caller of this key until `ttl` has passed."""
        ...

    def dependencies(self) -> Sequence[Dependency]:
        """What the job waited for, in order; read before the handler started. Empty for a job without a gate."""
        ...

    def known_type(self, name: str) -> JobType[..., Any, Any] | None:
        """The job type registered under this name, if any."""
        ...

    def decode_result(self, job: JobRecord) -> object:
        """By the return annotation of its type, or by the untyped codec where the type is not known here."""
        ...

    def encode_value(self, value: object) -> bytes | None:
        """By the untyped codec; None is nothing at all. Raises InvalidInput."""
        ...

    def decode_value(self, data: bytes | None) -> object: ...

    async def steps(self) -> list[StepRecord]:
        """The job's stored steps, by position; no call of the store for a job that never had one."""
        ...

    async def record_step(self, step: StepRecord) -> None:
        """Durable when it returns. Raises LeaseLost."""
        ...

    async def take_signal(self, step: StepRecord, signal: str) -> StepRecord | None:
        """The oldest signal of this name, kept as `step` (with its value); None if there is none. Raises LeaseLost."""
        ...

    async def begin_transaction(self) -> UserTransaction:
        """For the handler's own writes. Raises Unsupported where the store or the runner has none."""
        ...

    async def commit(self, held: UserTransaction, context: Context, returned: object) -> None:
        """Complete the job with what was `returned` and commit, together. Raises LeaseLost, and what refuses it."""
        ...

    def mark_unanswered(self, error: StoreUnavailable) -> None:
        """A call for the handler was not answered and cannot be repeated: if `error` ends the handler, it is not its
        fault, and the attempt is given back."""
        ...

    async def in_thread(self, call: Callable[[], T]) -> T:
        """Run `call` in a thread, with this task's context variables; its value or error.

        A thread cannot be stopped: an attempt that must end meanwhile keeps its slot until the call returns.
        """
        ...

    def blocking(self, work: Coroutine[Any, Any, T]) -> T:
        """Run `work` on the worker's loop and wait for it, from the handler's own thread or process."""
        ...


class Isolation(Protocol):
    async def run(self, attempt: AttemptPort) -> Outcome:
        """Run the attempt's handler in another process and say how it ended.

        Decoding, the call, encoding and the classification of an error happen over there. A process that dies
        under the handler is `Crashed`. Cancelling this call kills the process before it raises.
        """
        ...

    async def close(self) -> None:
        """End every process; handlers still running are killed."""
        ...
