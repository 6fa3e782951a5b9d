"""A PostgreSQL server crashes and comes back, sessions are ended, workers are killed and frozen, all at random moments;
no job is lost, none is accepted twice, none is stuck, and what hangs together goes on as it should.

`ROPEWALK_TORTURE_JOBS=<number>` tries more or fewer jobs than usual, `ROPEWALK_TORTURE_SEED=<seed>` the same moments.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ropewalk.domain.jobs.states import Status
from tests.servers.binaries import Lane, postgres_binaries
from tests.servers.postgres import Postgres, Settings
from tests.torture import checkers, graph_checkers
from tests.torture.campaign import ROUND, ROUND_JOBS, Campaign, campaign
from tests.torture.harness import seeded, served
from tests.torture.outages import RESUME_SECONDS_MAX

pytestmark = pytest.mark.torture

JOBS = os.environ.get("ROPEWALK_TORTURE_JOBS")
MANY_ROUNDS = 5


@pytest.mark.timeout(400)
@pytest.mark.parametrize(
    ("lane", "usual"),
    [
        ("newest", 4_000),
        pytest.param("newest", 20_000, marks=pytest.mark.system),
        pytest.param("oldest", 4_000, marks=pytest.mark.system),
    ],
)
async def test_crashes_lose_nothing_double_nothing_and_leave_nothing_stuck(
    lane: Lane, usual: int, tmp_path: Path
) -> None:
    """safe-2, safe-4 to safe-7, safe-9, safe-10, safe-14, safe-17; live-2 to live-4."""
    job_count = usual if JOBS is None else int(JOBS)
    random = seeded()
    with Postgres(postgres_binaries(lane), Settings(durable=True)) as server:
        seen = await campaign(server, tmp_path, random, job_count=job_count)
    print(seen.told())
    judge_jobs(seen)
    judge_graphs(seen)
    judge_power(seen, job_count)


def judge_jobs(seen: Campaign) -> None:
    plan, found, happened = seen.feeder.plan, seen.trails, seen.happened
    assert checkers.lost(plan.ids, found) == []
    assert checkers.lost(found, found) == []  # nor children and compensations
    assert graph_checkers.unplanned(plan, found, happened) == []
    assert checkers.accepted_twice(happened, found) == []
    assert checkers.accepted_late(happened, found) == []
    assert checkers.illegal(found) == []
    assert checkers.leased_twice(happened, found) == []
    assert checkers.completed_without_effect(happened, found) == []
    assert checkers.over_budget(found) == []
    assert checkers.uncompensated(found) == []
    assert checkers.defects(happened) == []
    failed = {job_id for job_id, trail in found.items() if trail.job.status is not Status.COMPLETED}
    assert failed == plan.doomed | {job_id for job_id, trail in found.items() if trail.job.type == "book"}


def judge_graphs(seen: Campaign) -> None:
    plan, found, happened = seen.feeder.plan, seen.trails, seen.happened
    assert graph_checkers.miscounted(plan, found) == []
    assert graph_checkers.started_early(plan, found, happened) == []
    assert graph_checkers.doomed_but_ran(plan, found, happened) == []
    assert graph_checkers.not_closed_once(seen.groups, found, happened) == []
    assert graph_checkers.wrong_sums(plan, seen.groups) == []


def judge_power(seen: Campaign, job_count: int) -> None:
    """All this really happened, while there was work."""
    rounds = job_count // ROUND_JOBS
    assert rounds >= 1
    assert len(seen.trails) >= job_count
    assert seen.under_fire >= job_count / 2
    assert seen.fleet.kills == rounds * ROUND.count("kill")
    assert seen.fleet.pauses == rounds * ROUND.count("freeze")
    assert seen.outages.terminations == rounds * ROUND.count("end")
    assert len(seen.outages.resumed_seconds) == rounds * ROUND.count("crash")
    assert max(seen.outages.resumed_seconds) <= RESUME_SECONDS_MAX
    assert not seen.fleet.exits.keys() & served(seen.happened), "a worker that served ended by itself"
    # A frozen worker may also notice by itself that its leases are over: with few freezes, perhaps each time.
    assert checkers.refused_writes(seen.happened) > 0 or rounds < MANY_ROUNDS
    assert sum(trail.job.crashes > 0 for trail in seen.trails.values()) >= 10 * rounds
    assert len(seen.feeder.plan.needs) >= job_count / 20
    assert len(seen.feeder.plan.children) >= job_count / 100
    assert any(each.kind == "trouble" for each in seen.happened), "workers were told of outages"
