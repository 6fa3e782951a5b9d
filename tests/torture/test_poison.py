"""A job that kills whoever runs it is told from its neighbours: it alone ends as a dead letter."""

from __future__ import annotations

from pathlib import Path

import pytest

from ropewalk import App
from ropewalk.domain.jobs.states import Status
from tests.torture import checkers, jobs
from tests.torture.harness import Fleet, all_terminal, trails, url_in

pytestmark = pytest.mark.torture

INNOCENTS = 1_000


async def test_one_poison_among_a_thousand_innocents(tmp_path: Path) -> None:
    app = App(url_in(tmp_path), jobs=jobs.ALL)
    async with app:
        batch = [jobs.innocent(seconds=number % 20 / 1000) for number in range(INNOCENTS)]
        batch.insert(INNOCENTS // 2, jobs.poison())
        submitted = [handle.id for handle in await app.enqueue_many(batch)]
        with Fleet(tmp_path, size=2, concurrency=10, lease=1.0) as fleet:
            await all_terminal(app, seconds=40, meanwhile=fleet.refill)
            happened = fleet.happened
    found = await trails(tmp_path)

    dead = {job_id: trail.job for job_id, trail in found.items() if trail.job.status is Status.DEAD_LETTER}
    assert [job.type for job in dead.values()] == ["poison"]
    (poison,) = dead.values()
    assert poison.error is not None
    assert poison.error.code == "worker_lost"
    assert poison.crashes == poison.max_crashes == 3
    completed = [trail.job for trail in found.values() if trail.job.status is Status.COMPLETED]
    assert len(completed) == INNOCENTS
    assert checkers.lost(submitted, found) == []
    assert checkers.illegal(found) == []
    assert checkers.leased_twice(happened, found) == []
    assert checkers.accepted_twice(happened, found) == []
    assert checkers.accepted_late(happened, found) == []
    # It really killed three workers, and had neighbours when it did.
    assert list(fleet.exits.values()) == [-9] * 3
    assert any(job.crashes for job in completed)
