"""What a killed worker leaves runs again soon and together; of a job that kills its workers only that job is lost.

The times are those of the machine it runs on. The table at the end of the run shows them.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import pytest

from ropewalk import App, State
from ropewalk.domain.jobs.states import Status
from ropewalk.ports.store.reading import StoredHistory
from tests.servers.binaries import postgres_binaries
from tests.servers.postgres import Postgres, Settings
from tests.tables import NoteRow
from tests.torture import checkers, jobs
from tests.torture.harness import ROOT, Fleet, all_terminal, seeded, trails, until, url_in
from tests.torture.history import Happening, Kind

pytestmark = [pytest.mark.torture, pytest.mark.system]

JOBS: Final = 8
SLOTS: Final = 10
LEASE_SECONDS: Final = 2.0
RECOVERY_SECONDS_MAX: Final = LEASE_SECONDS + 5.0
KILLS: Final = 4
CLAIMED: Final = 40
"""jobs before a worker of ten slots: more than it may start at once"""
TRUST_SECONDS: Final = 4.0
"""A worker takes back leases of others only after three seconds of contact with the store. It has usually been there
for longer."""
TABLE: Final = "Workers that were killed (SIGKILL), and what became of their jobs"


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "sqlite":
        yield url_in(tmp_path)
        return
    with Postgres(postgres_binaries("newest"), Settings(durable=True)) as server:
        yield server.dsn()


@pytest.mark.parametrize("by", ["another worker", "its replacement"])
async def test_all_jobs_of_a_killed_worker_run_again_together(
    url: str, by: str, tmp_path: Path, note_row: NoteRow
) -> None:
    """live-2: within the lease and five seconds, on a worker with free slots."""
    async with App(url, jobs=jobs.ALL) as app:
        with fleet_of(tmp_path, url, size=1) as victims, fleet_of(tmp_path, url, size=0) as others:
            await victims.serving()
            await app.enqueue_many(jobs.linger(until=str(tmp_path / "end")) for _ in range(JOBS))
            await until(lambda: len(_started(victims.happened)) == JOBS, "all jobs run")
            [victim] = {each.pid for each in _started(victims.happened)}
            if by == "another worker":
                others.grow(1)
                await others.serving()
                await asyncio.sleep(TRUST_SECONDS)
            victims.kill_one(victim, replace=by == "its replacement")
            killed_at = time.monotonic()
            await victims.serving()
            free_at = time.monotonic()  # to start a process takes longer on a busy machine, and has no free slot yet
            await until(lambda: len(_started(victims.happened)) == 2 * JOBS, "all jobs run again", seconds=60)
            again_at = time.monotonic()
            (tmp_path / "end").touch()
            await all_terminal(app, seconds=60)
    found = await trails(tmp_path, url=url)
    crashes = sorted(trail.job.crashes for trail in found.values())
    note_row(
        TABLE,
        store=_name(url),
        killed=f"one that runs {JOBS} jobs",
        recovered_by=by,
        after=f"{again_at - killed_at:.1f} s",
        jobs=len(found),
        dead=_count(found, Status.DEAD_LETTER),
        crashes=crashes,
    )
    assert {trail.job.status for trail in found.values()} == {Status.COMPLETED}
    assert crashes == [1] * JOBS
    assert again_at - free_at <= RECOVERY_SECONDS_MAX


async def test_a_poison_job_among_them_is_the_only_dead_letter(url: str, tmp_path: Path, note_row: NoteRow) -> None:
    """safe-7: with the default number of attempts and crashes."""
    app = App(url, jobs=jobs.ALL)
    began = time.monotonic()
    async with app:
        batch = [jobs.innocent(seconds=0.5) for _ in range(JOBS - 1)]
        batch.insert(JOBS // 2, jobs.poison())
        await app.enqueue_many(batch)
        with fleet_of(tmp_path, url, size=1) as fleet:
            await all_terminal(app, seconds=90, meanwhile=fleet.refill)
            happened, exits = fleet.happened, fleet.exits
    found = await trails(tmp_path, url=url)
    crashes = sorted(trail.job.crashes for trail in found.values())
    note_row(
        TABLE,
        store=_name(url),
        killed=f"three by a poison job among {JOBS}",
        recovered_by="its replacement",
        after=f"{time.monotonic() - began:.1f} s",
        jobs=len(found),
        dead=_count(found, Status.DEAD_LETTER),
        crashes=crashes,
    )
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


@pytest.mark.parametrize("job_type", ["innocent", "once"])
async def test_a_worker_killed_between_claim_and_start_leaves_only_its_slots_charged(
    url: str, job_type: str, tmp_path: Path, note_row: NoteRow
) -> None:
    """safe-7: such jobs count as started, which is inherent, and no more than it has slots (decision 0002)."""
    make = {"innocent": jobs.innocent, "once": jobs.once}[job_type]
    async with App(url, jobs=jobs.ALL) as app:
        await app.enqueue_many(make(seconds=0.0) for _ in range(CLAIMED))
        command = ["-m", "tests.torture.dying_worker", url, str(tmp_path), str(SLOTS), str(LEASE_SECONDS)]
        killed = await asyncio.to_thread(subprocess.run, [sys.executable, *command], cwd=ROOT, timeout=60, check=False)
        assert killed.returncode == -9
        leased = _count(await trails(tmp_path, url=url), Status.RUNNING)
        with fleet_of(tmp_path, url, size=1) as fleet:
            assert _started(fleet.happened) == [], "it started nothing"
            await all_terminal(app, seconds=60)
            happened = fleet.happened
    found = await trails(tmp_path, url=url)
    charged = sum(trail.job.crashes for trail in found.values())
    dead = _count(found, Status.DEAD_LETTER)
    note_row(
        TABLE,
        store=_name(url),
        killed="between claim and start",
        recovered_by="its replacement",
        after="",
        jobs=f"{len(found)} of {'one attempt' if job_type == 'once' else 'three attempts'}, {leased} leased",
        dead=dead,
        crashes=f"{charged} in all",
    )
    assert 0 < charged <= SLOTS
    assert dead == (charged if job_type == "once" else 0)
    assert _count(found, Status.COMPLETED) == CLAIMED - dead
    assert checkers.accepted_twice(happened, found) == []
    assert max(trail.job.attempt - trail.job.crashes for trail in found.values()) <= 1


async def test_jobs_with_a_single_attempt_are_never_started_twice(url: str, tmp_path: Path, note_row: NoteRow) -> None:
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
    note_row(
        TABLE,
        store=_name(url),
        killed=f"at {KILLS} random moments",
        recovered_by="its replacement",
        after="",
        jobs=f"{len(found)} of one attempt",
        dead=f"{len(dead)}, {len(unstarted)} of them unstarted",
        crashes=f"{sum(trail.job.crashes for trail in found.values())} in all",
    )
    assert len(started) == len(set(started)), "none starts twice"
    assert len(dead) <= 2 * KILLS * SLOTS, "those in the slots, and those that had ended and were not settled"
    assert all(trail.job.attempt == 1 for trail in found.values())


def _started(happened: list[Happening]) -> list[Happening]:
    return _kind(happened, "started")


def _kind(happened: list[Happening], kind: Kind) -> list[Happening]:
    return [each for each in happened if each.kind == kind]


def fleet_of(directory: Path, url: str, *, size: int) -> Fleet:
    return Fleet(directory, size=size, concurrency=SLOTS, lease=LEASE_SECONDS, url=url)


def _count(found: Mapping[str, StoredHistory], status: Status) -> int:
    return sum(trail.job.status is status for trail in found.values())


def _name(url: str) -> str:
    return url.partition(":")[0]
