"""The floor on PostgreSQL is a queue: every job once, in order, and the jobs of a dead worker again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from typing import TypeAlias

import psycopg
import pytest_asyncio
from benchmarks.floors.call import Arguments
from benchmarks.floors.postgres import BATCH, LEASE_SECONDS, PostgresFloor

PATIENCE_SECONDS = 30.0


class Handled(list[str]):
    """The names handled, in order; `enough` is set when it is as much as expected."""

    def __init__(self, expected: int) -> None:
        self.expected, self.enough = expected, asyncio.Event()

    async def __call__(self, *, name: str) -> None:
        self.append(name)
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


def calls(*names: str) -> list[Arguments]:
    return [{"name": name} for name in names]


async def test_every_job_is_handled_once_by_two_workers(make_floor: MakeFloor) -> None:
    names = [str(number) for number in range(3 * BATCH)]
    handled = Handled(len(names))
    one, other = make_floor(handled), make_floor(handled)
    async with one.serving(), other.serving():
        await asyncio.gather(*(one.submit(calls(name)) for name in names))
        await all_completed(one, handled)
    assert sorted(handled) == sorted(names)
    assert await one.counts() == (len(names), len(names))


async def test_the_caller_gets_ids_the_store_knows(postgres_database: str, make_floor: MakeFloor) -> None:
    floor = make_floor(Handled(0))
    ids = await floor.submit(calls("first", "second"))
    async with await psycopg.AsyncConnection.connect(postgres_database) as other:
        stored = await (await other.execute("SELECT id FROM ready ORDER BY seq")).fetchall()
    assert ids == [row[0] for row in stored]
    assert len(set(ids)) == 2


async def test_a_worker_that_stopped_serves_again(make_floor: MakeFloor) -> None:
    handled = Handled(1)
    floor = make_floor(handled)
    async with floor.serving():
        pass
    await floor.submit(calls("later"))
    async with floor.serving():
        await all_completed(floor, handled)
    assert handled == ["later"]


async def test_priority_then_time_and_not_before_its_time(make_floor: MakeFloor) -> None:
    handled = Handled(3)
    floor = make_floor(handled)
    await floor.submit(calls("first", "second"))
    await floor.submit(calls("tomorrow"), priority=9, run_at=2e9 + 86_400 * 365 * 50)
    await floor.submit(calls("urgent"), priority=1)
    async with floor.serving():
        await all_completed(floor, handled)
    assert handled == ["urgent", "first", "second"]
    assert await floor.counts() == (4, 3)


async def test_an_expired_lease_is_claimed_again(postgres_database: str, make_floor: MakeFloor) -> None:
    handled = Handled(1)
    floor = make_floor(handled)
    await floor.submit(calls("orphan"))
    async with await psycopg.AsyncConnection.connect(postgres_database, autocommit=True) as dead:
        await dead.execute(
            "WITH taken AS (DELETE FROM ready RETURNING *) INSERT INTO lease "
            "SELECT id, seq, priority, run_at, payload, 1, 'dead', extract(epoch FROM clock_timestamp()) - %s "
            "FROM taken",
            (LEASE_SECONDS,),
        )
    async with floor.serving():
        await all_completed(floor, handled)
    assert await floor.counts() == (1, 1)
