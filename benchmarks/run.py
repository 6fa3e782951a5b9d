"""One run of one workload on one subject, and the sums it must satisfy before its figure counts."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.board import Board
from benchmarks.crew import Crew, Inside, Processes
from benchmarks.subjects.make import make
from benchmarks.subjects.subject import Kind, StoreName, Subject

BOARD: Final = "board"
LOOK_SECONDS: Final = 0.002
PATIENCE_SECONDS: Final = 120.0
WARM_UP_JOBS: Final = 300


class Miscounted(Exception):
    """Jobs were lost, invented or not run: the run has no figure."""


@dataclass(frozen=True, slots=True)
class Run:
    subject: Subject
    board: Board
    crew: Crew
    jobs: range
    """numbers of the measured jobs; those below warmed up"""

    async def warm_up(self) -> None:
        """Submit and serve a few hundred jobs: caches, statements and code paths are then as in a long life."""
        await self.subject.submit_many(range(self.jobs.start))
        await self.crew.go()
        await self.until_completed(self.jobs.start)
        await self.crew.stop()

    async def until_completed(self, total: int) -> None:
        """Wait until `total` handlers started and nothing is left open."""
        until = time.monotonic() + PATIENCE_SECONDS
        while self.board.handled < total or await self.subject.unfinished():
            if time.monotonic() > until:
                raise Miscounted(
                    f"after {PATIENCE_SECONDS:g} s {self.board.handled} of {total} jobs had started and "
                    f"{await self.subject.unfinished()} were unfinished"
                )
            await asyncio.sleep(LOOK_SECONDS)

    async def verify(self, *, completed: bool) -> int:
        """Every job submitted is in the store, and (if asked) every one ran and completed. How many those are."""
        total = self.jobs.stop
        there = await self.subject.submitted()
        if there != total:
            raise Miscounted(f"submitted {total} jobs, the store has {there}")
        if completed:
            done = await self.subject.completed()
            never = self.board.never_started(range(total))
            if done != total or never:
                raise Miscounted(f"of {total} jobs {done} completed; never started: {never[:10]}")
        return len(self.jobs)


@asynccontextmanager
async def prepared(
    kind: Kind, store: StoreName, *, jobs: int, workers: int, parent: Path | None
) -> AsyncGenerator[Run, None]:
    """A fresh store with a warm crew; memory has one process, so its worker is inside."""
    directory = Path(tempfile.mkdtemp(prefix="rw-", dir=parent))
    board = Board.create(directory / BOARD, WARM_UP_JOBS + jobs)
    subject = make(kind, store, directory, board)
    await subject.open()
    crew: Crew = Inside(subject)
    try:
        if store != "memory" and workers:
            crew = await Processes.hire(workers, kind, store, directory)
        run = Run(subject, board, crew, range(WARM_UP_JOBS, WARM_UP_JOBS + jobs))
        await run.warm_up()
        yield run
    finally:
        await crew.dismiss()
        await subject.close()
        board.close()
        shutil.rmtree(directory)
