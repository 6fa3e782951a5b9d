"""Workers are told to stop again and again while they work; no job pays an attempt for it."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from random import Random
from subprocess import Popen

import pytest

from ropewalk import App
from ropewalk.domain.jobs.states import Status
from tests.torture import checkers, jobs
from tests.torture.harness import Fleet, nothing_lives, seeded, trails, until, url_in

pytestmark = pytest.mark.torture

JOBS = 500
EVERY_SECONDS = 2.0
GRACE_SECONDS = 0.2
LONG_SECONDS = 0.8
"""longer than the grace: such a job is interrupted and given back"""


async def test_termination_burns_no_attempt(tmp_path: Path) -> None:
    random = seeded()
    app = App(url_in(tmp_path), jobs=jobs.ALL)
    async with app:
        batch = [
            jobs.nap(seconds=LONG_SECONDS if random.random() < 0.2 else random.uniform(0.02, 0.1)) for _ in range(JOBS)
        ]
        submitted = [handle.id for handle in await app.enqueue_many(batch)]
        with Fleet(tmp_path, size=2, concurrency=4, lease=30.0, grace=GRACE_SECONDS) as fleet:
            await fleet.serving()
            told = await terminate_until_done(app, fleet, random)
            happened = fleet.happened
    found = await trails(tmp_path)

    assert checkers.lost(submitted, found) == []
    assert checkers.illegal(found) == []
    assert checkers.leased_twice(happened, found) == []
    assert checkers.accepted_twice(happened, found) == []
    assert checkers.accepted_late(happened, found) == []
    assert {(trail.job.status, trail.job.attempt, trail.job.crashes) for trail in found.values()} == {
        (Status.COMPLETED, 1, 0)
    }
    # The power of the test: workers left by themselves, and work under way was given back.
    given_back = sum(len(trail.attempts) for trail in found.values())
    print(f"terminations {len(told)}, attempts given back {given_back}")
    assert len(told) >= 4
    assert [worker.returncode for worker in told] == [0] * len(told)
    assert given_back >= 4


async def terminate_until_done(app: App, fleet: Fleet, random: Random) -> list[Popen[bytes]]:
    """SIGTERM a worker every two seconds while jobs are left; those told so have all left when this returns."""
    told: list[Popen[bytes]] = []
    while not await nothing_lives(app):
        await fleet.serving()  # a process that is still starting does not handle SIGTERM yet, and would end by it
        told.append(fleet.terminate(random))
        next_at = time.monotonic() + EVERY_SECONDS
        while time.monotonic() < next_at and not await nothing_lives(app):
            await asyncio.sleep(0.05)
    await until(lambda: all(worker.poll() is not None for worker in told), "every terminated worker left")
    return told
