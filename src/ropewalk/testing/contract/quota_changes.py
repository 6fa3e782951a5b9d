"""Changes of quotas, the quota for all tenants, and submissions that race."""

from __future__ import annotations

import asyncio
from typing import Final

import pytest

from ropewalk.domain.jobs.record import DEFAULT_TENANT, NewJob
from ropewalk.domain.limits.quota import Quota
from ropewalk.domain.limits.rate import Rate
from ropewalk.ports.store.capabilities import QUOTAS, DatabaseStore
from ropewalk.ports.store.submission import Submission
from ropewalk.runtime.system import SystemRuntime
from ropewalk.testing.contract.base import Contract, needs
from ropewalk.testing.contract.bench import Bench
from ropewalk.testing.contract.builders import keyed, new_job
from ropewalk.testing.contract.quotas import at_most, refused, told, use

RACES: Final = 12


@needs(QUOTAS)
class QuotaChangeContract(Contract):
    """Quotas of one tenant can be set, changed and removed at run time, and hold for the next submission (S9)."""

    async def test_a_quota_of_another_tenant_is_not_mine(self, bench: Bench) -> None:
        """S9, safe-15: who is over holds nobody else up; but one submission for both is refused whole."""
        await bench.store.put_quota(at_most(1, tenant="acme"))
        await bench.submit(*(new_job() for _ in range(3)), new_job(tenant="acme"))
        await bench.submit(*(new_job() for _ in range(3)))
        await refused(bench, new_job(), new_job(tenant="acme"))
        assert await bench.store.quota_use(DEFAULT_TENANT) is None
        assert (await use(bench, "acme")).pending == 1

    async def test_the_quota_for_everybody_fills_in_what_a_quota_leaves_open(self, bench: Bench) -> None:
        """S9: field by field."""
        rate = Rate(5, per=60)
        everybody = at_most(2, tenant="*", running=7, submissions=rate)
        await bench.store.put_quota(everybody)
        await bench.store.put_quota(at_most(1, tenant="small", payload_bytes=9))
        assert (await use(bench, "small")).quota == Quota(
            tenant="small", pending=1, running=7, submissions=rate, payload_bytes=9
        )
        assert (await use(bench, "other")).quota == Quota(tenant="other", pending=2, running=7, submissions=rate)
        await bench.submit(new_job(tenant="small"), new_job(tenant="other"), new_job(tenant="other"))
        for tenant in ("small", "other"):
            assert told(await refused(bench, new_job(tenant=tenant)))[0] == "pending"
        await bench.store.remove_quota("*")
        await bench.submit(*(new_job(tenant="other") for _ in range(9)))

    async def test_a_change_of_one_part_of_a_quota_takes_effect(self, bench: Bench) -> None:
        """S9: `running` as before, `pending` lower: the next submission knows."""
        await bench.store.put_quota(at_most(5, running=3))
        await bench.submit(new_job())
        await bench.store.put_quota(at_most(1, running=3))
        assert told(await refused(bench, new_job()))[0] == "pending"

    async def test_quotas_are_listed_as_they_were_put(self, bench: Bench) -> None:
        """S9: by tenant; the last one put counts."""
        rate = Rate(100, per=0.5, algorithm="token")
        first, second = at_most(2, tenant="acme", submissions=rate), at_most(tenant="*", running=1, payload_bytes=5)
        for quota in (at_most(9, tenant="acme", running=8), first, second):
            await bench.store.put_quota(quota)
        assert await bench.store.quotas() == [second, first]
        assert await bench.store.remove_quota("acme")
        assert not await bench.store.remove_quota("acme")
        assert await bench.store.quotas() == [second]

    async def test_a_changed_quota_holds_at_once_in_another_store(self, bench: Bench) -> None:
        """S9: with the next submission, however it comes in."""
        other = await bench.second()
        await other.submit(new_job(), new_job())
        await bench.store.put_quota(at_most(3))
        await other.submit(keyed("k"))
        await refused(other, new_job())
        await other.store.put_quota(at_most(4))
        await bench.add()
        await refused(bench, keyed("l"))
        await bench.store.remove_quota(DEFAULT_TENANT)
        await other.submit(keyed("l"))

    async def test_a_changed_quota_holds_at_once_for_a_store_that_has_just_submitted(self, bench: Bench) -> None:
        """S9: plain jobs one after another, and then in a lane of their own: what it knew holds no longer."""
        other = await bench.second()
        first, second = [await other.add() for _ in range(2)]
        await bench.store.put_quota(at_most(2))
        await refused(other, new_job())
        await bench.store.remove_quota(DEFAULT_TENANT)
        third, fourth = [await other.add("a") for _ in range(2)]
        await bench.store.put_quota(at_most(4))
        await refused(other, new_job("b"))
        await bench.store.put_quota(at_most(5))
        fifth = await other.add("b")
        assert [job.id for job in await bench.claim(9)] == [first, second, third, fourth, fifth]

    async def test_submissions_that_race_never_exceed_a_quota(self, bench: Bench) -> None:
        """S9: two who count at the same time, with real threads and a real clock; and no room is left unused."""
        runtime = SystemRuntime()
        stores = [await bench.opened(runtime) for _ in range(3)]
        for number in range(RACES):
            tenant = f"t{number}"
            await stores[0].put_quota(at_most(10, tenant=tenant, submissions=Rate(25, per=3600)))
            assert await race(stores, tenant, keys=number % 2 == 1) == 10
            waiting = (await stores[0].quota_use(tenant) or pytest.fail("no quota")).pending
            assert waiting == 10


async def race(stores: list[DatabaseStore], tenant: str, *, keys: bool) -> int:
    """Several submissions at once on each store, of one to three jobs each; how many jobs came in."""
    calls = [
        store.submit([Submission(jobs=[_racer(tenant, at, n, each, keys=keys) for each in range(size)])])
        for at, store in enumerate(stores)
        for n, size in enumerate((1, 2, 3, 1, 1))
    ]
    answers = [answer for call in await asyncio.gather(*calls) for answer in call]
    return sum(len(answer) for answer in answers if isinstance(answer, list))


def _racer(tenant: str, *numbers: int, keys: bool) -> NewJob:
    """A job of its own, the long way round where it has a key."""
    name = "-".join(map(str, numbers))
    return keyed(name, tenant=tenant) if keys else new_job(tenant=tenant)
