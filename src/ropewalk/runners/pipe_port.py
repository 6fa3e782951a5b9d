"""The attempt port in a handler's process, which sends most of what the handler's context asks for to the worker."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import Future
from itertools import count
from threading import Lock
from typing import Any, TypeVar

import msgspec

from ropewalk.definitions.codec.codec import DEFAULT_CODEC
from ropewalk.definitions.context.attempt_port import AttemptPort, Cancellation
from ropewalk.definitions.context.context import Context
from ropewalk.definitions.job import Job
from ropewalk.definitions.job_types.job_type import JobType
from ropewalk.definitions.options import Logs
from ropewalk.definitions.submission import to_new_job
from ropewalk.domain.bounds import Bounds
from ropewalk.domain.failure import clipped
from ropewalk.domain.jobs.flags import STEPPED
from ropewalk.domain.jobs.lease import LossReason
from ropewalk.domain.jobs.outcome import Outcome
from ropewalk.domain.jobs.record import JobRecord, NewJob
from ropewalk.domain.jobs.states import State
from ropewalk.domain.shown_errors import safe_error_text
from ropewalk.domain.time import Instant, Seconds, to_span
from ropewalk.domain.workflow.completion import StepRecord
from ropewalk.errors import DefinitionError, LeaseLost, StoreUnavailable, Unsupported
from ropewalk.ports.store.user_transactions import UserTransaction
from ropewalk.ports.store.workflows import Dependency
from ropewalk.runners.messages import (
    Answer,
    Began,
    Call,
    Cancel,
    Checkpoint,
    HandlerMessage,
    Logged,
    Once,
    Progress,
    RecordStep,
    Refusal,
    ReportedError,
    Run,
    Spawn,
    States,
    Steps,
    TakeSignal,
    done,
    exception_of,
)
from ropewalk.runners.source import load_job_type

T = TypeVar("T")


class PipePort(AttemptPort):
    """The port of one attempt. Any thread may use it; once the attempt is over, it sends nothing more."""

    def __init__(self, run: Run, send: Callable[[HandlerMessage], object]) -> None:
        self.request = run
        self._send = send
        self._send_lock = Lock()
        self._over = False
        self._calls = count(1)
        self._waiters: dict[int, Future[object]] = {}
        self._cancellation: Cancellation | None = None
        self._checkpoint = run.job.checkpoint
        self._job_type: JobType[..., Any, Any] | None = None

    # ── what the process does with it ───────────────────────────────────────────────────────────────────────

    def begin(self) -> None:
        """Tell the worker that user code runs from here on."""
        self._send_message(Began())

    def set_job_type(self, job_type: JobType[..., Any, Any]) -> None:
        """Set the job type, once it is loaded."""
        self._job_type = job_type

    def receive(self, message: Cancel | Answer | Refusal) -> None:
        """Take in a message of the worker; the thread that reads the pipe calls this."""
        match message:
            case Cancel(why):
                self._cancellation = why
            case Answer(call, value):
                if (waiting := self._waiter_of(call)) is not None:
                    waiting.set_result(value)
            case Refusal(call):
                if (waiting := self._waiter_of(call)) is not None:
                    waiting.set_exception(exception_of(message))

    def report(self, error: BaseException, phase: str) -> None:
        """Let the worker report an error that does not change the outcome, with its secrets hidden."""
        message = safe_error_text(error, self.job_type.hidden_names(self.logs.secret_keys))
        self._send_message(ReportedError(clipped(f"{type(error).__name__}: {message}"), phase))

    def finish(self, outcome: Outcome) -> None:
        """Send the outcome, and nothing after it."""
        with self._send_lock:
            self._over = True
            self._send(done(outcome))

    # ── what the handler asks for (AttemptPort) ─────────────────────────────────────────────────────────────

    @property
    def job(self) -> JobRecord:
        return self.request.job

    @property
    def job_type(self) -> JobType[..., Any, Any]:
        assert self._job_type is not None, "it is set before the handler is called"
        return self._job_type

    @property
    def idempotency_key(self) -> str:
        return self.request.idempotency_key

    @property
    def bounds(self) -> Bounds:
        return self.request.bounds

    def now(self) -> Instant:
        """The time of the request, which is behind by how long the handler has run.

        At worst the handler waits once more for a moment that has passed.
        """
        return self.request.now

    def cancellation(self) -> Cancellation | None:
        return self._cancellation

    def progress(self, percent: float, message: str | None) -> None:
        self._send_message(Progress(percent, message))

    @property
    def logs(self) -> Logs:
        return self.request.logs

    def keep_log_line(self, level: int, message: str, fields: str | None) -> None:
        with contextlib.suppress(LeaseLost):  # a thread that outlives its handler may log, but nobody keeps its lines
            self._send_message(Logged(level, message, fields))

    def resource(self, kind: type[T]) -> T:
        raise LookupError(
            f"ctx.resource({kind.__name__}) is not there in a handler's own process: what the lifespan yields lives in "
            "the worker. Open it in the handler's module, or run the handler in a thread"
        )

    def last_checkpoint(self) -> object:
        return None if self._checkpoint is None else DEFAULT_CODEC.decode(self._checkpoint, Any)

    async def checkpoint(self, value: object) -> None:
        data = DEFAULT_CODEC.encode(value, Any)
        await self._call_worker(lambda call: Checkpoint(call, data))
        self._checkpoint = data

    def prepare(self, job: Job[Any, Any]) -> NewJob:
        request = self.request
        return to_new_job(job, call={}, defaults=request.defaults, bounds=request.bounds, tenant=request.job.tenant)

    async def spawn(self, jobs: Sequence[tuple[NewJob, str | None]]) -> list[str]:
        return msgspec.convert(await self._call_worker(lambda call: Spawn(call, list(jobs))), list[str])

    async def states(self, ids: Sequence[str]) -> dict[str, State]:
        return msgspec.convert(await self._call_worker(lambda call: States(call, list(ids))), dict[str, State])

    async def once(self, key: str, ttl: Seconds) -> bool:
        ttl_us = to_span(ttl, "ttl")
        return msgspec.convert(await self._call_worker(lambda call: Once(call, key, ttl_us)), bool)

    def dependencies(self) -> Sequence[Dependency]:
        return self.request.dependencies

    def known_type(self, name: str) -> JobType[..., Any, Any] | None:
        """The type, if a job that this job depends on has it; it is loaded here on first use."""
        source = self.request.types.get(name)
        if source is None:
            return None
        try:
            return load_job_type(source)
        except DefinitionError:
            return None

    def decode_result(self, job: JobRecord) -> object:
        known = self.known_type(job.type)
        return self.decode_value(job.result) if known is None else known.decode_result(job.result)

    def encode_value(self, value: object) -> bytes | None:
        return None if value is None else DEFAULT_CODEC.encode(value, Any)

    def decode_value(self, data: bytes | None) -> object:
        return None if data is None else DEFAULT_CODEC.decode(data, Any)

    async def steps(self) -> list[StepRecord]:
        if not self.job.flags & STEPPED:
            return []
        return msgspec.convert(await self._call_worker(Steps), list[StepRecord])

    async def record_step(self, step: StepRecord) -> None:
        await self._call_worker(lambda call: RecordStep(call, step))

    async def take_signal(self, step: StepRecord, signal: str) -> StepRecord | None:
        return msgspec.convert(await self._call_worker(lambda call: TakeSignal(call, step, signal)), StepRecord | None)

    async def begin_transaction(self) -> UserTransaction:
        raise Unsupported("ctx.transaction() cannot reach into another process: use it in async handlers or in threads")

    async def commit(self, transaction: UserTransaction, context: Context, returned: object) -> None:
        raise AssertionError("there is no transaction to commit here")

    def mark_unanswered(self, error: StoreUnavailable) -> None:
        raise AssertionError("there is no transaction here, and the worker repeats every other call")

    async def in_thread(self, call: Callable[[], T]) -> T:
        return await asyncio.to_thread(call)

    def blocking(self, work: Coroutine[Any, Any, T]) -> T:
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return asyncio.run(work)
        work.close()
        raise RuntimeError("ctx.sync is for sync handlers: in an async handler await the method of ctx itself")

    # ── the pipe ────────────────────────────────────────────────────────────────────────────────────────────

    async def _call_worker(self, make: Callable[[int], Call]) -> object:
        call = next(self._calls)
        answer = self._waiters[call] = Future[object]()
        try:
            self._send_message(make(call))
            return await asyncio.wrap_future(answer)
        finally:
            self._waiters.pop(call, None)

    def _waiter_of(self, call: int) -> Future[object] | None:
        """The future that waits for the answer to this call; None if nobody waits for it any more."""
        waiting = self._waiters.get(call)
        return waiting if waiting is not None and waiting.set_running_or_notify_cancel() else None

    def _send_message(self, message: HandlerMessage) -> None:
        with self._send_lock:
            if self._over:
                problem = f"this attempt of job {self.job.id} is over: nothing it says is heard any more"
                raise LeaseLost(problem, reason=LossReason.ALREADY_COMPLETED.value)
            self._send(message)
