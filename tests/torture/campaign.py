"""A fleet on a PostgreSQL server of its own, both maltreated at random while they work; what came of it."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from pathlib import Path
from random import Random
from typing import Final

from msgspec import Struct

from ropewalk import App
from ropewalk.ports.store.workflows import GroupRecord
from tests.servers.databases import create_database
from tests.servers.postgres import Postgres
from tests.torture import checkers, flows, jobs
from tests.torture.checkers import Trails
from tests.torture.feeding import Feeder
from tests.torture.harness import HISTORY, Fleet, all_terminal, groups, trails, until
from tests.torture.history import Happening, Tail
from tests.torture.outages import Outages

LEASE_SECONDS: Final = 2.0
BACKLOG_JOBS: Final = 600
ROUND: Final = ("crash", "kill", "kill", "kill", "freeze", "end", "end", "end", "end", "end")
"""the blows of a round, in random order"""
APART_JOBS: Final = 130
"""so many are completed between two blows, on average"""
ROUND_JOBS: Final = 2_000
"""a round for every so many jobs: those between the blows, and those worked on while it is seen who works again"""
DATABASE: Final = "torture"


class Campaign(Struct, kw_only=True):
    """What happened, for the judges."""

    fleet: Fleet
    outages: Outages
    feeder: Feeder
    under_fire: int
    """jobs completed until the last blow"""
    took_seconds: float
    happened: list[Happening]
    trails: Trails
    groups: dict[str, GroupRecord]

    def told(self) -> str:
        fleet, feeder, outages = self.fleet, self.feeder, self.outages
        troubles = Counter((each.reason or "").partition(" ")[0] for each in self.happened if each.kind == "trouble")
        resumed = ", ".join(f"{seconds:.1f}" for seconds in outages.resumed_seconds)
        return (
            f"{len(self.trails)} jobs, {len(self.groups)} groups, {len(feeder.plan.needs)} dependants in "
            f"{self.took_seconds:.0f} s ({len(self.trails) / self.took_seconds:.0f} jobs/s), "
            f"{self.under_fire} completed under fire\n"
            f"workers killed {fleet.kills}, frozen {fleet.pauses}; sessions ended {outages.terminations}; "
            f"server crashed {len(outages.resumed_seconds)}, every worker resumed after {resumed} s\n"
            f"refused late writes {checkers.refused_writes(self.happened)}, "
            f"jobs with a lost lease {sum(trail.job.crashes > 0 for trail in self.trails.values())}, "
            f"workers were told {dict(troubles)}\n"
            f"submissions failed {feeder.failed}, with an unknown outcome {feeder.unknown}, "
            f"of which were there after all {feeder.already_there}"
        )


async def campaign(server: Postgres, directory: Path, random: Random, *, job_count: int) -> Campaign:
    url = server.dsn(create_database(server, DATABASE))
    outages = Outages(server, DATABASE)
    app = App(url, jobs=[*jobs.ALL, *flows.ALL])
    with Fleet(directory, size=3, concurrency=16, lease=LEASE_SECONDS, url=url) as fleet:
        await fleet.serving()
        began = time.monotonic()
        async with app:
            feeder = Feeder(app, random, jobs=job_count, backlog=BACKLOG_JOBS)
            feeding = asyncio.create_task(feeder.run())
            under_fire = await maltreat(fleet, outages, random, Tail(directory / HISTORY), job_count // ROUND_JOBS)
            feeder.enough.set()
            await feeding
            await all_terminal(app, seconds=60, meanwhile=fleet.refill)
        took_seconds = time.monotonic() - began
        happened = fleet.happened
    found = await trails(directory, url=url, every=20)
    return Campaign(
        fleet=fleet,
        outages=outages,
        feeder=feeder,
        under_fire=under_fire,
        took_seconds=took_seconds,
        happened=happened,
        trails=found,
        groups=await groups(url, {trail.job.group_id or job_id for job_id, trail in found.items()}),
    )


async def maltreat(fleet: Fleet, outages: Outages, random: Random, tail: Tail, rounds: int) -> int:
    """So many rounds of blows; how many jobs were completed meanwhile."""
    for _ in range(rounds):
        for blow in random.sample(ROUND, len(ROUND)):
            await work_done(fleet, tail, random.randint(APART_JOBS // 2, APART_JOBS * 3 // 2))
            match blow:
                case "crash":
                    fleet.wake(everybody=True)
                    await outages.crash(fleet, tail, down_seconds=random.uniform(0.1, 1.0))
                case "kill":
                    fleet.kill(random)
                case "freeze":
                    fleet.pause(random, LEASE_SECONDS * random.uniform(1.3, 1.8))
                case _:
                    await asyncio.to_thread(outages.terminate, random)
    fleet.wake(everybody=True)
    return tail.accepted


async def work_done(fleet: Fleet, tail: Tail, more: int) -> None:
    """Wait until so many more jobs are completed."""
    tail.news()
    enough = tail.accepted + more

    def looked() -> bool:
        fleet.wake()
        fleet.refill()
        tail.news()
        return tail.accepted >= enough

    await until(looked, f"{more} more jobs are completed")
