"""The buffer on its own: tickets, hand-out, and an attempt whose slot went away."""

from __future__ import annotations

import asyncio
from typing import Any, cast

from ropewalk.domain.jobs.record import NewJob, new_record
from ropewalk.worker.attempt import Attempt
from ropewalk.worker.buffer import Buffer


class Ticketed:
    """As much of an attempt as a buffer looks at."""

    def __init__(self, ticket: int) -> None:
        self.job = new_record(NewJob(id=str(ticket), type="t", input=b"{}"), seq=ticket, now=0)
        self.job.ticket = ticket


def attempts(*tickets: int) -> list[Attempt]:
    return [cast("Attempt", Ticketed(ticket)) for ticket in tickets]


async def test_nothing_leaves_before_the_store_counts_it_as_started() -> None:
    buffer = Buffer()
    first, second = attempts(1, 2)
    buffer.put([first, second], started_upto=1)
    assert buffer.take() is first
    waiting: asyncio.Task[Any] = asyncio.create_task(buffer.wait())
    await asyncio.sleep(0)
    assert buffer.blocked
    buffer.put([], started_upto=2)
    assert await asyncio.wait_for(waiting, 5) is second
    assert buffer.running == {first, second}


async def test_what_is_handed_out_counts_as_running_at_once() -> None:
    buffer = Buffer()
    slot = asyncio.create_task(buffer.wait())
    await asyncio.sleep(0)
    (only,) = attempts(1)
    buffer.put([only], started_upto=1)
    assert buffer.running == {only}
    assert await slot is only


async def test_an_attempt_whose_slot_goes_away_is_not_lost() -> None:
    buffer = Buffer()
    slot = asyncio.create_task(buffer.wait())
    await asyncio.sleep(0)
    (only,) = attempts(1)
    buffer.put([only], started_upto=1)
    slot.cancel()
    await asyncio.wait([slot])
    assert slot.cancelled()
    assert (buffer.running, buffer.take_all()) == (set(), [only])
