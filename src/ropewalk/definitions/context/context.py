"""The context of a running handler: what its job is, what the handler can report, and what it can do in the store.

`current()` finds the context for code that did not get it as an argument.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Coroutine, Iterable, Mapping
from contextvars import Token
from datetime import datetime
from functools import cached_property
from types import MappingProxyType
from typing import Any, Final, ParamSpec, TypeVar, cast, overload

from ropewalk.definitions.context.attempt_port import AttemptPort, Cancellation
from ropewalk.definitions.context.calls import Calls, to_be_awaited
from ropewalk.definitions.context.job_log import JobLog
from ropewalk.definitions.context.related_jobs import Compensated, Dependency, compensated, dependencies_of
from ropewalk.definitions.context.sync_context import ONCE_TTL, SyncContext
from ropewalk.definitions.context.transaction import Transaction
from ropewalk.definitions.job import RUNNING, AttemptKey, Job, Running, checked_job
from ropewalk.definitions.middleware import Provided
from ropewalk.definitions.results.children import ChildIds
from ropewalk.definitions.results.results import Results
from ropewalk.definitions.steps import Steps
from ropewalk.domain import checks
from ropewalk.domain.bounds import check_name
from ropewalk.domain.failure import clipped
from ropewalk.domain.jobs.flags import GROUPED, OWNS_SCOPE, STEPPED
from ropewalk.domain.jobs.states import State
from ropewalk.domain.time import Seconds, to_datetime
from ropewalk.domain.workflow.completion import Suspension
from ropewalk.errors import Abort, InvalidInput, JobCancelled

P = ParamSpec("P")
T = TypeVar("T")


class Context(Results):
    """The context of one attempt. A handler gets it if its first parameter is annotated with Context.

    Other code finds it with `ropewalk.current()`.
    """

    # Defaults on the class, because most attempts never set these attributes.
    _batch: tuple[Context, ...] | None = None
    _provided: Provided | None = None
    _without_steps = False
    _calls: Calls | None = None
    _completion: tuple[object] | None = None

    def __init__(self, port: AttemptPort) -> None:
        super().__init__()
        self.port = port
        """For the engine: the attempt behind this context."""
        self._job = job = port.job
        self.alone = not job.flags & (GROUPED | OWNS_SCOPE)
        """For the engine: whether the job is alone in its group, neither under another job nor with jobs under it."""
        self._steps: Steps | None = None

    # ── what the job is ──────────────────────────────────────────────────────────────────────────────────────

    @property
    def id(self) -> str:
        """The id of the job."""
        return self._job.id

    @property
    def type(self) -> str:
        """The name of the job type."""
        return self._job.type

    @property
    def attempt(self) -> int:
        """The number of the attempt, which is 1 for the first."""
        return self._job.attempt

    @property
    def max_attempts(self) -> int | None:
        """How many attempts the job has; None means any number."""
        return self._job.max_attempts

    @property
    def run(self) -> int:
        """The number of the run, which is 1 and grows with every manual retry or redrive."""
        return self._job.run

    @property
    def group_id(self) -> str:
        """The id of the group, which is that of its root job."""
        return self._job.group_id or self._job.id

    @property
    def chain_id(self) -> str:
        """The id of the chain, which is that of its first job."""
        return self._job.chain_id or self._job.id

    @property
    def parent(self) -> str | None:
        """The id of the job that queued this one, or that it continues or compensates."""
        return self._job.parent_id

    @cached_property
    def dependencies(self) -> tuple[Dependency, ...]:
        """The jobs that this job waited for, in the order of depends_on, with their results."""
        return dependencies_of(self.port)

    @cached_property
    def arguments(self) -> Mapping[str, object]:
        """The arguments of the job by name, decoded on first use; they are no objects that the handler got."""
        return MappingProxyType(self.port.job_type.decode_input(self._job.input))

    @property
    def batch(self) -> tuple[Context, ...]:
        """The contexts of all jobs in this call of the handler: those of the batch, or this one alone."""
        return (self,) if self._batch is None else self._batch

    @property
    def created_at(self) -> datetime:
        """The moment at which the job was enqueued."""
        return to_datetime(self._job.created_at)

    @property
    def deadline(self) -> datetime | None:
        """The moment at which the job expires if it has not ended; None if there is none."""
        return None if self._job.deadline is None else to_datetime(self._job.deadline)

    @property
    def correlation_id(self) -> str | None:
        """The correlation id of the job, which jobs under it inherit."""
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
        """The workflow id of the job, which jobs under it inherit."""
        return self._job.workflow_id

    @property
    def fence(self) -> int:
        """A number that grows with every start of the job. Pass it to systems that refuse writes with an older one."""
        return self._job.fence

    @property
    def idempotency_key(self) -> str:
        """A key that is the same in every attempt of a run. Pass it to systems that refuse repetitions."""
        return self.port.idempotency_key

    @property
    def last_checkpoint(self) -> Any:
        """The value that `checkpoint` wrote last, in this attempt or an earlier one; None if there is none."""
        return self.port.last_checkpoint()

    @property
    def compensates(self) -> Compensated | None:
        """The failed job that this job compensates; None for an ordinary job."""
        return None if self._job.origin is None else compensated(self._job.origin)

    @cached_property
    def log(self) -> JobLog:
        """A logger whose lines name this job and are kept with it."""
        return JobLog(self.port)

    def resource(self, kind: builtins.type[T]) -> T:
        """The object of this class that a middleware provided or the app's lifespan yielded. Raises LookupError."""
        if not isinstance(kind, type):
            raise checks.wrong("kind", kind, "a class")
        if self._provided is None:
            return self.port.resource(kind)
        return self._provided.find(kind, self.port.resource)

    def provide(self, kind: builtins.type[T], value: T) -> None:
        """Make `ctx.resource(kind)` return this value from now on, in this attempt only. Middlewares call it.

        In a batch it applies to all contexts of the call. The value that is provided last counts.
        """
        if self._provided is None:
            provided = Provided()
            for each in self.batch:
                each._provided = provided
        assert self._provided is not None
        self._provided.add(kind, value)

    # ── what the handler reports ─────────────────────────────────────────────────────────────────────────────

    def progress(self, percent: float, message: str | None = None) -> None:
        """Report how far the job is, from 0 to 100. This is cheap: the newest one is sent with the next renewal.

        A number below 0 or above 100 becomes 0 or 100, and a NUL is removed from the message, so that no attempt fails.
        """
        if isinstance(percent, int | float):
            percent = min(max(percent, 0), 100)  # NaN and a bool stay as they are, and are refused below
        if isinstance(message, str):
            message = clipped(message).replace("\x00", "")
        checks.number(percent, "percent", 0, 100)
        checks.message_or_none(message, "message")
        self.port.progress(float(percent), message)

    # ── whether the attempt should go on ─────────────────────────────────────────────────────────────────────

    @property
    def cancelled(self) -> bool:
        """Whether this attempt should end; `cancellation` says why."""
        return self.port.cancellation() is not None

    @property
    def cancellation(self) -> Cancellation | None:
        """Why this attempt should end; None if it should go on."""
        return self.port.cancellation()

    def raise_if_cancelled(self) -> None:
        """Raises JobCancelled if this attempt should end."""
        why = self.port.cancellation()
        if why is not None:
            text = why.reason.value if why.message is None else f"{why.reason.value}: {why.message}"
            raise JobCancelled(f"job {self.id} should end ({text})", job_id=self.id)

    # ── what the handler does in the store ───────────────────────────────────────────────────────────────────

    @to_be_awaited("ctx.sync.checkpoint(...)")
    async def checkpoint(self, value: object) -> None:
        """Write `value` durably; a later attempt reads it as `last_checkpoint`. Raises LeaseLost."""
        await self.port.checkpoint(value)

    @to_be_awaited("ctx.sync.spawn(...)")
    async def spawn(self, job: Job[Any, Any], *, key: str | None = None) -> str:
        """Queue a child in the same group at once, and return its id.

        A later attempt that spawns the same job gets the id of the same child.
        """
        checks.text_or_none(key, "key")
        (child,) = await self._spawn([checked_job(job, "spawn")], key)
        return child

    @to_be_awaited("ctx.sync.spawn_many(...)")
    async def spawn_many(self, jobs: Iterable[Job[Any, Any]]) -> list[str]:
        """Queue children in the same group at once, all or none, and return their ids in order."""
        given = checks.several(jobs, "jobs", lambda each, field: checked_job(each, "spawn_many", field))
        return await self._spawn(given, None)

    @overload
    async def step(
        self, name: str, fn: Callable[P, Coroutine[Any, Any, T]], /, *args: P.args, **kwargs: P.kwargs
    ) -> T: ...
    @overload
    async def step(self, name: str, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T: ...
    @to_be_awaited("ctx.sync.step(...)")
    async def step(self, name: str, fn: Callable[P, object], /, *args: P.args, **kwargs: P.kwargs) -> Any:
        """Call `fn` and store what it returns; when the handler runs again from the top, return the stored value.

        A coroutine function runs on the event loop, a plain function in a thread. If `fn` raises, nothing is stored.
        Every attempt must call the same steps in the same order.
        """
        return await self.steps.step(name, fn, *args, **kwargs)

    @to_be_awaited("ctx.sync.sleep(...)")
    async def sleep(self, seconds: Seconds) -> None:
        """Give the slot back for so long, without using up an attempt; then the handler runs again from the top."""
        await self.steps.sleep(seconds)

    @to_be_awaited("ctx.sync.wait_for(...)")
    async def wait_for(self, name: str, timeout: Seconds | None = None) -> Any:  # noqa: ASYNC109 # fixed API
        """Wait for the next signal with this name, as `sleep` waits, and return its value. Raises WaitTimeout."""
        return await self.steps.wait_for(name, timeout)

    @to_be_awaited("ctx.sync.states(...)")
    async def states(self, ids: Iterable[str]) -> dict[str, State]:
        """The states of other jobs of this tenant by id, without those that do not exist."""
        return await self.port.states(checks.names(ids, "ids"))

    def transaction(self) -> Transaction:
        """`async with ctx.transaction() as tx:` commits the handler's writes and the job's completion together."""
        self._not_in_a_batch("transactions")
        self.calls().check_open()
        return Transaction(self)

    @to_be_awaited("ctx.sync.once(...)")
    async def once(self, key: str, ttl: Seconds = ONCE_TTL) -> bool:
        """Whether this is the first call with this key, on any worker, until `ttl` has passed."""
        check_name(key, "key", self.port.bounds)
        checks.positive_span(ttl, "ttl")
        return await self.port.once(key, ttl)

    @cached_property
    def sync(self) -> SyncContext:
        """The methods that reach the store as blocking ones, for handlers that are plain functions."""
        return SyncContext(self)

    @property
    def steps(self) -> Steps:
        """For the engine: the steps of this attempt, which step, sleep and wait_for use."""
        if self._steps is None:
            self._not_in_a_batch("step, sleep and wait_for")
            self._steps = Steps(self.port)
        return self._steps

    def steps_ended(self) -> Suspension | None:
        """For the engine: check the steps after the handler has returned. See Steps.ended."""
        if self._without_steps:
            return None
        if self._steps is None and not self._job.flags & STEPPED:
            return None  # most jobs
        return self.steps.ended()

    def raise_step_fault(self, error: BaseException) -> None:
        """For the engine: raises the fault of the steps, if the error that the handler raised hides it."""
        fault = None if self._steps is None else self._steps.fault
        if fault is not None and fault is not error and not self._without_steps:
            raise fault from None

    def calls(self) -> Calls:
        """For the engine: the calls of this attempt that have to be awaited."""
        if self._calls is None:
            self._calls = Calls()
        return self._calls

    @property
    def has_calls(self) -> bool:
        """For the engine: whether this attempt has made a call that has to be awaited; False for most."""
        return self._calls is not None

    @property
    def completion(self) -> tuple[object] | None:
        """For the engine: the value with which a transaction of the handler has completed the job, if it has."""
        return self._completion

    def completed_with(self, value: object) -> None:
        """For the engine: note that a transaction has completed the job, and refuse every further call."""
        self._completion = (value,)
        self.calls().close(f"job {self.id} was completed by its ctx.transaction(): nothing can be added to it any more")

    def never_awaited(self) -> str | None:
        """For the engine: a sentence about the calls that the handler forgot to await; None if there are none."""
        return None if self._calls is None else self._calls.never_awaited()

    def without_steps(self) -> None:
        """For the engine: do not check the steps, because something else than the handler has ended this attempt."""
        self._without_steps = True

    def join(self, batch: tuple[Context, ...]) -> None:
        """For the engine: set the contexts of all jobs of the batch in which this job runs."""
        self._batch = batch

    @property
    def attempt_key(self) -> AttemptKey:
        """For the engine: the key that identifies this attempt among those of all jobs."""
        return self._job.seq, self._job.fence

    @cached_property
    def child_ids(self) -> ChildIds:
        """For the engine: the ids under which this attempt queues jobs."""
        return ChildIds(self.attempt_key)

    async def _spawn(self, jobs: Iterable[Job[Any, Any]], key: str | None) -> list[str]:
        self._not_in_a_batch("spawn and spawn_many")
        new = [self.port.prepare(self.child_ids.child(job)) for job in jobs]
        ids = await self.port.spawn([(self.child_ids.with_dependencies(each), key) for each in new])
        self.alone = self.alone and not ids
        return ids

    def _not_in_a_batch(self, what: str) -> None:
        if self.port.job_type.options.batch is not None:
            raise Abort(
                InvalidInput(f"{self.type} takes its jobs in batches: {what} are for types that run one by one")
            )


def current() -> Context:
    """The context of the running handler. Raises RuntimeError outside of a handler."""
    context = RUNNING.get()
    if context is None:
        raise RuntimeError("current() is for code called by a handler: there is no running job here")
    return cast("Context", context)


activate: Final[Callable[[Context], Token[Running | None]]] = RUNNING.set
"""For the engine: makes a context the current one until `deactivate` is called with the token that this returns."""

deactivate: Final[Callable[[Token[Running | None]], None]] = RUNNING.reset
"""For the engine: undoes `activate`."""
