"""Schedulers are killed without mercy; every occurrence of every schedule is one job: none is missing, none double."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections import Counter
from datetime import datetime
from pathlib import Path
from random import Random

import pytest

from ropewalk.connect import connect
from ropewalk.domain.jobs.record import DEFAULT_TENANT
from ropewalk.domain.schedules.due import upcoming
from ropewalk.domain.schedules.schedule import Every, Schedule, fire_id
from ropewalk.domain.search import Filter, Order
from ropewalk.domain.time import SECOND, Instant, to_datetime
from ropewalk.ports.store import capabilities
from ropewalk.ports.store.core import Store
from ropewalk.runtime.system import SystemRuntime
from tests.servers.fixtures import StartPostgres
from tests.servers.postgres import Settings
from tests.torture.harness import ROOT, Fleet, seeded, until, url_in
from tests.torture.schedule_worker import FIRED, SCHEDULES

pytestmark = pytest.mark.torture

SCHEDULERS = 4
SECONDS = 15.0
BLOWS = 10
KEYED = "one at a time"


class SchedulerFleet(Fleet):
    """Four that fire schedules, and run their jobs."""

    def __init__(self, url: str, directory: Path) -> None:
        super().__init__(directory, size=SCHEDULERS, concurrency=4, lease=2)
        self._command = [sys.executable, "-m", "tests.torture.schedule_worker", url, str(directory)]

    def refill(self) -> int:
        dead = [worker for worker in self._workers if worker.poll() is not None]
        self._workers = [worker for worker in self._workers if worker not in dead]
        self.exits |= {worker.pid: worker.returncode for worker in dead}
        missing = SCHEDULERS - len(self._workers)
        self._workers += [subprocess.Popen(self._command, cwd=ROOT) for _ in range(missing)]
        return len(dead)


async def test_killed_schedulers_on_one_file(tmp_path: Path) -> None:
    """safe-11 on SQLite."""
    await torment(url_in(tmp_path), tmp_path)


async def test_killed_schedulers_on_a_server(tmp_path: Path, start_postgres: StartPostgres) -> None:
    """safe-11 on PostgreSQL."""
    await torment(start_postgres(Settings(durable=True)).dsn(), tmp_path)


async def torment(url: str, directory: Path) -> None:
    random = seeded()
    store = connect(url, SystemRuntime())
    await store.open()
    try:
        with SchedulerFleet(url, directory) as fleet:
            await fleet.serving()
            await kill_some(fleet, random)
            assert fleet.exits == {}, "they end by our hand only"
            await until(lambda: up_to_date(store), "the survivors have caught up")
        schedules = await stored(store)
        enqueued = await job_ids(store)
    finally:
        await store.close()
    judge(schedules, enqueued, directory, fleet.kills)


async def kill_some(fleet: Fleet, random: Random) -> None:
    """One after another, each while it fires; twice all of them at once."""
    began, number = time.monotonic(), 0
    while number < BLOWS or time.monotonic() < began + SECONDS:
        await fleet.serving()
        await asyncio.sleep(random.uniform(0.0, 0.8))
        for _ in range(SCHEDULERS if number in {3, 7} else 1):
            fleet.kill(random)
        number += 1


async def up_to_date(store: Store) -> bool:
    now = await store.clock()
    return all(each.next_fire is not None and each.next_fire > now - SECOND for each in await stored(store))


async def stored(store: Store) -> list[Schedule]:
    found = await capabilities.SCHEDULES.of(store).list_schedules(DEFAULT_TENANT, after=None, limit=99)
    return [record.schedule for record in found.schedules]


async def job_ids(store: Store) -> set[str]:
    ids: set[str] = set()
    cursor: str | None = None
    while True:
        page = await store.search(DEFAULT_TENANT, Filter(), order=Order.CREATED_ASC, cursor=cursor, limit=500)
        ids |= {job.id for job in page.jobs}
        cursor = page.next_cursor
        if cursor is None:
            return ids


def judge(schedules: list[Schedule], enqueued: set[str], directory: Path, kills: int) -> None:
    lines = [line.split("|") for line in (directory / FIRED).read_text().splitlines()]
    told = Counter((name, datetime.fromisoformat(fire)) for _, name, fire, _ in lines)
    first = min(fire for name, fire in told if name == "seconds")
    assert {each.name for each in schedules} == {each.name for each in SCHEDULES}
    assert all(each.generation == 1 for each in schedules), "the same declaration changes nothing"

    assert [fire for fire, count in told.items() if count > 1] == [], "fired twice"
    expected: set[str] = set()
    for schedule in schedules:
        fires = occurrences(schedule, first)
        assert {fire for name, fire in told if name == schedule.name} <= {to_datetime(fire) for fire in fires}
        if schedule.name != KEYED:
            expected |= {fire_id(schedule, fire) for fire in fires}
    [keyed] = [each for each in schedules if each.name == KEYED]
    of_key = {fire_id(keyed, fire) for fire in occurrences(keyed, first)}
    assert expected - enqueued == set(), "missing"
    assert enqueued - expected - of_key == set(), "nobody asked for these"

    # The power of the test: all this really happened.
    firing = {pid for pid, *_ in lines}
    print(f"kills {kills}, occurrences {len(expected)}, fires told {len(lines)}, by {len(firing)} processes")
    assert kills >= BLOWS
    assert len(firing) >= 6
    assert len(expected) >= 100
    assert len(of_key & enqueued) >= 10


def occurrences(schedule: Schedule, first: datetime) -> list[Instant]:
    """Every one there should have been, from its beginning to the last that was taken."""
    assert schedule.last_fire is not None
    timing = schedule.plan.timing
    if isinstance(timing, Every):
        assert timing.anchor is not None
        return list(range(timing.anchor + timing.interval_us, schedule.last_fire + 1, timing.interval_us))
    seconds = range(int(first.timestamp()), schedule.last_fire // SECOND + 1)
    assert upcoming(schedule, 1) == [(seconds[-1] + 1) * SECOND]
    return [second * SECOND for second in seconds]
