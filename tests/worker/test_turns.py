"""Slots and the loop they share: handlers that never wait do not keep everything else waiting."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Final

from ropewalk import App, job
from ropewalk.testing import FakeRuntime

SLOTS: Final = 20
JOBS: Final = 400
LONG_SECONDS: Final = 0.0006
"""a turn is 1 ms: the second one ends it"""


class Slow(FakeRuntime):
    """Whose handlers take time without waiting."""

    busy_seconds = 0.0

    def monotonic(self) -> float:
        return super().monotonic() + self.busy_seconds


runtime = Slow()
turn = 0
ran: Counter[int] = Counter()
"""turn of the loop → handlers that ran in it"""


@job
async def busy() -> None:
    ran[turn] += 1
    runtime.busy_seconds += LONG_SECONDS


async def _count_turns() -> None:
    global turn  # noqa: PLW0603  handlers look at it
    while True:
        await asyncio.sleep(0)
        turn += 1


async def test_others_have_their_turn_however_many_slots_wait_for_work() -> None:
    async with App("memory://", jobs=[busy], runtime=runtime) as app:
        await app.enqueue_many(busy() for _ in range(JOBS))
        counting = asyncio.create_task(_count_turns())
        async with app.worker(concurrency=SLOTS) as worker:
            await worker.idle()
        counting.cancel()
    assert ran.total() == JOBS
    assert max(ran.values()) <= 4, ran  # of one turn of slots, or of the one in which a claim brought some
