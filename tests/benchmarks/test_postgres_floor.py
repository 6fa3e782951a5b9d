"""The floor on PostgreSQL is a queue: every job once, in order, and the jobs of a dead worker again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from typing import TypeAlias

import psycopg
import pytest_asyncio
from benchmarks.floors.postgres import BATCH, LEASE_SECONDS, PostgresFloor

PATIENCE_SECONDS = 30.0


class Handled(list[bytes]):
    """What was handled, in order; `enough` is set when it is as much as expected."""

    def __init__(self, expected: int) -> None:
        self.expected, self.enough = expected, asyncio.Event()

    async def __call__(self, payload: bytes) -> None:
        self.append(payload)
        if len(self) == self.expected:
            self.enough.set()


MakeFloor: TypeAlias = Callable[[Handled], PostgresFloor]


@pytest_asyncio.fixture
async def make_floor(postgres_database: str) -> AsyncIterator[MakeFloor]:
    async with AsyncExitStack() as floors:

        def make(handled: Handled) -> PostgresFloor:
            floor = PostgresFloor(postgres_database, handled)
            floors.push_async_callback(floor.close)
            return floor

        yield make


async def all_completed(floor: PostgresFloor, handled: Handled) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        await handled.enough.wait()
        while (await floor.counts())[1] < handled.expected:
            await asyncio.sleep(0)


async def test_every_job_is_handled_once_by_two_workers(make_floor: MakeFloor) -> None:
    payloads = [b"%d" % number for number in range(3 * BATCH)]
    handled = Handled(len(payloads))
    one, other = make_floor(handled), make_floor(handled)
    async with one.serving(), other.serving():
        await asyncio.gather(*(one.submit([payload]) for payload in payloads))
        await all_completed(one, handled)
    assert sorted(handled) == sorted(payloads)
    assert await one.counts() == (len(payloads), len(payloads))


async def test_priority_then_time_and_not_before_its_time(make_floor: MakeFloor) -> None:
    handled = Handled(3)
    floor = make_floor(handled)
    await floor.submit([b"first", b"second"])
    await floor.submit([b"tomorrow"], priority=9, run_at=2e9 + 86_400 * 365 * 50)
    await floor.submit([b"urgent"], priority=1)
    async with floor.serving():
        await all_completed(floor, handled)
    assert handled == [b"urgent", b"first", b"second"]
    assert await floor.counts() == (4, 3)


async def test_an_expired_lease_is_claimed_again(postgres_database: str, make_floor: MakeFloor) -> None:
    handled = Handled(1)
    floor = make_floor(handled)
    await floor.submit([b"orphan"])
    async with await psycopg.AsyncConnection.connect(postgres_database, autocommit=True) as dead:
        await dead.execute(
            "WITH taken AS (DELETE FROM ready RETURNING *) INSERT INTO lease "
            "SELECT id, priority, run_at, payload, 1, 'dead', extract(epoch FROM clock_timestamp()) - %s FROM taken",
            (LEASE_SECONDS,),
        )
    async with floor.serving():
        await all_completed(floor, handled)
    assert await floor.counts() == (1, 1)
