"""R13: who gives out jobs under a limit holds its row; others pass over its lanes, and never count too early."""

from __future__ import annotations

import asyncio

import psycopg
import pytest

from ropewalk.domain.limits.fleet_limit import FlowLimit
from ropewalk.domain.limits.headroom import BUSY_US
from ropewalk.testing.contract.builders import claim_request, new_job
from tests.backends.postgres.conftest import OpenStore
from tests.backends.postgres.test_races import claimed, submitted

pytestmark = pytest.mark.asyncio

ONE = FlowLimit(tenant="default", kind="key", name="k", concurrency=1)
HOLD = "SELECT 1 FROM jobs.fleet_limit WHERE name = 'k' FOR UPDATE"


async def test_a_limit_that_somebody_holds_is_passed_over(open_store: OpenStore, url: str) -> None:
    """And nobody waits: jobs without it are given out meanwhile, those under it in a few milliseconds."""
    store = await open_store()
    await store.put_limit(ONE)
    await submitted(store, new_job(id="held", limit_key="k"), new_job(id="free"), new_job(id="other", limit_key="l"))
    with psycopg.connect(url.partition("?")[0]) as claimer:
        claimer.execute(HOLD)
        async with asyncio.timeout(5):
            claim = await store.claim(claim_request(limit=9))
        assert {job.id for job in claim.jobs} == {"free", "other"}
        assert claim.next_due == claim.now + BUSY_US
    assert [job.id for job in await claimed(store, 9, owner="w")] == ["held"]


async def test_what_another_gave_out_is_counted_as_soon_as_its_limit_is_free(open_store: OpenStore, url: str) -> None:
    """The count sees what was committed before the row was had, not what was before the claim began."""
    store = await open_store()
    await store.put_limit(ONE)
    await submitted(store, new_job(id="a", limit_key="k"), new_job(id="b", limit_key="k"))
    with psycopg.connect(url.partition("?")[0]) as claimer:
        claimer.execute(HOLD)
        changed = f"stage = 2, status = 'running', lease_expires_at = {1 << 60}"
        given = f"UPDATE jobs.job_by_stage SET {changed} WHERE seq = %s"
        [(seq,)] = claimer.execute("SELECT min(seq) FROM jobs.ready").fetchall()
        claimer.execute(given, (seq,))
        assert await claimed(store, 9, owner="w") == []
    assert await claimed(store, 9, owner="w") == []


async def test_a_limit_can_be_changed_while_claims_go_on(open_store: OpenStore) -> None:
    """Setting it waits for the claim that holds it, and no claim waits for the setting."""
    one, other = await open_store(), await open_store()
    await one.put_limit(ONE)
    await submitted(one, *(new_job(limit_key="k") for _ in range(60)))
    running = 0
    for most in range(1, 30):
        limit = FlowLimit(tenant="default", kind="key", name="k", concurrency=most)
        async with asyncio.timeout(20):
            _, batch = await asyncio.gather(one.put_limit(limit), claimed(other, 9, owner="w"))
        running += len(batch)
        assert running <= most
        running += len(await claimed(one, 9, owner="v"))
        assert running == most
