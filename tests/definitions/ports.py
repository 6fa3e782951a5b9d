"""An attempt that remembers what its handler asked for."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any, TypeVar

from ropewalk.definitions.attempt_port import AttemptPort, Cancellation
from ropewalk.definitions.job import Job
from ropewalk.definitions.jobtype import JobType
from ropewalk.definitions.options import AppDefaults
from ropewalk.definitions.submission import to_new_job
from ropewalk.domain.instants import Seconds
from ropewalk.domain.job import JobRecord, NewJob
from ropewalk.domain.limits import Limits
from ropewalk.domain.states import State

T = TypeVar("T")


class FakeAttempt(AttemptPort):
    def __init__(self, job: JobRecord, job_type: JobType[..., Any, Any]) -> None:
        self._job = job
        self._job_type = job_type
        self.why: Cancellation | None = None
        self.resources: list[object] = []
        self.said: list[tuple[Any, ...]] = []

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

    def resource(self, kind: type[T]) -> T:
        return next(each for each in self.resources if isinstance(each, kind))

    def last_checkpoint(self) -> object:
        return next((each[1] for each in reversed(self.said) if each[0] == "checkpoint"), None)

    async def checkpoint(self, value: object) -> None:
        self.said.append(("checkpoint", value))

    def prepare(self, job: Job[Any, Any]) -> NewJob:
        return to_new_job(job, call={}, defaults=AppDefaults(), limits=Limits(), tenant=self.job.tenant)

    async def spawn(self, jobs: Sequence[tuple[NewJob, str | None]]) -> list[str]:
        self.said.append(("spawn", *((job.type, key) for job, key in jobs)))
        return [job.id for job, _ in jobs]

    async def states(self, ids: Sequence[str]) -> dict[str, State]:
        return dict.fromkeys(ids, State.RUNNING)

    async def once(self, key: str, ttl: Seconds) -> bool:
        self.said.append(("once", key, ttl))
        return True

    def blocking(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run(work)
