"""R13, safe-8: a limit holds for the whole fleet, whoever is killed when; and no place is lost with the dead."""

from __future__ import annotations

import asyncio
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Final, TypeAlias

import psycopg
import pytest

from ropewalk import App, Filter, State
from tests.torture import history, jobs
from tests.torture.harness import ROOT, nothing_lives, seeded, until, url_in

pytestmark = pytest.mark.torture

Count: TypeAlias = Callable[[], int]

MOST: Final = 3
WORKERS: Final = 4
JOBS: Final = 240
KILLS: Final = 8
KILL_EVERY_SECONDS: Final = 0.8


async def test_a_fleet_on_one_file(tmp_path: Path) -> None:
    url = url_in(tmp_path)
    async with App(url):  # the file is there before anybody looks into it
        pass
    db = sqlite3.connect(f"file:{tmp_path / 'jobs.db'}?mode=ro", uri=True, isolation_level=None)
    try:
        await overrun(url, tmp_path, lambda: int(db.execute("SELECT count(*) FROM job WHERE stage = 2").fetchone()[0]))
    finally:
        db.close()


async def test_a_fleet_on_one_database(tmp_path: Path, postgres_database: str) -> None:
    async with App(postgres_database, allow_weaker_durability=True):
        pass
    with psycopg.connect(postgres_database, autocommit=True) as db:
        counted = "SELECT count(*) FROM ropewalk.running"
        await overrun(postgres_database, tmp_path, lambda: int((db.execute(counted).fetchone() or (0,))[0]))


async def overrun(url: str, directory: Path, running: Count) -> None:
    """Far more work than a limit leaves room for, and workers that die of it."""
    random = seeded()
    app = App(url, jobs=[jobs.nap], allow_weaker_durability=True)
    path = directory / "history.jsonl"
    seen: list[int] = []
    async with app:
        await app.set_limit(key="slow", concurrency=MOST)
        with fleet(url, path) as workers:
            await until(lambda: len(history.read(path)) >= WORKERS, "the fleet serves", seconds=60)
            batch = [jobs.nap(seconds=random.uniform(0.01, 0.08)) for _ in range(JOBS)]
            await app.enqueue_many(batch, limit="slow")
            watching = asyncio.create_task(watch(running, seen))
            for _ in range(KILLS):
                await asyncio.sleep(KILL_EVERY_SECONDS * random.uniform(0.5, 1.5))
                kill_one(workers, random, url, path)
            await until(lambda: nothing_lives(app), "every job is terminal", seconds=80)
            watching.cancel()
        completed = await app.count(Filter(states=(State.COMPLETED,)))
        lost = [job for job in (await app.search(limit=1000)).jobs if job.crashes]
    assert completed == JOBS
    assert max(seen) <= MOST, f"{max(seen)} of at most {MOST} ran at once"
    # The power of the test: the limit was reached, work was under way in between, and the killed held places.
    print(f"looks {len(seen)}, at the limit in {seen.count(MOST)}, jobs with a lost lease {len(lost)}")
    assert len(seen) > 500
    assert seen.count(MOST) > 50
    assert lost


async def watch(running: Count, seen: list[int]) -> None:
    while True:
        seen.append(running())
        await asyncio.sleep(0.002)


@contextmanager
def fleet(url: str, path: Path) -> Generator[list[subprocess.Popen[bytes]]]:
    workers = [start(url, path) for _ in range(WORKERS)]
    try:
        yield workers
    finally:
        for worker in workers:
            worker.kill()
            worker.wait()


def start(url: str, path: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-m", "tests.torture.limited_worker", url, str(path)], cwd=ROOT)


def kill_one(workers: list[subprocess.Popen[bytes]], random: Random, url: str, path: Path) -> None:
    """One that runs something just now, where there is one; another takes its place."""
    happened = history.read(path)
    ended = {(each.job, each.fence) for each in happened if each.kind == "effect"}
    busy = {each.pid for each in happened if each.kind == "started" and (each.job, each.fence) not in ended}
    victim = random.choice([worker for worker in workers if worker.pid in busy] or workers)
    victim.kill()
    victim.wait()
    workers.remove(victim)
    workers.append(start(url, path))
