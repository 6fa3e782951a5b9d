"""An attempt is one leased job in this process: its record, the reason why its handler must stop, and the calls by
which the handler reaches the store.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, Protocol, TypeVar, cast

from msgspec import structs

from ropewalk.definitions.context.attempt_port import Cancellation
from ropewalk.definitions.context.context import Context
from ropewalk.definitions.job import Job
from ropewalk.definitions.job_types.job_type import JobType
from ropewalk.definitions.options import Logs
from ropewalk.definitions.results.children import child_of
from ropewalk.definitions.submission import to_new_job
from ropewalk.domain.bounds import Bounds
from ropewalk.domain.jobs.flags import STEPPED
from ropewalk.domain.jobs.lease import LossReason
from ropewalk.domain.jobs.record import JobRecord, NewJob, Progress
from ropewalk.domain.jobs.states import State
from ropewalk.domain.jobs.transition import AttemptTiming, Settlement
from ropewalk.domain.time import SECOND, Instant, Seconds, Span, to_span
from ropewalk.domain.workflow.completion import StepRecord
from ropewalk.errors import JobCancelled, LeaseLost, LimitExceeded, RopewalkError, StoreUnavailable
from ropewalk.observe.events import event_of
from ropewalk.ports.notifier import Hint
from ropewalk.ports.runtime import Timer
from ropewalk.ports.store.capabilities import WORKFLOWS
from ropewalk.ports.store.leases import Holder, Note
from ropewalk.ports.store.submission import Submission
from ropewalk.ports.store.user_transactions import UserTransaction
from ropewalk.ports.store.workflows import Dependency, StepAnswer, WorkflowStore
from ropewalk.ports.tracing import AttemptSpan
from ropewalk.worker import handler_transactions
from ropewalk.worker.completion import PendingFold
from ropewalk.worker.context import WorkerContext
from ropewalk.worker.log_buffer import LogBuffer
from ropewalk.worker.store_calls import SpawnKeys, StoreCalls

T = TypeVar("T")


GONE = frozenset(
    {
        LossReason.TAKEN_BY_ANOTHER_WORKER,
        LossReason.ALREADY_COMPLETED,
        LossReason.NOT_FOUND,
        LossReason.STORE_ERROR,
    }
)
"""After a loss for one of these reasons the worker sends nothing about the attempt to the store any more."""


class Stoppable(Protocol):
    """The task or the batch in which a handler runs, which can be cancelled."""

    def cancel(self) -> object: ...


class Attempt:
    """One leased job in this process, from the claim until it is settled or its lease is lost. The context of the
    handler reaches it as an AttemptPort.

    Only the worker's loop changes an attempt; other threads read it, and pass their changes to the loop.
    """

    __slots__ = (
        "_calls",
        "_dependencies",
        "_limit_timers",
        "_notice",
        "_runner",
        "_spawn_keys",
        "_worker_context",
        "began_at",
        "claimed_at",
        "fold",
        "handed_over",
        "job",
        "job_type",
        "key",
        "lease_us",
        "limited",
        "log",
        "pending_progress",
        "renewed_at",
        "span",
        "stop_sent",
        "stopped",
        "store_error",
        "timing",
    )

    def __init__(
        self, job: JobRecord, job_type: JobType[..., Any, Any], worker_context: WorkerContext, now: float
    ) -> None:
        self.job = job
        self.key = (job.seq, job.fence)
        self.lease_us: Span = job.lease_us or job_type.options.lease_us or worker_context.lease_us
        self.claimed_at = self.renewed_at = now
        """The monotonic times of the claim and of the last renewal of the lease."""
        self.began_at: float | None = None
        """The handler began at this monotonic time; None before."""
        self.pending_progress: Progress | None = None
        """The last progress that the store does not have yet; None if there is none."""
        self.log: LogBuffer | None = None
        """The buffer of the lines that the handler logged; None until it logs the first one."""
        self.timing: AttemptTiming | None = None
        """How long the job waited in this worker and how long its handler ran; None before the handler's end."""
        self.span: AttemptSpan | None = None
        """The span by which a tracing system records the attempt, if one does."""
        self.stopped: Cancellation | None = None
        """The reason why the handler must end now; None while it may go on."""
        self.stop_sent = False
        """Whether the runner was cancelled because of `stopped`."""
        self.handed_over = False
        """Whether the settler has the outcome, or the outcome was dropped: the attempt is over for the executor."""
        self.limited = False
        """Whether the job counts against a fleet limit, so that other jobs may wait for its end."""
        self.job_type = job_type
        self._worker_context = worker_context
        self._notice: Cancellation | None = None
        """The cancellation that the handler notices when it asks for one; None if there is none."""
        self._runner: Stoppable | None = None
        """The slot or the batch in which the handler runs; None before its start and after its end."""
        self.fold: PendingFold | None = None
        """If the job completed with a value that a function folds into the group's value, this is that fold."""
        self._dependencies: Sequence[Dependency] = ()
        self._limit_timers: tuple[Timer, ...] = ()
        """The timers that stop the handler at its timeout and at the deadline of the job."""
        self._spawn_keys: SpawnKeys | None = None
        """The keys of the jobs that the handler spawned; None until it spawns one."""
        self.store_error: StoreUnavailable | None = None
        """The error of the handler's last call that the store did not answer and that must not be repeated."""
        self._calls: StoreCalls | None = None
        """The calls of the handler that wait for the store. They are woken when the attempt has to end."""

    # ── called by the worker ────────────────────────────────────────────────────────────────────────────────

    @property
    def holder(self) -> Holder:
        """The lease of the attempt, as the store checks it."""
        return Holder(self.job.seq, self.job.fence, self._worker_context.owner)

    @property
    def gone(self) -> bool:
        """Whether the lease is lost, so that the store must not hear of the outcome."""
        return self.stopped is not None and self.stopped.reason in GONE

    def begin(self, runner: Stoppable, *, timeout_us: Span | None, deadline_in_us: Span | None) -> None:
        """Records that the handler starts in `runner`, which is cancelled if the attempt is stopped from now on."""
        self._runner = runner
        self.began_at = self._worker_context.runtime.monotonic()
        if timeout_us is None and deadline_in_us is None:
            return
        for span, reason in ((timeout_us, LossReason.TIMEOUT), (deadline_in_us, LossReason.DEADLINE)):
            if span is not None:
                stop = Cancellation(reason, None)
                timer = self._worker_context.runtime.after(span / SECOND, lambda stop=stop: self.stop(stop))  # type: ignore[misc]
                self._limit_timers += (timer,)

    def elapsed(self) -> float:
        """Returns the seconds since the handler began; 0 if it has not begun."""
        return 0.0 if self.began_at is None else self._worker_context.runtime.monotonic() - self.began_at

    def since_claim(self) -> float:
        """Returns the seconds since the claim."""
        return self._worker_context.runtime.monotonic() - self.claimed_at

    def end(self) -> None:
        """Records that the handler has ended in whatever way, so that the runner is not cancelled any more."""
        self._runner = None
        for timer in self._limit_timers:
            timer.cancel()
        self._limit_timers = ()

    def stop(self, why: Cancellation) -> None:
        """Ends the handler now. The reason decides how the attempt is settled; only the first reason counts."""
        if self.stopped is None:
            self.stopped = why
        if self._calls is not None:
            self._calls.wake()
        if self._runner is not None and not self.stop_sent:
            self.stop_sent = True
            self._runner.cancel()

    def notice(self, why: Cancellation) -> None:
        """Records a cooperative cancellation, which the handler notices when it asks for it."""
        self._notice = why
        if self._calls is not None:
            self._calls.wake()

    def note_timing(self, took: float) -> None:
        """Records how many seconds the handler ran, and how long the job waited in this worker before."""
        if self.began_at is not None:
            self.timing = AttemptTiming(int((self.began_at - self.claimed_at) * SECOND), int(took * SECOND))

    def with_lines(self, settlement: Settlement) -> Settlement:
        """Returns the settlement together with the logged lines that the store does not have yet."""
        return structs.replace(settlement, lines=self.log.unsent()) if self.log else settlement

    # ── called by the handler through its context (AttemptPort) ─────────────────────────────────────────────

    @property
    def idempotency_key(self) -> str:
        """A key that stays the same for all attempts of one run, for calls to other systems."""
        return f"{self.job.id}:{self.job.run}"

    @property
    def bounds(self) -> Bounds:
        return self._worker_context.bounds

    def cancellation(self) -> Cancellation | None:
        return self.stopped or self._notice

    def progress(self, percent: float, message: str | None) -> None:
        """Records progress. The loop or the handler's own thread calls this; hooks are always called on the loop."""
        self.pending_progress = Progress(percent, message, 0)
        worker_context = self._worker_context
        if worker_context.events.has_listener(self.job.type):
            event = event_of(self.job, "progress", worker_context.runtime.now())
            event = structs.replace(event, percent=percent, message=message)
            worker_context.loop.call_soon_threadsafe(worker_context.events.emit, event)

    @property
    def logs(self) -> Logs:
        return self._worker_context.logs

    def keep_log_line(self, level: int, message: str, fields: str | None) -> None:
        if self.log is None:
            self.log = LogBuffer(self.job.attempt)
        self.log.add(level, message, fields, self.now())

    def resource(self, kind: type[T]) -> T:
        for resource in self._worker_context.resources:
            if isinstance(resource, kind):
                return resource
        have = ", ".join(sorted(type(each).__name__ for each in self._worker_context.resources)) or "nothing"
        raise LookupError(f"no resource of type {kind.__name__}: the app's lifespan yielded {have}")

    def last_checkpoint(self) -> object:
        data = self.job.checkpoint
        return None if data is None else self._worker_context.codec.decode(data, Any)

    async def checkpoint(self, value: object) -> None:
        data = self._worker_context.codec.encode(value, Any)
        limit = self._worker_context.bounds.checkpoint_bytes_max
        if len(data) > limit:
            raise LimitExceeded(
                f"the checkpoint is {len(data):,} bytes, over checkpoint_bytes_max={limit:,}", field="checkpoint"
            )
        progress, self.pending_progress = self.pending_progress, None
        note = Note(holder=self.holder, checkpoint=data, progress=progress)
        answer = await self._answer(lambda: self._worker_context.store.note(note))
        if answer.lost is not None:
            raise self._lost(answer.lost)
        self.job.checkpoint = data
        if answer.cancel is not None:
            self.notice(Cancellation(LossReason.CANCELLED, answer.cancel.reason))

    def prepare(self, job: Job[Any, Any]) -> NewJob:
        worker_context = self._worker_context
        new = to_new_job(
            job, call={}, defaults=worker_context.defaults, bounds=worker_context.bounds, tenant=self.job.tenant
        )
        worker_context.unregistered.check(new)
        return new

    async def spawn(self, jobs: Sequence[tuple[NewJob, str | None]]) -> list[str]:
        if not jobs:
            return []
        if self._worker_context.workflows is None:
            WORKFLOWS.of(self._worker_context.store)
        for job, _ in jobs:
            self._worker_context.unregistered.check(job)  # The process of a handler cannot check it without the app.
        if self._spawn_keys is None:
            self._spawn_keys = SpawnKeys()
        new = [
            structs.replace(child_of(self.job, job), spawn_key=self._spawn_keys.default(job) if key is None else key)
            for job, key in jobs
        ]
        submission = Submission(jobs=new, under=self.holder)  # Ids and keys stay the same if it is sent again.
        (answer,) = await self._answer(lambda: self._worker_context.store.submit([submission]))
        if isinstance(answer, LeaseLost):
            raise self._lost(LossReason(answer.reason))
        if isinstance(answer, RopewalkError):
            raise answer
        self._worker_context.store.notifier.publish(Hint(ready=tuple({child.queue for child in new})))
        self._worker_context.events.publish_accepted(new, answer)
        return [child.id for child in answer]

    async def states(self, ids: Sequence[str]) -> dict[str, State]:
        read = await self._answer(lambda: self._worker_context.store.get(self.job.tenant, ids))
        return {job_id: job.state_at(read.now) for job_id, job in read.jobs.items()}

    async def once(self, key: str, ttl: Seconds) -> bool:
        store, span = self._worker_context.store, to_span(ttl, "ttl")
        by = self._worker_context.runtime.new_id()  # A repeated call with this id gets the same answer again.
        return await self._answer(lambda: store.once(self.job.tenant, key, span, by=by))

    def mark_unanswered(self, error: StoreUnavailable) -> None:
        """Records a call that the store did not answer and that must not be repeated, such as a commit."""
        self._worker_context.contact.failed()
        self.store_error = error

    async def in_thread(self, call: Callable[[], T]) -> T:
        return cast("T", await self._worker_context.in_thread([self], call))

    def blocking(self, work: Coroutine[Any, Any, T]) -> T:
        try:
            on_loop = asyncio.get_running_loop() is self._worker_context.loop
        except RuntimeError:
            on_loop = False
        if on_loop:
            work.close()
            raise RuntimeError("ctx.sync is for sync handlers: in an async handler await the method of ctx itself")
        return asyncio.run_coroutine_threadsafe(work, self._worker_context.loop).result()

    async def load_dependencies(self) -> None:
        """Reads the dependencies of the job; this is awaited before the handler starts."""
        self._dependencies = await self._workflows.dependencies(self.job.seq)

    def dependencies(self) -> Sequence[Dependency]:
        return self._dependencies

    def known_type(self, name: str) -> JobType[..., Any, Any] | None:
        registry = self._worker_context.registry
        return registry.get(name) if name in registry else None

    def decode_result(self, job: JobRecord) -> object:
        known = self.known_type(job.type)
        return self.decode_value(job.result) if known is None else known.decode_result(job.result)

    def encode_value(self, value: object) -> bytes | None:
        return None if value is None else self._worker_context.codec.encode(value, Any)

    def decode_value(self, data: bytes | None) -> object:
        return None if data is None else self._worker_context.codec.decode(data, Any)

    async def steps(self) -> list[StepRecord]:
        workflows = self._workflows  # A store without workflows is refused before the first step runs, not after it.
        if not self.job.flags & STEPPED:
            return []
        return await self._answer(lambda: workflows.steps(self.job.seq))

    async def record_step(self, step: StepRecord) -> None:
        workflows = self._workflows
        self._still_held(await self._answer(lambda: workflows.record_step(self.holder, step)))

    async def take_signal(self, step: StepRecord, signal: str) -> StepRecord | None:
        workflows = self._workflows
        return self._still_held(await self._answer(lambda: workflows.take_signal(self.holder, step, signal))).taken

    async def begin_transaction(self) -> UserTransaction:
        return handler_transactions.begin(self, self._worker_context)

    async def commit(self, transaction: UserTransaction, context: Context, returned: object) -> None:
        answer = await handler_transactions.commit(self, self._worker_context, transaction, context, returned)
        if answer.move is None:
            raise self._lost(answer.lost or LossReason.NOT_FOUND)

    def now(self) -> Instant:
        """Returns the store's time at the claim plus the time since then by the monotonic clock of this process."""
        return (self.job.started_at or self.job.created_at) + round(self.since_claim() * SECOND)

    @property
    def _workflows(self) -> WorkflowStore:
        """The store's verbs for workflows. Raises Unsupported if it has none."""
        workflows = self._worker_context.workflows
        return WORKFLOWS.of(self._worker_context.store) if workflows is None else workflows

    async def _answer(self, call: Callable[[], Awaitable[T]]) -> T:
        """Returns the answer of the store, and waits for it while the store is away and the attempt may go on."""
        if self._calls is None:
            self._calls = StoreCalls(self._worker_context, self._check_may_wait)
        return await self._calls.answer(call)

    def _check_may_wait(self, error: StoreUnavailable) -> None:
        """Raises if the attempt must end, because its handler must not wait for the store any longer then."""
        why = self.cancellation()
        if self.handed_over or (why is not None and why.reason in GONE):
            raise self._lost(LossReason.ALREADY_COMPLETED if why is None else why.reason) from error
        if why is not None:
            reason = why.reason.value if why.message is None else f"{why.reason.value}: {why.message}"
            raise JobCancelled(f"job {self.job.id} should end ({reason})", job_id=self.job.id) from error

    def _still_held(self, answer: StepAnswer) -> StepAnswer:
        """Returns the answer. Raises LeaseLost if it says that the lease is lost."""
        if answer.lost is not None:
            raise self._lost(answer.lost)
        return answer

    def _lost(self, reason: LossReason) -> LeaseLost:
        """Stops the attempt because its lease is lost, and returns the error to raise in its handler."""
        self.stop(Cancellation(reason, None))
        return LeaseLost(f"this attempt of job {self.job.id} no longer owns it: {reason.value}", reason=reason.value)
