"""A user's own writes and a job's completion: both, or neither."""

from __future__ import annotations

import asyncio

import psycopg
import pytest

from ropewalk.domain.jobs.lease import LossReason
from ropewalk.domain.jobs.states import Status
from ropewalk.domain.time import SECOND
from ropewalk.errors import InvalidInput, WaitTimeout
from ropewalk.testing.contract.builders import new_job, settlement
from tests.backends.postgres.conftest import OpenStore
from tests.backends.postgres.test_races import claimed, status, submitted
from tests.servers.databases import waiting_for_a_lock
from tests.servers.postgres import Postgres

pytestmark = pytest.mark.asyncio

LONG = 30 * SECOND


@pytest.fixture
def table(url: str) -> str:
    dsn = url.partition("?")[0]
    with psycopg.connect(dsn, autocommit=True) as db:
        db.execute("CREATE TABLE written (value integer)")
    return dsn


def rows(dsn: str) -> list[tuple[int]]:
    with psycopg.connect(dsn) as db:
        return db.execute("SELECT value FROM written").fetchall()


async def test_both_happen(open_store: OpenStore, table: str) -> None:
    store = await open_store()
    await submitted(store, new_job(id="a"))
    [job] = await claimed(store, 1, owner="w")
    transaction = store.transaction(LONG)
    assert await transaction.execute("INSERT INTO written VALUES (%s) RETURNING value", (1,)) == [(1,)]
    assert rows(table) == []
    [settled] = (await transaction.settle("w", settlement(job))).settled
    assert (settled.lost, rows(table), await status(store, "a")) == (None, [(1,)], Status.COMPLETED)


async def test_neither_happens_when_the_lease_is_lost(open_store: OpenStore, table: str) -> None:
    store = await open_store()
    await submitted(store, new_job(id="a"))
    [job] = await claimed(store, 1, owner="w")
    transaction = store.transaction(LONG)
    await transaction.execute("INSERT INTO written VALUES (1)")
    await store.settle("w", [settlement(job)])
    [settled] = (await transaction.settle("w", settlement(job))).settled
    assert settled.lost is not None
    assert rows(table) == []


async def test_neither_happens_when_the_job_is_taken_while_it_waits(
    open_store: OpenStore, table: str, postgres: Postgres
) -> None:
    """Another transaction moves the job, and commits while the settlement waits for its row."""
    store = await open_store()
    await submitted(store, new_job(id="a"))
    [job] = await claimed(store, 1, owner="w")
    transaction = store.transaction(LONG)
    await transaction.execute("INSERT INTO written VALUES (1)")
    with psycopg.connect(table) as other:
        given_back = "UPDATE jobs.job_by_stage SET stage = 1, status = 'waiting', owner = NULL WHERE seq = %s"
        other.execute(given_back, (job.seq,))
        settling = asyncio.ensure_future(transaction.settle("w", settlement(job)))
        async with asyncio.timeout(20):
            while not waiting_for_a_lock(postgres, table):
                await asyncio.sleep(0.01)
    [settled] = (await settling).settled
    assert (settled.move, settled.lost) == (None, LossReason.TAKEN_BY_ANOTHER_WORKER)
    assert rows(table) == []
    assert await status(store, "a") is Status.WAITING


async def test_it_is_undone_when_it_takes_too_long(open_store: OpenStore, table: str) -> None:
    store = await open_store()
    transaction = store.transaction(SECOND // 5)
    await transaction.execute("INSERT INTO written VALUES (1)")
    with pytest.raises(WaitTimeout, match="rolled back"):
        await transaction.execute("SELECT pg_sleep(30)")
    await transaction.rollback()
    assert rows(table) == []


async def test_it_cannot_be_ended_by_a_statement(open_store: OpenStore, table: str) -> None:
    store = await open_store()
    transaction = store.transaction(LONG)
    await transaction.execute("INSERT INTO written VALUES (1)")
    with pytest.raises(InvalidInput, match="leave COMMIT and ROLLBACK"):
        await transaction.execute("ROLLBACK")
    with pytest.raises(InvalidInput, match="is over"):
        await transaction.execute("SELECT 1")
    await transaction.rollback()
    assert rows(table) == []
