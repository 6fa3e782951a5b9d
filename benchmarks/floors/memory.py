"""The floor in memory: deques by priority, a dict of leases, one worker on the same loop."""

from __future__ import annotations

import asyncio
import heapq
import time
from collections import deque
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

from benchmarks.floors.call import Arguments, Handler, Ids, decode, encode

BATCH: Final = 500
SLOTS: Final = 100
LEASE_SECONDS: Final = 30.0


@dataclass(slots=True)
class Job:
    id: str
    payload: bytes
    priority: int
    run_at: float
    attempt: int = 0


class MemoryFloor:
    def __init__(self, handler: Handler) -> None:
        self._handler = handler
        self._lines: dict[int, deque[Job]] = {}
        self._priorities: list[int] = []
        self._delayed: list[tuple[float, str, Job]] = []
        self._leases: dict[str, tuple[float, Job]] = {}
        self._ids = Ids()
        self._wake = asyncio.Event()
        self._submitted = self._completed = 0

    async def submit(self, calls: list[Arguments], *, priority: int = 0, run_at: float = 0.0) -> list[str]:
        """The ids of the new jobs, in the order of the calls."""
        jobs = [Job(self._ids.take(), encode(arguments), priority, run_at) for arguments in calls]
        for job in jobs:
            if run_at:
                heapq.heappush(self._delayed, (run_at, job.id, job))
            else:
                self._ready(job)
        self._submitted += len(jobs)
        self._wake.set()
        return [job.id for job in jobs]

    async def counts(self) -> tuple[int, int]:
        """How many were ever submitted, and completed."""
        return self._submitted, self._completed

    async def close(self) -> None:
        """Nothing to release."""

    @asynccontextmanager
    async def serving(self) -> AsyncGenerator[None, None]:
        worker = asyncio.create_task(self._work())
        try:
            yield
        finally:
            worker.cancel()
            await asyncio.wait([worker])

    def _ready(self, job: Job) -> None:
        line = self._lines.get(job.priority)
        if line is None:
            line = self._lines[job.priority] = deque()
            heapq.heappush(self._priorities, -job.priority)
        line.append(job)

    async def _work(self) -> None:
        while True:
            self._wake.clear()
            batch = self._claim()
            if not batch:
                await self._wake.wait()
            await asyncio.gather(*(self._slot(batch) for _ in range(min(SLOTS, len(batch)))))

    def _claim(self) -> deque[Job]:
        now = time.monotonic()
        while self._delayed and self._delayed[0][0] <= now:
            self._ready(heapq.heappop(self._delayed)[2])
        while self._leases and next(iter(self._leases.values()))[0] < now:
            self._ready(self._leases.pop(next(iter(self._leases)))[1])
        batch: deque[Job] = deque()
        while self._priorities and len(batch) < BATCH:
            line = self._lines[-self._priorities[0]]
            while line and len(batch) < BATCH:
                job = line.popleft()
                job.attempt += 1
                self._leases[job.id] = (now + LEASE_SECONDS, job)
                batch.append(job)
            if not line:
                del self._lines[-heapq.heappop(self._priorities)]
        return batch

    async def _slot(self, batch: deque[Job]) -> None:
        while batch:
            job = batch.popleft()
            await self._handler(**decode(job.payload))
            if self._leases.pop(job.id, None) is not None:
                self._completed += 1
