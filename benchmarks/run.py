"""One run of one workload on one subject, and the sums it must satisfy before its figure counts."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import AsyncGenerator, Iterator
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, assert_never

from benchmarks.board import Board
from benchmarks.crew import Crew, Inside, Processes
from benchmarks.pace import Pace, Submitted
from benchmarks.server import Server
from benchmarks.subjects.make import make, worker_command
from benchmarks.subjects.subject import Kind, Local, StoreName, Subject

BOARD: Final = "board"
LOOK_SECONDS: Final = 0.002
PATIENCE_SECONDS: Final = 120.0
WARM_UP_JOBS: Final = 300


class Miscounted(Exception):
    """Jobs were lost, invented or not run: the run has no figure."""


@dataclass(frozen=True, slots=True)
class Run:
    url: str
    subject: Subject
    board: Board
    crew: Crew
    jobs: range
    """numbers of the measured jobs; those below warmed up"""

    async def warm_up(self) -> None:
        """Submit and serve a few hundred jobs: caches, statements and code paths are then as in a long life."""
        await self.subject.hand_in("bulk", range(self.jobs.start))
        await self.crew.go()
        await self.until_completed(self.jobs.start)
        await self.crew.stop()

    async def submit(self, how: Pace) -> Submitted:
        """All the measured jobs."""
        return await self.subject.hand_in(how, self.jobs)

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
    kind: Kind, store: StoreName, *, jobs: int, workers: int, parent: Path | None, server: Server | None = None
) -> AsyncGenerator[Run, None]:
    """A fresh store with a warm crew, in processes or (none asked for, or memory, which has one process) inside.

    `server` is who gives a fresh database; PostgreSQL needs one.
    """
    with _place(kind, store, parent, server) as (directory, url):
        board = Board.create(directory / BOARD, WARM_UP_JOBS + jobs)
        subject = make(kind, url, board)
        async with AsyncExitStack() as ending:
            ending.callback(board.close)
            await subject.open()
            ending.push_async_callback(subject.close)
            crew = await _crew(kind, url, directory / BOARD, subject, 0 if store == "memory" else workers)
            ending.push_async_callback(crew.unregister)
            run = Run(url, subject, board, crew, range(WARM_UP_JOBS, WARM_UP_JOBS + jobs))
            await run.warm_up()
            yield run


@contextmanager
def _place(kind: Kind, store: StoreName, parent: Path | None, server: Server | None) -> Iterator[tuple[Path, str]]:
    """Where a run leaves its files, and the URL of its store. Nothing of either remains."""
    with tempfile.TemporaryDirectory(prefix="rw-", dir=parent) as name, ExitStack() as databases:
        directory = Path(name)
        match store:
            case "memory":
                url = "memory://"
            case "sqlite":
                url = f"sqlite:///{directory / kind}.db"
            case "postgres":
                assert server is not None, "PostgreSQL is measured on a server"
                url = databases.enter_context(server.fresh_database())
            case _:
                assert_never(store)
        yield directory, url


async def _crew(kind: Kind, url: str, board: Path, subject: Subject, workers: int) -> Crew:
    """A peer has no worker inside: those who only submit get one process for the warm-up."""
    if workers == 0 and isinstance(subject, Local):
        return Inside(subject)
    return await Processes.hire([worker_command(kind, url, board, index) for index in range(workers or 1)])
