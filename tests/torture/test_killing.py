"""Workers are killed and frozen without mercy; no job is lost, none is accepted twice."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from pathlib import Path
from random import Random

import pytest

from ropewalk import App, Job
from ropewalk.domain.jobs.states import Status
from tests.torture import checkers, jobs
from tests.torture.harness import Fleet, all_terminal, seeded, trails, url_in

pytestmark = pytest.mark.torture

JOBS = 2_000
SECONDS = 30.0
BURST_SECONDS = 0.5
LEASE_SECONDS = 2.0
BLOWS = 36
"""at moments spread over the whole time; every fourth is a freeze longer than the lease, the others kill"""


async def test_workers_killed_and_frozen_lose_nothing_and_double_nothing(
    tmp_path: Path,
) -> None:
    random = seeded()
    app = App(url_in(tmp_path), jobs=jobs.ALL)
    with Fleet(tmp_path, size=4, concurrency=4, lease=LEASE_SECONDS) as fleet:
        await fleet.serving()
        async with app:
            submitting = asyncio.create_task(submit(app, random))
            await maltreat(fleet, random)
            completed_under_fire = sum(each.kind == "accepted" for each in fleet.happened)
            submitted = await submitting
            await all_terminal(app, seconds=30)
        happened = fleet.happened
    found = await trails(tmp_path)

    assert len(submitted) == JOBS
    assert checkers.lost(submitted, found) == []
    assert checkers.unexpected(submitted, found, happened) == []
    assert checkers.accepted_twice(happened, found) == []
    assert checkers.accepted_late(happened, found) == []
    assert checkers.illegal(found) == []
    assert checkers.leased_twice(happened, found) == []
    assert checkers.completed_without_effect(happened, found) == []
    assert checkers.over_budget(found) == []
    assert checkers.uncompensated(found) == []
    ends = Counter((trail.job.type, trail.job.status) for trail in found.values())
    assert all(status is (Status.FAILED if name == "book" else Status.COMPLETED) for name, status in ends)

    # The power of the test: all this really happened.
    reclaimed = sum(trail.job.crashes > 0 for trail in found.values())
    refused = checkers.refused_writes(happened)
    print(
        f"kills {fleet.kills}, freezes {fleet.pauses}, completed under fire {completed_under_fire}, "
        f"jobs with a lost lease {reclaimed}, refused late writes {refused}"
    )
    assert fleet.kills >= 25
    assert fleet.pauses >= 8
    assert completed_under_fire >= 1_000
    assert reclaimed >= 10
    assert refused > 0


async def submit(app: App, random: Random) -> list[str]:
    """All jobs, in bursts over most of the time, so that every blow finds work under way."""
    bursts = int(SECONDS * 0.9 / BURST_SECONDS)
    began = time.monotonic()
    ids: list[str] = []
    for burst in range(bursts):
        size = JOBS // bursts + (burst < JOBS % bursts)
        handles = await app.enqueue_many([some_job(random, len(ids) + number) for number in range(size)])
        ids.extend(handle.id for handle in handles)
        await asyncio.sleep(max(0.0, began + (burst + 1) * BURST_SECONDS - time.monotonic()))
    return ids


def some_job(random: Random, number: int) -> Job[object, object]:
    roll = random.random()
    if roll < 0.3:
        return jobs.quick()
    if roll < 0.8:
        return jobs.nap(seconds=random.uniform(0.05, 0.2))
    if roll < 0.9:
        return jobs.stumble()
    return jobs.book(order=number)


async def maltreat(fleet: Fleet, random: Random) -> None:
    began = time.monotonic()
    for number in range(BLOWS):
        moment = began + (number + random.random()) * SECONDS / BLOWS
        while time.monotonic() < moment:
            fleet.wake()
            await asyncio.sleep(min(0.05, max(0.0, moment - time.monotonic())))
        if number % 4 == 3:
            fleet.pause(random, LEASE_SECONDS * random.uniform(1.3, 1.8))
        else:
            fleet.kill(random)
    fleet.wake(everybody=True)
