"""An attempt that remembers what its handler asked for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeVar

from msgspec import structs

from ropewalk.definitions.codec.codec import DEFAULT_CODEC
from ropewalk.definitions.context.attempt_port import AttemptPort, Cancellation
from ropewalk.definitions.context.context import Context
from ropewalk.definitions.job import Job
from ropewalk.definitions.job_types.job_type import JobType
from ropewalk.definitions.options import AppDefaults, Logs
from ropewalk.definitions.submission import to_new_job
from ropewalk.domain.bounds import Bounds
from ropewalk.domain.jobs.flags import STEPPED
from ropewalk.domain.jobs.record import JobRecord, NewJob
from ropewalk.domain.jobs.states import State
from ropewalk.domain.time import Instant, Seconds
from ropewalk.domain.workflow.completion import StepRecord
from ropewalk.errors import StoreUnavailable
from ropewalk.ports.store.user_transactions import UserTransaction
from ropewalk.ports.store.workflows import Dependency

T = TypeVar("T")


class FakeAttempt(AttemptPort):
    def __init__(self, job: JobRecord, job_type: JobType[..., Any, Any]) -> None:
        self._job = job
        self._job_type = job_type
        self.why: Cancellation | None = None
        self.resources: list[object] = []
        self.said: list[tuple[Any, ...]] = []
        self.allowed = Bounds()
        self.log_settings = Logs()
        self.kept: list[tuple[int, str, str | None]] = []
        self.clock: Instant = job.started_at or 0
        self.waited_for: list[Dependency] = []
        self.types: list[JobType[..., Any, Any]] = []
        self.stored: dict[int, StepRecord] = {}
        self.signals: list[tuple[str, object]] = []

    @property
    def bounds(self) -> Bounds:
        return self.allowed

    @property
    def job(self) -> JobRecord:
        return self._job

    @property
    def job_type(self) -> JobType[..., Any, Any]:
        return self._job_type

    @property
    def idempotency_key(self) -> str:
        return f"{self._job.id}:{self._job.run}"

    def cancellation(self) -> Cancellation | None:
        return self.why

    def progress(self, percent: float, message: str | None) -> None:
        self.said.append(("progress", percent, message))

    @property
    def logs(self) -> Logs:
        return self.log_settings

    def keep_log_line(self, level: int, message: str, fields: str | None) -> None:
        self.kept.append((level, message, fields))

    def resource(self, kind: type[T]) -> T:
        return next(each for each in self.resources if isinstance(each, kind))

    def last_checkpoint(self) -> object:
        return next((each[1] for each in reversed(self.said) if each[0] == "checkpoint"), None)

    async def checkpoint(self, value: object) -> None:
        self.said.append(("checkpoint", value))

    def prepare(self, job: Job[Any, Any]) -> NewJob:
        return to_new_job(job, call={}, defaults=AppDefaults(), bounds=self.allowed, tenant=self.job.tenant)

    async def spawn(self, jobs: Sequence[tuple[NewJob, str | None]]) -> list[str]:
        self.said.append(("spawn", *((job.type, key) for job, key in jobs)))
        return [job.id for job, _ in jobs]

    async def states(self, ids: Sequence[str]) -> dict[str, State]:
        return dict.fromkeys(ids, State.RUNNING)

    async def once(self, key: str, ttl: Seconds) -> bool:
        self.said.append(("once", key, ttl))
        return True

    def now(self) -> Instant:
        return self.clock

    def dependencies(self) -> Sequence[Dependency]:
        return self.waited_for

    def known_type(self, name: str) -> JobType[..., Any, Any] | None:
        return next((each for each in self.types if each.name == name), None)

    def decode_result(self, job: JobRecord) -> object:
        self.said.append(("decode", job.id))
        known = self.known_type(job.type)
        return self.decode_value(job.result) if known is None else known.decode_result(job.result)

    def encode_value(self, value: object) -> bytes | None:
        return None if value is None else DEFAULT_CODEC.encode(value, Any)

    def decode_value(self, data: bytes | None) -> object:
        return None if data is None else DEFAULT_CODEC.decode(data, Any)

    async def steps(self) -> list[StepRecord]:
        await asyncio.sleep(0)
        self.said.append(("steps",))
        return list(self.stored.values())

    async def record_step(self, step: StepRecord) -> None:
        self.keep(step)

    async def take_signal(self, step: StepRecord, signal: str) -> StepRecord | None:
        for each in self.signals:
            if each[0] == signal:
                self.signals.remove(each)
                return self.keep(structs.replace(step, value=self.encode_value(each[1])))
        return None

    def keep(self, step: StepRecord) -> StepRecord:
        """As a store would: under its position, and the job is marked."""
        self.stored[step.position] = step
        self.job.flags |= STEPPED
        return step

    async def begin_transaction(self) -> UserTransaction:
        raise AssertionError("there is no store here that could begin one")

    async def commit(self, transaction: UserTransaction, context: Context, returned: object) -> None:
        raise AssertionError("there is no transaction to commit here")

    def mark_unanswered(self, error: StoreUnavailable) -> None:
        raise AssertionError("there is no store here that could be away")

    async def in_thread(self, call: Callable[[], T]) -> T:
        self.said.append(("in_thread",))
        return await asyncio.to_thread(call)

    def blocking(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run(work)
