"""Keeps a store supplied with planned work, whatever happens to it: what may not have arrived is sent again."""

from __future__ import annotations

import asyncio
from random import Random

from ropewalk import App, Filter, OutcomeUnknown, StoreUnavailable
from tests.torture.harness import LIVE
from tests.torture.plan import Plan, draw

BATCH_JOBS = 250
PAUSE_SECONDS = 0.05


class Feeder:
    """Submits until told that it is enough, and at least `jobs`; never lets more than `backlog` wait."""

    def __init__(self, app: App, random: Random, *, jobs: int, backlog: int) -> None:
        self._app = app
        self._random = random
        self._jobs = jobs
        self._backlog = backlog
        self.plan = Plan()
        self.failed = self.unknown = self.already_there = 0
        """submissions that failed, of these with an unknown outcome, and of these with the jobs there after all"""
        self.enough = asyncio.Event()

    async def run(self) -> Plan:
        while self.plan.size < self._jobs or not self.enough.is_set():
            if await self._is_hungry():
                await self._submit(draw(self._random, BATCH_JOBS))
            else:
                await asyncio.sleep(PAUSE_SECONDS)
        return self.plan

    async def _is_hungry(self) -> bool:
        try:
            return await self._app.count(Filter(states=LIVE)) < self._backlog
        except StoreUnavailable:
            return False

    async def _submit(self, piece: Plan) -> None:
        """Until it is acknowledged. The ids are the same every time, so that what is there already stays one job."""
        unknown = False
        while True:
            try:
                handles = await self._app.enqueue_many(piece.jobs)
            except StoreUnavailable as error:
                self.failed += 1
                unknown = unknown or isinstance(error, OutcomeUnknown)
                self.unknown += isinstance(error, OutcomeUnknown)
                await asyncio.sleep(PAUSE_SECONDS)
                continue
            there = sum(handle.duplicate for handle in handles)
            assert there in (0, len(handles)), f"{there} of {len(handles)} jobs submitted as one were there"
            assert not there or unknown, "nothing was changed, it was said, but the jobs are there"
            self.already_there += bool(there)
            self.plan.add(piece)
            return
