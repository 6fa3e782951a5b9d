"""An attempt that records what a handler asks of it, and answers as it is told to."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any, TypeVar

from ropewalk import Job, JobType, LimitExceeded, State
from ropewalk.definitions.attempt_port import Cancellation
from ropewalk.domain.instants import Seconds
from ropewalk.domain.job import NewJob, new_record
from ropewalk.domain.lease import LossReason

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

    @property
    def idempotency_key(self) -> str:
        return "the-job:1"

    def cancellation(self) -> Cancellation | None:
        return self.cancel

    def progress(self, percent: float, message: str | None) -> None:
        self.told.append((percent, message))
        self.heard.set()

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

    def blocking(self, work: Coroutine[Any, Any, T]) -> T:
        raise AssertionError("ctx.sync of a process never reaches the worker's own")
