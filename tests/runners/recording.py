"""An attempt that records what a handler asks of it, and answers as it is told to."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeVar

from msgspec import structs

from ropewalk import Bounds, Context, Job, JobType, LeaseLost, LimitExceeded, Logs, State, StoreUnavailable
from ropewalk.definitions.context.attempt_port import Cancellation
from ropewalk.domain.jobs.flags import STEPPED
from ropewalk.domain.jobs.lease import LossReason
from ropewalk.domain.jobs.record import JobRecord, NewJob, new_record
from ropewalk.domain.time import Instant, Seconds
from ropewalk.domain.workflow.completion import StepRecord
from ropewalk.ports.store.user_transactions import UserTransaction
from ropewalk.ports.store.workflows import Dependency

T = TypeVar("T")

CANCELLED = Cancellation(LossReason.CANCELLED, "enough")


class Recording:
    def __init__(self, job_type: JobType[..., Any, Any], /, **arguments: object) -> None:
        data = job_type.encode_input(arguments)
        self.job = new_record(NewJob(id="the-job", type=job_type.name, input=data), seq=1, now=1_000_000)
        self.job.attempt = 1
        self.job_type = job_type
        self.told: list[tuple[float, str | None]] = []
        self.heard = asyncio.Event()
        """set by progress"""
        self.checkpoints: list[object] = []
        self.checkpoint_chars_max: int | None = None
        self.cancel_at_checkpoint = False
        self.spawned: list[tuple[NewJob, str | None]] = []
        self.asked_states: list[str] = []
        self.asked_once: list[tuple[str, Seconds]] = []
        self.cancel: Cancellation | None = None
        self.bounds = Bounds()
        self.logs = Logs()
        self.lines: list[tuple[int, str, str | None]] = []
        self.waited_for: list[Dependency] = []
        self.types: list[JobType[..., Any, Any]] = []
        self.stored: dict[int, StepRecord] = {}
        self.signals: dict[str, bytes | None] = {}
        self.clock: Instant = 1_000_000

    @property
    def idempotency_key(self) -> str:
        return "the-job:1"

    def cancellation(self) -> Cancellation | None:
        return self.cancel

    def progress(self, percent: float, message: str | None) -> None:
        self.told.append((percent, message))
        self.heard.set()

    def keep_log_line(self, level: int, message: str, fields: str | None) -> None:
        self.lines.append((level, message, fields))

    def resource(self, kind: type[T]) -> T:
        raise AssertionError("a process never asks the worker for a resource")

    def last_checkpoint(self) -> object:
        raise AssertionError("a process reads the checkpoint of the record it was given")

    async def checkpoint(self, value: object) -> None:
        if self.checkpoint_chars_max is not None and len(str(value)) > self.checkpoint_chars_max:
            raise LimitExceeded(f"over {self.checkpoint_chars_max}", field="checkpoint")
        self.checkpoints.append(value)
        if self.cancel_at_checkpoint:
            self.cancel = CANCELLED

    def prepare(self, job: Job[Any, Any]) -> NewJob:
        raise AssertionError("a process prepares what it spawns itself")

    async def spawn(self, jobs: Sequence[tuple[NewJob, str | None]]) -> list[str]:
        self.spawned.extend(jobs)
        return [job.id for job, _ in jobs]

    async def states(self, ids: Sequence[str]) -> dict[str, State]:
        self.asked_states.extend(ids)
        return {ids[0]: State.RUNNING}

    async def once(self, key: str, ttl: Seconds) -> bool:
        self.asked_once.append((key, ttl))
        return True

    def now(self) -> Instant:
        return self.clock

    def dependencies(self) -> Sequence[Dependency]:
        return self.waited_for

    def known_type(self, name: str) -> JobType[..., Any, Any] | None:
        return next((each for each in self.types if each.name == name), None)

    def decode_result(self, job: JobRecord) -> object:
        raise AssertionError("a process decodes results itself")

    def encode_value(self, value: object) -> bytes | None:
        raise AssertionError("a process encodes values itself")

    def decode_value(self, data: bytes | None) -> object:
        raise AssertionError("a process decodes values itself")

    async def steps(self) -> list[StepRecord]:
        return list(self.stored.values())

    async def record_step(self, step: StepRecord) -> None:
        if self.cancel is not None:
            raise LeaseLost("it is another's", reason=self.cancel.reason.value)
        self.stored[step.position] = step
        self.job.flags |= STEPPED

    async def take_signal(self, step: StepRecord, signal: str) -> StepRecord | None:
        if signal not in self.signals:
            return None
        await self.record_step(taken := structs.replace(step, value=self.signals.pop(signal)))
        return taken

    async def begin_transaction(self) -> UserTransaction:
        raise AssertionError("a process has no transaction: its own port refuses")

    async def commit(self, transaction: UserTransaction, context: Context, returned: object) -> None:
        raise AssertionError("a process has no transaction: its own port refuses")

    def mark_unanswered(self, error: StoreUnavailable) -> None:
        raise AssertionError("a process has no transaction: its own port refuses")

    async def in_thread(self, call: Callable[[], T]) -> T:
        raise AssertionError("a process starts its threads itself")

    def blocking(self, work: Coroutine[Any, Any, T]) -> T:
        raise AssertionError("ctx.sync of a process never reaches the worker's own")
