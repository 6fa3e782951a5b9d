"""Ways to maltreat a PostgreSQL server under a fleet, and how long the fleet takes to work again."""

from __future__ import annotations

import asyncio
import time
from random import Random

from tests.servers.databases import sessions, terminate
from tests.servers.postgres import Postgres
from tests.torture.harness import Fleet, until
from tests.torture.history import Tail

RESUME_SECONDS_MAX = 30.0
"""live-4"""


class Outages:
    def __init__(self, server: Postgres, database: str) -> None:
        self._server = server
        self._database = database
        self.terminations = 0
        self.resumed_seconds: list[float] = []
        """after each crash: from the server taking connections to the last worker settling something"""

    def terminate(self, random: Random) -> None:
        """End a random session, whoever's: a worker's claims, settlements, renewals, or the submitter's."""
        victims = sorted(sessions(self._server, self._database))
        if victims and terminate(self._server, random.choice(victims)):
            self.terminations += 1

    async def crash(self, fleet: Fleet, tail: Tail, *, down_seconds: float) -> None:
        """Stop the server as a crash does, start it again after a while, and wait until every worker works again."""
        idle = fleet.serving_pids  # one that only starts may end instead, and is replaced
        await asyncio.to_thread(self._server.stop, "immediate")
        await asyncio.sleep(down_seconds)
        tail.news()
        await asyncio.to_thread(self._server.start)
        began = time.monotonic()

        def all_work() -> bool:
            idle.difference_update(each.pid for each in tail.news() if each.kind == "accepted")
            return not idle

        await until(all_work, "every worker settles again", seconds=RESUME_SECONDS_MAX)
        self.resumed_seconds.append(time.monotonic() - began)
