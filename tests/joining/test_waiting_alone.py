"""Whoever needs what an open transaction holds waits alone: the others of its process are not held up."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import psycopg
import pytest

from ropewalk import App
from tests.joining.conftest import Place, on
from tests.joining.drivers import Driver, PsycopgAsync
from tests.joining.hearing import SECONDS_MAX
from tests.joining.jobs import greet

pytestmark = pytest.mark.asyncio

UNDISTURBED_SECONDS = 5.0
"""half as long as a statement waits for a lock at most"""


async def passes(app: App, held_up: Sequence[Awaitable[Any]], others: int = 20) -> Sequence[asyncio.Future[Any]]:
    """Ask for what is held up and for plain jobs at once, and twice again for plain ones: those are all accepted."""
    waiting = [asyncio.ensure_future(each) for each in held_up]
    async with asyncio.timeout(UNDISTURBED_SECONDS):
        for turn in range(3):
            await asyncio.gather(*(app.enqueue(greet(f"{turn}.{number}")) for number in range(others)))
    assert not [each.result() for each in waiting if each.done()], "nobody was held up"
    return waiting


@asynccontextmanager
async def holding(place: Place, sql: str, *values: object) -> AsyncIterator[psycopg.AsyncConnection[Any]]:
    """A session that locked something and thinks about it."""
    async with await psycopg.AsyncConnection.connect(place.dsn) as db:
        await db.execute("SET search_path TO jobs")
        await db.execute(sql.encode(), values)
        yield db
        await db.rollback()


@on(PsycopgAsync)
@pytest.mark.parametrize("ending", ["commit", "rollback"])
async def test_a_key_held_by_an_open_transaction(app: App, driver: Driver, ending: str) -> None:
    first = await driver.enqueue(app, greet("ada"), idempotency_key="once")
    waiting = await passes(app, [app.enqueue(greet("ada"), idempotency_key="once") for _ in range(3)])
    await (driver.commit() if ending == "commit" else driver.rollback())
    async with asyncio.timeout(SECONDS_MAX):
        handles = await asyncio.gather(*waiting)
    assert len({each.id for each in handles}) == 1
    assert (handles[0].id == first.id) == (ending == "commit")
    assert sum(not each.duplicate for each in handles) == (ending == "rollback")


@on(PsycopgAsync)
async def test_many_keys_held_by_an_open_transaction(app: App, driver: Driver) -> None:
    keys = [f"key-{number}" for number in range(30)]
    for key in keys:
        await driver.enqueue(app, greet(key), idempotency_key=key)
    waiting = await passes(app, [app.enqueue(greet(key), idempotency_key=key) for key in keys])
    await driver.commit()
    async with asyncio.timeout(SECONDS_MAX):
        assert all(each.duplicate for each in await asyncio.gather(*waiting))


@on(PsycopgAsync)
async def test_an_id_held_by_an_open_transaction(app: App, driver: Driver) -> None:
    await driver.enqueue(app, greet("ada"), id="mine")
    waiting = await passes(app, [app.enqueue(greet("ada"), id="mine")])
    await driver.commit()
    async with asyncio.timeout(SECONDS_MAX):
        assert [each.duplicate for each in await asyncio.gather(*waiting)] == [True]


@on(PsycopgAsync)
async def test_a_parent_locked_by_an_open_transaction(app: App, driver: Driver, place: Place) -> None:
    parent = await app.enqueue(greet("parent"), delay=60)
    lock = "SELECT 1 FROM job_by_stage JOIN submitted USING (seq) WHERE id = %s FOR UPDATE"
    async with holding(place, lock, parent.id):
        waiting = await passes(app, [app.enqueue(greet("child"), depends_on=[parent.id]), parent.cancel()])
    async with asyncio.timeout(SECONDS_MAX):
        await asyncio.gather(*waiting)


@on(PsycopgAsync)
async def test_a_quota_locked_by_an_open_transaction(app: App, driver: Driver, place: Place) -> None:
    tenant = app.tenant("acme")
    await tenant.set_quota(pending=100)
    await tenant.enqueue(greet("first"))
    async with holding(place, "SELECT 1 FROM quota_charge WHERE tenant = 'acme' FOR UPDATE"):
        waiting = await passes(app, [tenant.enqueue(greet("second"))])
    async with asyncio.timeout(SECONDS_MAX):
        await asyncio.gather(*waiting)
    assert await tenant.count() == 2


@on(PsycopgAsync)
async def test_a_refusal_among_those_that_wait(app: App, driver: Driver) -> None:
    """What is refused once the wait is over reaches the caller it concerns."""
    await driver.enqueue(app, greet("ada"), idempotency_key="once")
    waiting = await passes(app, [app.enqueue(greet("bob"), idempotency_key="once")])
    await driver.commit()
    async with asyncio.timeout(SECONDS_MAX):
        [refused] = await asyncio.gather(*waiting, return_exceptions=True)
    assert type(refused).__name__ == "Conflict"
