"""What a killed worker leaves runs again soon and together; of a job that kills its workers only that job is lost.

The times are those of the machine it runs on, and printed.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from ropewalk import App, State
from ropewalk.domain.jobs.states import Status
from tests.servers.binaries import postgres_binaries
from tests.servers.postgres import Postgres, Settings
from tests.torture import checkers, jobs
from tests.torture.harness import Fleet, all_terminal, seeded, trails, until, url_in
from tests.torture.history import Happening, Kind

pytestmark = [pytest.mark.torture, pytest.mark.system]

JOBS: Final = 8
SLOTS: Final = 10
LEASE_SECONDS: Final = 2.0
RECOVERY_SECONDS_MAX: Final = LEASE_SECONDS + 5.0
KILLS: Final = 4


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "sqlite":
        yield url_in(tmp_path)
        return
    with Postgres(postgres_binaries("newest"), Settings(durable=True)) as server:
        yield server.dsn()


async def test_all_jobs_of_a_killed_worker_run_again_together(url: str, tmp_path: Path) -> None:
    """live-2: within the lease and five seconds, on a worker with free slots."""
    app = App(url, jobs=jobs.ALL)
    async with app:
        with Fleet(tmp_path, size=2, concurrency=SLOTS, lease=LEASE_SECONDS, url=url) as fleet:
            await fleet.serving()
            await app.enqueue_many(jobs.innocent(seconds=RECOVERY_SECONDS_MAX) for _ in range(JOBS))
            await until(lambda: len(_started(fleet.happened)) == JOBS, "all jobs run")
            victims = {each.pid for each in _started(fleet.happened)}
            for pid in victims:
                fleet.kill_one(pid)
            killed_at = time.monotonic()
            await until(lambda: len(_started(fleet.happened)) == 2 * JOBS, "all jobs run again", seconds=60)
            took = time.monotonic() - killed_at
            await all_terminal(app, seconds=60)
    found = await trails(tmp_path, url=url)
    print(f"{JOBS} jobs of {len(victims)} killed workers ran again after {took:.1f} s")
    assert {trail.job.status for trail in found.values()} == {Status.COMPLETED}
    assert {trail.job.crashes for trail in found.values()} == {1}
    assert took <= RECOVERY_SECONDS_MAX


async def test_a_poison_job_among_them_is_the_only_dead_letter(url: str, tmp_path: Path) -> None:
    """safe-7: with the default number of attempts and crashes."""
    app = App(url, jobs=jobs.ALL)
    began = time.monotonic()
    async with app:
        batch = [jobs.innocent(seconds=0.5) for _ in range(JOBS - 1)]
        batch.insert(JOBS // 2, jobs.poison())
        await app.enqueue_many(batch)
        with Fleet(tmp_path, size=1, concurrency=SLOTS, lease=LEASE_SECONDS, url=url) as fleet:
            await all_terminal(app, seconds=90, meanwhile=fleet.refill)
            happened, exits = fleet.happened, fleet.exits
    found = await trails(tmp_path, url=url)
    crashes = sorted(trail.job.crashes for trail in found.values())
    print(f"a poison job among {JOBS} was over after {time.monotonic() - began:.1f} s, crashes {crashes}")
    dead = [trail.job for trail in found.values() if trail.job.status is Status.DEAD_LETTER]
    assert [(job.type, job.crashes) for job in dead] == [("poison", 3)]
    assert {trail.job.status for trail in found.values() if trail.job.type == "innocent"} == {Status.COMPLETED}
    assert max(trail.job.crashes for trail in found.values() if trail.job.type == "innocent") == 2
    assert list(exits.values()) == [-9] * 3
    assert checkers.illegal(found) == []
    assert checkers.accepted_twice(happened, found) == []


async def test_a_thawed_worker_hears_that_another_one_has_its_jobs(url: str, tmp_path: Path) -> None:
    """live-2, safe-4: its process was frozen for longer than the lease. Its handlers are told, and change nothing."""
    app = App(url, jobs=jobs.ALL)
    async with app:
        with Fleet(tmp_path, size=1, concurrency=SLOTS, lease=LEASE_SECONDS, url=url) as fleet:
            await fleet.serving()
            handles = await app.enqueue_many([jobs.listen(seconds=600), jobs.listen_in_thread(seconds=600)])
            await until(lambda: len(_started(fleet.happened)) == len(handles), "all jobs run")
            [frozen] = fleet.freeze()
            with Fleet(tmp_path, size=1, concurrency=SLOTS, lease=LEASE_SECONDS, url=url):
                await until(lambda: len(_started(fleet.happened)) == 2 * len(handles), "another worker runs them")
                assert _kind(fleet.happened, "heard") == []
                fleet.wake(everybody=True)
                await until(lambda: len(_kind(fleet.happened, "heard")) == len(handles), "both handlers hear of it")
                await until(lambda: len(_kind(fleet.happened, "lease_lost")) == len(handles), "their worker, too")
                happened = fleet.happened
                assert [(await handle.status()).state for handle in handles] == [State.RUNNING] * len(handles)
    told = {(each.job, each.pid, each.reason) for each in _kind(happened, "heard")}
    assert told == {(handle.id, frozen, "taken_by_another_worker") for handle in handles}
    assert {each.pid for each in _kind(happened, "lease_lost")} == {frozen}


async def test_jobs_with_a_single_attempt_are_never_started_twice(url: str, tmp_path: Path) -> None:
    """safe-7: a worker is killed at any moment. What it had claimed a moment before may be over unstarted."""
    app, random = App(url, jobs=jobs.ALL), seeded()
    async with app:
        with Fleet(tmp_path, size=1, concurrency=SLOTS, lease=1.0, url=url) as fleet:
            for _ in range(KILLS):
                await fleet.serving()
                await app.enqueue_many(jobs.once(seconds=0.01) for _ in range(200))
                await asyncio.sleep(random.uniform(0.02, 0.2))
                fleet.kill(random)
            await all_terminal(app, seconds=60)
            happened = fleet.happened
    found = await trails(tmp_path, url=url)
    started = [each.job for each in _started(happened)]
    dead = [job_id for job_id, trail in found.items() if trail.job.status is Status.DEAD_LETTER]
    unstarted = [job_id for job_id in dead if job_id not in started]
    print(f"{KILLS} kills, {len(found)} jobs with one attempt, {len(dead)} lost, {len(unstarted)} of them unstarted")
    assert len(started) == len(set(started)), "none starts twice"
    assert len(dead) <= 2 * KILLS * SLOTS, "those in the slots, and those that had ended and were not settled"
    assert all(trail.job.attempt == 1 for trail in found.values())


def _started(happened: list[Happening]) -> list[Happening]:
    return _kind(happened, "started")


def _kind(happened: list[Happening], kind: Kind) -> list[Happening]:
    return [each for each in happened if each.kind == kind]
