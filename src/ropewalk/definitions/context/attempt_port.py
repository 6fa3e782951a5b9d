"""The ports between what users write and the worker.

An AttemptPort is what a running attempt offers to the context of its handler. An Isolation runs handlers in processes
of their own.
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
    """The reason why an attempt should end."""

    reason: LossReason
    message: str | None


class AttemptPort(Protocol):
    """What the context of a handler needs from its attempt.

    Plain methods may be called from any thread; async ones run on the worker's event loop.
    """

    @property
    def job(self) -> JobRecord: ...

    @property
    def job_type(self) -> JobType[..., Any, Any]: ...

    @property
    def idempotency_key(self) -> str:
        """A key that is the same in every attempt of one run of the job, and another one in the next run."""
        ...

    @property
    def bounds(self) -> Bounds:
        """The bounds of the app."""
        ...

    def now(self) -> Instant:
        """The time of the store's clock when the attempt began, plus what has passed since. It is never ahead."""
        ...

    def cancellation(self) -> Cancellation | None:
        """Why this attempt should end; None if it should go on."""
        ...

    def progress(self, percent: float, message: str | None) -> None:
        """Report progress. The newest one is sent with the next renewal of the lease."""
        ...

    @property
    def logs(self) -> Logs:
        """What the app does with log lines."""
        ...

    def keep_log_line(self, level: int, message: str, fields: str | None) -> None:
        """Keep a log line with the job; `fields` is a JSON object. It is sent with the next renewal or settlement."""
        ...

    def resource(self, kind: type[T]) -> T:
        """The object of this class that the app's lifespan yielded. Raises LookupError."""
        ...

    def last_checkpoint(self) -> object:
        """The newest checkpoint of the job, from this attempt or an earlier one; None if there is none."""
        ...

    async def checkpoint(self, value: object) -> None:
        """Write a checkpoint, which is durable when this returns. Raises LeaseLost."""
        ...

    def prepare(self, job: Job[Any, Any]) -> NewJob:
        """The job as it would be submitted, with the app's defaults and bounds applied. Raises InvalidInput."""
        ...

    async def spawn(self, jobs: Sequence[tuple[NewJob, str | None]]) -> list[str]:
        """Write children with their spawn keys, all or none; return their ids in order.

        Raises LeaseLost and SpawnMismatch.
        """
        ...

    async def states(self, ids: Sequence[str]) -> dict[str, State]:
        """The states of these jobs of the same tenant, by id, without those that do not exist."""
        ...

    async def once(self, key: str, ttl: Seconds) -> bool:
        """Whether this is the first call with this key, on any worker, until `ttl` has passed."""
        ...

    def dependencies(self) -> Sequence[Dependency]:
        """What the job waited for, in order, as it was before the handler started. Empty for a job without a gate."""
        ...

    def known_type(self, name: str) -> JobType[..., Any, Any] | None:
        """The job type registered under this name, if any."""
        ...

    def decode_result(self, job: JobRecord) -> object:
        """The result of a job, decoded by its type, or by the untyped codec if its type is not known here."""
        ...

    def encode_value(self, value: object) -> bytes | None:
        """Encode a value by the untyped codec; None is encoded as None. Raises InvalidInput."""
        ...

    def decode_value(self, data: bytes | None) -> object:
        """Decode a value by the untyped codec."""
        ...

    async def steps(self) -> list[StepRecord]:
        """The job's stored steps, by position. The store is not asked if the job never had one."""
        ...

    async def record_step(self, step: StepRecord) -> None:
        """Store a step, which is durable when this returns. Raises LeaseLost."""
        ...

    async def take_signal(self, step: StepRecord, signal: str) -> StepRecord | None:
        """Store the value of the oldest signal with this name as `step`; None if there is none. Raises LeaseLost."""
        ...

    async def begin_transaction(self) -> UserTransaction:
        """Begin a transaction for the handler's own writes. Raises Unsupported if the store or the runner has none."""
        ...

    async def commit(self, transaction: UserTransaction, context: Context, returned: object) -> None:
        """Complete the job with `returned` in this transaction and commit it.

        Raises LeaseLost, and the error of a value or a job that is refused.
        """
        ...

    def mark_unanswered(self, error: StoreUnavailable) -> None:
        """Remember that a call for the handler was not answered and cannot be repeated.

        If `error` ends the handler, the handler is not at fault, and the attempt is given back.
        """
        ...

    async def in_thread(self, call: Callable[[], T]) -> T:
        """Run `call` in a thread with the context variables of this task, and return its value or raise its error.

        A thread cannot be stopped, so an attempt that must end meanwhile keeps its slot until the call returns.
        """
        ...

    def blocking(self, work: Coroutine[Any, Any, T]) -> T:
        """Wait for `work` on an event loop, from the handler's own thread or process.

        A thread uses the event loop of the worker, and a process a loop of its own.
        """
        ...


class Isolation(Protocol):
    """Runs handlers in processes of their own."""

    async def run(self, attempt: AttemptPort) -> Outcome:
        """Run the attempt's handler in another process, and return the outcome of the attempt.

        That process decodes the arguments, calls the handler, encodes its value and classifies its error. If the
        process dies, the outcome is `Crashed`. If this call is cancelled, it kills the process before it raises.
        """
        ...

    async def close(self) -> None:
        """End every process, and kill handlers that are still running."""
        ...
