"""S9: who lets jobs of a tenant in holds its row; others of that tenant wait, and count what they then find."""

from __future__ import annotations

import asyncio

import psycopg
import pytest
from msgspec import structs

from ropewalk.backends.postgres import PostgresStore
from ropewalk.domain.limits.quota import Quota
from ropewalk.errors import QuotaExceeded
from ropewalk.ports.store.submission import Submission
from ropewalk.testing.contract.builders import claim_request, keyed, new_job
from tests.backends.postgres.conftest import OpenStore
from tests.backends.postgres.test_races import submitted

pytestmark = pytest.mark.asyncio

HOLD = "SELECT 1 FROM jobs.quota_charge WHERE tenant = 'a' FOR UPDATE"
TWIN = """
INSERT INTO jobs.{table}
SELECT (jsonb_populate_record(each, '{{"seq": 999999, "id": "x"}}')).* FROM jobs.{table} AS each
"""
WAITS = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"


async def somebody_waits(url: str) -> None:
    async with asyncio.timeout(10), await psycopg.AsyncConnection.connect(url, autocommit=True) as db:
        while await (await db.execute(WAITS)).fetchone() == (0,):
            await asyncio.sleep(0.01)


async def one(store: PostgresStore, tenant: str, key: str | None = None) -> object:
    made = new_job(tenant=tenant) if key is None else keyed(key, tenant=tenant)
    [answer] = await store.submit([Submission(jobs=[made])])
    return answer


@pytest.mark.parametrize("key", [None, "k"])
async def test_what_another_let_in_is_counted_when_its_row_is_free(
    open_store: OpenStore, url: str, key: str | None
) -> None:
    """The count sees what was committed before the row was had, not what was before the submission began."""
    store = await open_store()
    await store.put_quota(Quota(tenant="a", pending=2))
    await submitted(store, new_job(tenant="a", id="first"))
    plain = url.partition("?")[0]
    with psycopg.connect(plain) as submitter:
        submitter.execute(HOLD)
        waiting = asyncio.create_task(one(store, "a", key))
        await somebody_waits(plain)
        for table in ("submitted", "job_by_stage"):
            submitter.execute(TWIN.format(table=table).encode())
        submitter.commit()
    async with asyncio.timeout(10):
        assert isinstance(await waiting, QuotaExceeded)


async def test_only_submitters_of_that_tenant_wait(open_store: OpenStore, url: str) -> None:
    """S9, safe-15: others, and claims of the same tenant, do not."""
    store, other = await open_store(), await open_store()
    for tenant in ("a", "b"):
        await store.put_quota(Quota(tenant=tenant, pending=9, running=9))
        await one(store, tenant)
    with psycopg.connect(url.partition("?")[0]) as submitter:
        submitter.execute(HOLD)
        async with asyncio.timeout(5):
            assert isinstance(await one(other, "b"), list)
            assert isinstance(await one(other, "free"), list)
            given = await other.claim(claim_request(limit=9))
        assert {job.tenant for job in given.jobs} == {"a", "b", "free"}


async def test_two_who_want_several_never_wait_for_each_other(open_store: OpenStore) -> None:
    """Held in order of name, whatever order they come in: no deadlock, and never over."""
    stores = [await open_store() for _ in range(3)]
    tenants = [f"t{number}" for number in range(6)]
    for tenant in tenants:
        await stores[0].put_quota(Quota(tenant=tenant, pending=5))

    async def flood(number: int, store: PostgresStore) -> int:
        order = tenants if number % 2 else tenants[::-1]
        came_in = 0
        for _ in range(10):
            answers = await store.submit([Submission(jobs=[new_job(tenant=tenant)]) for tenant in order])
            came_in += sum(isinstance(answer, list) for answer in answers)
        return came_in

    async with asyncio.timeout(60):
        came_in = sum(await asyncio.gather(*(flood(number, store) for number, store in enumerate(stores))))
    assert came_in == 5 * len(tenants)
    uses = [await stores[0].quota_use(tenant) for tenant in tenants]
    assert [None if use is None else use.pending for use in uses] == [5] * len(tenants)


async def test_where_nobody_has_a_quota_the_insert_takes_the_numbers(open_store: OpenStore) -> None:
    """One statement less, in the order of submission. Who has one is asked before; so is who comes first."""
    store = await open_store()
    await store.put_quota(Quota(tenant="a", pending=9))
    before = await submitted(store, new_job())
    changes = store._changes
    changes._sql = structs.replace(changes._sql, take_numbers="SELECT 1 / 0, %s::bigint")
    later = await submitted(store, *(new_job() for _ in range(9)))
    given = await store.claim(claim_request(limit=99))
    assert [job.id for job in given.jobs] == [each.id for each in (*before, *later)]
    with pytest.raises(psycopg.errors.DivisionByZero):
        await one(store, "a")
