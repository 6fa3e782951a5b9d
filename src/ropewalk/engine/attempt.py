"""One lease in this process: the job, why it must stop, and what its handler may ask of the store."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Coroutine, Sequence
from typing import Any, TypeVar

from msgspec import structs

from ropewalk.definitions.attempt_port import Cancellation
from ropewalk.definitions.job import Job
from ropewalk.definitions.jobtype import JobType
from ropewalk.definitions.submission import to_new_job
from ropewalk.domain.idempotency import input_hash
from ropewalk.domain.instants import SECOND, Seconds, Span, to_span
from ropewalk.domain.job import JobRecord, NewJob, Progress
from ropewalk.domain.lease import LossReason
from ropewalk.domain.states import State
from ropewalk.engine.events import event_of
from ropewalk.engine.workbench import Workbench
from ropewalk.errors import InvalidInput, LeaseLost, LimitExceeded, RopewalkError
from ropewalk.ports.exchange import Holder, Note, Submission
from ropewalk.ports.notifier import Hint
from ropewalk.ports.runtime import Timer

T = TypeVar("T")

GONE = frozenset(
    {
        LossReason.TAKEN_BY_ANOTHER_WORKER,
        LossReason.ALREADY_COMPLETED,
        LossReason.NOT_FOUND,
        LossReason.STORE_ERROR,
    }
)
"""reasons after which nothing this attempt says is sent any more"""


class Attempt:
    """An AttemptPort (by shape). Changed only on the worker's loop; other threads read, and hand changes over."""

    __slots__ = (
        "_began_at",
        "_bench",
        "_claimed_at",
        "_job_type",
        "_limit_timers",
        "_notice",
        "_runner",
        "_spawned",
        "handed_over",
        "job",
        "key",
        "lease_us",
        "pending_progress",
        "renewed_at",
        "stop_sent",
        "stopped",
    )

    def __init__(self, job: JobRecord, job_type: JobType[..., Any, Any], bench: Workbench) -> None:
        self.job = job
        self.key = (job.seq, job.fence)
        self.lease_us: Span = job.lease_us or job_type.options.lease_us or bench.lease_us
        self._claimed_at = self._began_at = self.renewed_at = bench.runtime.monotonic()
        self.pending_progress: Progress | None = None
        self.stopped: Cancellation | None = None
        """why the handler must end now"""
        self.stop_sent = False
        self.handed_over = False
        """its outcome is with the settler (or dropped): nothing more to say"""
        self._job_type = job_type
        self._bench = bench
        self._notice: Cancellation | None = None
        self._runner: asyncio.Task[Any] | None = None
        self._limit_timers: list[Timer] = []
        self._spawned: Counter[tuple[str, bytes]] | None = None

    # ── what the engine does with it ────────────────────────────────────────────────────────────────────────

    @property
    def job_type(self) -> JobType[..., Any, Any]:
        return self._job_type

    @property
    def holder(self) -> Holder:
        return Holder(self.job.seq, self.job.fence, self._bench.owner)

    @property
    def gone(self) -> bool:
        return self.stopped is not None and self.stopped.reason in GONE

    def begin(self, runner: asyncio.Task[Any], *, timeout_us: Span | None, deadline_in_us: Span | None) -> None:
        """The handler starts on `runner`; a stop from now on cancels that task."""
        self._runner = runner
        self._began_at = self._bench.runtime.monotonic()
        for span, reason in ((timeout_us, LossReason.TIMEOUT), (deadline_in_us, LossReason.DEADLINE)):
            if span is not None:
                stop = Cancellation(reason, None)
                timer = self._bench.runtime.after(span / SECOND, lambda stop=stop: self.stop(stop))  # type: ignore[misc]
                self._limit_timers.append(timer)

    def elapsed(self) -> float:
        """Seconds since the handler began."""
        return self._bench.runtime.monotonic() - self._began_at

    def since_claim(self) -> float:
        return self._bench.runtime.monotonic() - self._claimed_at

    def end(self) -> None:
        """The handler ended, whatever way: no stop reaches the runner any more."""
        self._runner = None
        for timer in self._limit_timers:
            timer.cancel()
        self._limit_timers.clear()

    def stop(self, why: Cancellation) -> None:
        """End the handler now, for a reason that decides how the attempt is settled. The first reason stays."""
        if self.stopped is None:
            self.stopped = why
        if self._runner is not None and not self.stop_sent:
            self.stop_sent = True
            self._runner.cancel()

    def notice(self, why: Cancellation) -> None:
        """A cooperative cancellation: the handler sees it when it looks."""
        self._notice = why

    # ── what the handler asks for (AttemptPort) ─────────────────────────────────────────────────────────────

    @property
    def idempotency_key(self) -> str:
        return f"{self.job.id}:{self.job.run}"

    def cancellation(self) -> Cancellation | None:
        return self.stopped or self._notice

    def progress(self, percent: float, message: str | None) -> None:
        """From the loop or from the handler's own thread; hooks always hear of it on the loop."""
        self.pending_progress = Progress(percent, message, 0)
        bench = self._bench
        if bench.events.heard(self.job.type):
            event = event_of(self.job, "progress", at=bench.runtime.now(), percent=percent, message=message)
            bench.loop.call_soon_threadsafe(bench.events.emit, event)

    def resource(self, kind: type[T]) -> T:
        for resource in self._bench.resources:
            if isinstance(resource, kind):
                return resource
        have = ", ".join(sorted(type(each).__name__ for each in self._bench.resources)) or "nothing"
        raise LookupError(f"no resource of type {kind.__name__}: the app's lifespan yielded {have}")

    def last_checkpoint(self) -> object:
        data = self.job.checkpoint
        return None if data is None else self._bench.codec.decode(data, Any)

    async def checkpoint(self, value: object) -> None:
        data = self._bench.codec.encode(value, Any)
        limit = self._bench.limits.checkpoint_bytes_max
        if len(data) > limit:
            raise LimitExceeded(
                f"the checkpoint is {len(data):,} bytes, over checkpoint_bytes_max={limit:,}", field="checkpoint"
            )
        progress, self.pending_progress = self.pending_progress, None
        answer = await self._bench.store.note(Note(holder=self.holder, checkpoint=data, progress=progress))
        if answer.lost is not None:
            raise self._lost(answer.lost)
        self.job.checkpoint = data
        if answer.cancel is not None:
            self.notice(Cancellation(LossReason.CANCELLED, answer.cancel.reason))

    def prepare(self, job: Job[Any, Any]) -> NewJob:
        bench = self._bench
        return to_new_job(job, call={}, defaults=bench.defaults, limits=bench.limits, tenant=self.job.tenant)

    async def spawn(self, jobs: Sequence[tuple[NewJob, str | None]]) -> list[str]:
        new = [self._child(job, key) for job, key in jobs]
        if not new:
            return []
        (answer,) = await self._bench.store.submit([Submission(jobs=new, under=self.holder)])
        if isinstance(answer, LeaseLost):
            raise self._lost(LossReason(answer.reason))
        if isinstance(answer, RopewalkError):
            raise answer
        self._bench.store.notifier.publish(Hint(ready=tuple({child.queue for child in new})))
        return [child.id for child in answer]

    async def states(self, ids: Sequence[str]) -> dict[str, State]:
        read = await self._bench.store.get(self.job.tenant, ids)
        return {job_id: job.state_at(read.now) for job_id, job in read.jobs.items()}

    async def once(self, key: str, ttl: Seconds) -> bool:
        return await self._bench.store.once(self.job.tenant, key, to_span(ttl, "ttl"))

    def blocking(self, work: Coroutine[Any, Any, T]) -> T:
        try:
            on_loop = asyncio.get_running_loop() is self._bench.loop
        except RuntimeError:
            on_loop = False
        if on_loop:
            work.close()
            raise RuntimeError("ctx.sync is for sync handlers: in an async handler await the method of ctx itself")
        return asyncio.run_coroutine_threadsafe(work, self._bench.loop).result()

    def _child(self, child: NewJob, key: str | None) -> NewJob:
        parent = self.job
        if child.tenant != parent.tenant:
            raise InvalidInput(
                f"a job of tenant {parent.tenant!r} cannot spawn one of tenant {child.tenant!r}", field="tenant"
            )
        return structs.replace(
            child,
            parent_id=parent.id,
            group_id=parent.group_id or parent.id,
            spawn_key=key if key is not None else self._default_key(child),
            workflow_id=child.workflow_id or parent.workflow_id,
            workflow_type=child.workflow_type or parent.workflow_type,
            correlation_id=child.correlation_id or parent.correlation_id,
        )

    def _default_key(self, child: NewJob) -> str:
        """The same spawn in a later attempt gets the same key: type, input, and the how-manieth such pair it is."""
        if self._spawned is None:
            self._spawned = Counter()
        hashed = input_hash(child.input)
        pair = (child.type, hashed)
        self._spawned[pair] += 1
        return f"{child.type[:180]}:{hashed.hex()}:{self._spawned[pair]}"

    def _lost(self, reason: LossReason) -> LeaseLost:
        self.stop(Cancellation(reason, None))
        return LeaseLost(f"this attempt of job {self.job.id} no longer owns it: {reason.value}", reason=reason.value)
