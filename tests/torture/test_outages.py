"""PostgreSQL crashes and is away for 1, 10, 40 and 90 s under `ropewalk worker` processes that are idle, busy, run long
jobs, or are two under one supervisor. Nobody exits, no job pays for it, and everything goes on by itself.

The four outages are side by side, each on a server of its own, and end one soon after the other: what takes longest
decides how long it all takes. All times are those of the machine; the table at the end of the run shows them.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple, Never

import pytest

from ropewalk import App, Handle
from ropewalk.domain.jobs.states import Status
from tests.servers.binaries import postgres_binaries
from tests.servers.postgres import Postgres, Settings
from tests.tables import NoteRow
from tests.torture import jobs
from tests.torture.harness import HISTORY, ROOT, all_terminal, trails, until
from tests.torture.history import Happening, Tail
from tests.torture.outages import RESUME_SECONDS_MAX

# Beside other fleets: this one waits for nearly all of its two and a half minutes.
pytestmark = [pytest.mark.torture, pytest.mark.system, pytest.mark.xdist_group("outages")]

LEASE_SECONDS: Final = 5.0
"""Shorter than all outages but one: the leases of everything that runs are over when the store comes back."""
AGE_SECONDS: Final = 61.0
"""Older than the minute for which a loop may fail for another reason before its worker gives up."""
SLOTS: Final = 5
SHORT_SECONDS: Final = 0.1
SHORT_JOBS: Final = 300
"""What a busy worker has before it for six seconds or so: it has work when the store goes, and when it comes back."""


class Cell(NamedTuple):
    """One worker of the matrix: what it does when the store goes away. Its queue has its name."""

    name: str
    short: int = 0
    long: int = 0
    processes: int = 1


CELLS: Final = (
    Cell("idle"),
    Cell("busy", short=SHORT_JOBS),
    Cell("long jobs", long=SLOTS),
    Cell("two processes", short=SHORT_JOBS, long=2),
)


class Outage(NamedTuple):
    seconds: float
    age_seconds: float
    """of the workers, when the store goes away"""


# The longest begins early so that it is over when the others are: its workers are young, those of the others old.
OUTAGES: Final = (Outage(1, AGE_SECONDS), Outage(10, AGE_SECONDS), Outage(40, AGE_SECONDS), Outage(90, 5))


class Worker:
    """`ropewalk worker`, serving the queue of its cell."""

    def __init__(self, cell: Cell, url: str, directory: Path) -> None:
        self.cell = cell
        directory.mkdir()
        self._tail = Tail(directory / HISTORY)
        self._seen: list[Happening] = []
        self._log = directory / "log"
        options = ["--queue", cell.name, "--lease", f"{LEASE_SECONDS:g}", "--concurrency", str(SLOTS)]
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "ropewalk", "worker", "tests.torture.outage_app:app", *options]
                + (["--processes", str(cell.processes)] if cell.processes > 1 else []),
                cwd=ROOT,
                env={**os.environ, "ROPEWALK_URL": url, "ROPEWALK_OUTAGE_DIRECTORY": str(directory)},
                stdout=subprocess.DEVNULL,
                stderr=log,
            )

    def happened(self, kind: str) -> list[Happening]:
        self._seen += self._tail.news()
        return [each for each in self._seen if each.kind == kind]

    def pids(self) -> set[int]:
        """Of the processes that run handlers."""
        if self.cell.processes == 1:
            return {self.process.pid} if self.process.poll() is None else set()
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        return set(map(int, children.read_text().split())) if self.process.poll() is None else set()

    def drain(self) -> int:
        self.process.terminate()
        return self.process.wait(30)

    def log(self) -> str:
        return self._log.read_text()

    def close(self) -> None:
        for pid in self.pids() | {self.process.pid} if self.process.poll() is None else set():
            os.kill(pid, signal.SIGKILL)
        self.process.wait()


@contextmanager
def servers() -> Iterator[list[Postgres]]:
    with ExitStack() as running:
        yield [running.enter_context(Postgres(postgres_binaries("newest"), Settings(durable=True))) for _ in OUTAGES]


@pytest.mark.timeout(400)
async def test_workers_outlast_every_outage(tmp_path: Path, note_row: NoteRow) -> None:
    """live-4, safe-7: 1, 10, 40 and 90 s, with workers that are idle, busy, run long jobs, or are two."""
    with servers() as stores:
        told = await asyncio.gather(
            *(
                Matrix(store, outage, tmp_path / f"{outage.seconds:g}").run()
                for store, outage in zip(stores, OUTAGES, strict=True)
            )
        )
    for rows in told:
        for row in rows:
            note_row("A server that is away: what happens to workers and their jobs", **row)
    assert len([row for rows in told for row in rows]) == len(OUTAGES) * len(CELLS)


class Matrix:
    """All cells of one outage, on one server."""

    def __init__(self, server: Postgres, outage: Outage, directory: Path) -> None:
        self._server = server
        self._outage = outage
        self._directory = directory
        self._url = server.dsn()

    async def run(self) -> list[dict[str, object]]:
        self._directory.mkdir()
        with ExitStack() as running:
            async with App(self._url, jobs=jobs.ALL) as app:
                await app.workers()  # the first to come makes the tables
                workers = [Worker(cell, self._url, self._directory / cell.name.replace(" ", "_")) for cell in CELLS]
                for worker in workers:
                    running.callback(worker.close)
                processes = sum(cell.processes for cell in CELLS)

                async def all_there() -> bool:
                    return len(await app.workers()) == processes

                await until(all_there, "all workers are there", seconds=90)
                return await self._go_away(app, workers)

    async def _go_away(self, app: App, workers: list[Worker]) -> list[dict[str, object]]:
        await asyncio.sleep(self._outage.age_seconds)
        before = {worker.cell.name: worker.pids() for worker in workers}
        submitted = {worker.cell.name: await self._submit(app, worker.cell) for worker in workers}
        for worker in workers:
            await until(partial(self._works, worker), f"{worker.cell.name} works")
        await asyncio.to_thread(self._server.stop, "immediate")
        away_at = time.monotonic()
        await asyncio.sleep(max(0.0, self._outage.seconds - (time.monotonic() - away_at)))
        await asyncio.to_thread(self._server.start)
        back_at = time.monotonic()
        for worker in workers:
            submitted[worker.cell.name].append(await app.enqueue(jobs.once(0.0).using(queue=worker.cell.name)))
        resumed = {worker.cell.name: await self._resumed(worker, back_at) for worker in workers}
        await all_terminal(app, seconds=60)
        after = {worker.cell.name: worker.pids() for worker in workers}
        found = await trails(self._directory, url=self._url)
        rows = []
        for worker in workers:
            name = worker.cell.name
            trail_of = [found[handle.id].job for handle in submitted[name]]
            starts = [each.job for each in worker.happened("started")]
            exits = len(before[name] - after[name])
            code = await asyncio.to_thread(worker.drain)
            row = {
                "away": f"{self._outage.seconds:g} s",
                "worker": name,
                "age": f"{self._outage.age_seconds:g} s",
                "jobs": len(trail_of),
                "resumed_after": f"{resumed[name]:.1f} s",
                "exits": exits,
                "attempts_charged": sum(job.attempt - 1 for job in trail_of),
                "crashes_charged": sum(job.crashes for job in trail_of),
                "started_again": len(starts) - len(set(starts)),
            }
            rows.append(row)
            charges = [row[each] for each in ("exits", "attempts_charged", "crashes_charged", "started_again")]
            assert charges == [0, 0, 0, 0], (row, worker.log())
            assert {job.status for job in trail_of} == {Status.COMPLETED}, row
            assert resumed[name] <= RESUME_SECONDS_MAX, row
            assert code == 0, (row, worker.log())
            assert {each.reason for each in worker.happened("lease_lost")} <= {"already_completed"}, row
        return rows

    async def _submit(self, app: App, cell: Cell) -> list[Handle[None, Never]]:
        """Long jobs come first, so that they run. Half of them end while the store is away, half of them later."""
        away = self._outage.seconds
        batch = [jobs.once(away / 2 if number % 2 else away + 5.0) for number in range(cell.long)]
        batch += [jobs.once(SHORT_SECONDS) for _ in range(cell.short)]
        if not batch:
            return []
        return [*await app.enqueue_many([each.using(queue=cell.name) for each in batch])]

    def _works(self, worker: Worker) -> bool:
        """It is in the middle of what it has to do; one of two processes may have found nothing to do yet."""
        cell = worker.cell
        started, accepted = worker.happened("started"), worker.happened("accepted")
        return len(started) >= min(SLOTS, cell.long + cell.short) and (not cell.short or len(accepted) > 0)

    async def _resumed(self, worker: Worker, back_at: float) -> float:
        """Seconds until every process of this worker that has something to settle settled something."""
        # Of two idle processes either may take what is new: those that ran something are waited for.
        wanted = {each.pid for each in worker.happened("started")} or worker.pids()

        def all_settled() -> bool:
            late = {each.pid for each in worker.happened("accepted") if each.at is not None and each.at > back_at}
            return wanted <= late

        await until(all_settled, f"{worker.cell.name} goes on: {worker.log}", seconds=2 * RESUME_SECONDS_MAX)
        first = {
            pid: min(
                each.at
                for each in worker.happened("accepted")
                if each.pid == pid and each.at is not None and each.at > back_at
            )
            for pid in wanted
        }
        return max(first.values()) - back_at
