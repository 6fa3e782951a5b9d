"""How much of one tenant runs at once, comes in in a span of time, and how long an input may be."""

from __future__ import annotations

import pytest

from ropewalk.domain.jobs.record import DEFAULT_TENANT
from ropewalk.domain.jobs.states import State
from ropewalk.domain.limits.rate import Algorithm, Rate
from ropewalk.domain.time import SECOND
from ropewalk.ports.store.capabilities import QUOTAS
from ropewalk.ports.store.submission import SkipQueue
from ropewalk.testing.contract.base import Contract, needs
from ropewalk.testing.contract.bench import Bench, holder
from ropewalk.testing.contract.build import LEASE, new_job
from ropewalk.testing.contract.quotas import at_most, refused, told, use


@needs(QUOTAS)
class RunningQuotaContract(Contract):
    """S9, safe-8: never more run at once than a tenant may have running."""

    async def test_of_all_queues_types_and_keys_together(self, bench: Bench) -> None:
        """S9, R13: and others are not held up."""
        await bench.store.put_quota(at_most(running=2))
        await bench.submit(new_job("a", queue="q"), new_job("b", limit_key="k"), new_job(), new_job(tenant="acme"))
        jobs = await bench.claim(9)
        assert sorted(job.tenant for job in jobs) == ["acme", "default", "default"]
        assert (await use(bench)).running == 2
        mine = next(job for job in jobs if job.tenant == DEFAULT_TENANT)
        await bench.settle(mine)
        assert len(await bench.claim(9)) == 1

    async def test_that_of_everybody_is_for_each(self, bench: Bench) -> None:
        """S9: each tenant has it to itself, unless it has its own."""
        await bench.store.put_quota(at_most(running=1, tenant="*"))
        await bench.store.put_quota(at_most(running=2, tenant="big"))
        await bench.submit(*(new_job(tenant=tenant) for tenant in ("big", "one", "two") for _ in range(3)))
        assert sorted(job.tenant for job in await bench.claim(9)) == ["big", "big", "one", "two"]

    async def test_the_tenant_that_holds_a_job_back_is_named(self, bench: Bench) -> None:
        """S9, O4; and it is no limit that was set as such."""
        await bench.store.put_quota(at_most(running=1, tenant="*"))
        waits = [await bench.add() for _ in range(2)][1]
        await bench.claim(1)
        [full] = await bench.store.full_limits_for(await bench.job(waits))
        assert (full.limit.kind, full.name, full.in_use, full.next_at) == ("tenant", DEFAULT_TENANT, 1, None)
        assert await bench.store.limits(DEFAULT_TENANT) == await bench.store.limits("*") == []

    async def test_who_skips_the_queue_runs_too(self, bench: Bench) -> None:
        """S9, S7: with no place left it waits like any other."""
        await bench.store.put_quota(at_most(running=1))
        skips = [SkipQueue(owner="me", ticket=number, lease_us=LEASE) for number in (1, 2)]
        [[first], [second]] = [await bench.submit(new_job(), skip_queue=skip) for skip in skips]
        assert first.leased is not None
        assert (second.leased, second.state) == (None, State.SCHEDULED)

    async def test_it_ends_with_the_quota(self, bench: Bench) -> None:
        """S9: removed, or replaced by one that says nothing of it."""
        await bench.submit(*(new_job() for _ in range(4)))
        await bench.store.put_quota(at_most(running=1))
        assert len(await bench.claim(9)) == 1
        await bench.store.put_quota(at_most(9))
        assert len(await bench.claim(1)) == 1
        await bench.store.put_quota(at_most(running=1))
        assert await bench.claim(9) == []
        assert await bench.store.remove_quota(DEFAULT_TENANT)
        assert len(await bench.claim(9)) == 2


@needs(QUOTAS)
class SubmissionQuotaContract(Contract):
    """S9: so many come in in a span of time, by the store's clock; and none that is too long."""

    @pytest.mark.parametrize("algorithm", ["sliding", "fixed", "token"])
    async def test_no_more_come_in_than_the_rate_says(self, bench: Bench, algorithm: Algorithm) -> None:
        """S9: told when the next may; children and retries are no submissions."""
        await bench.store.put_quota(at_most(submissions=Rate(2, per=10, algorithm=algorithm)))
        await bench.runtime.advance(10 - bench.runtime.now() % (10 * SECOND) / SECOND)
        await bench.submit(new_job(), new_job())
        [job, _] = await bench.claim(2)
        await bench.submit(new_job("a", parent_id=job.id, spawn_key="s"), under=holder(job))
        await bench.runtime.advance(1)
        wait = 4.0 if algorithm == "token" else 9.0
        assert told(await refused(bench, new_job())) == ("submissions", 2, 2, wait)
        await bench.runtime.advance(wait - 0.000_001)
        await refused(bench, new_job())
        await bench.runtime.advance(0.000_001)
        await bench.add()

    async def test_a_batch_is_told_when_all_of_it_fits(self, bench: Bench) -> None:
        """S9: and that it never will, where it is larger than the rate."""
        await bench.store.put_quota(at_most(submissions=Rate(3, per=10)))
        await bench.add()
        await bench.runtime.advance(4)
        await bench.add()
        assert told(await refused(bench, *(new_job() for _ in range(3)))) == ("submissions", 2, 3, 10.0)
        assert told(await refused(bench, *(new_job() for _ in range(2)))) == ("submissions", 2, 3, 6.0)
        assert told(await refused(bench, *(new_job() for _ in range(4)))) == ("submissions", 2, 3, None)
        assert (await use(bench)).submissions == 2

    async def test_what_is_refused_uses_nothing_up(self, bench: Bench) -> None:
        """S9: whatever refused it."""
        await bench.store.put_quota(at_most(2, submissions=Rate(3, per=60), payload_bytes=10))
        await refused(bench, new_job(input=b"x" * 11))
        await refused(bench, *(new_job() for _ in range(3)))
        await bench.submit(new_job(), new_job())
        assert told(await refused(bench, new_job()))[0] == "pending"
        assert (await use(bench)).submissions == 2

    async def test_another_count_goes_on_and_another_window_begins_anew(self, bench: Bench) -> None:
        """S9: whoever's quota says so, the tenant's own or that of everybody."""
        await bench.store.put_quota(at_most(submissions=Rate(1, per=60)))
        await bench.add()
        await bench.store.put_quota(at_most(tenant="*", submissions=Rate(2, per=60)))
        await bench.store.remove_quota(DEFAULT_TENANT)
        await bench.add()
        await refused(bench, new_job())
        await bench.store.put_quota(at_most(submissions=Rate(1, per=30)))
        await bench.add()
        await refused(bench, new_job())

    async def test_no_input_is_longer_than_the_tenant_may(self, bench: Bench) -> None:
        """S9: the longest of a batch is named."""
        await bench.store.put_quota(at_most(payload_bytes=10))
        await bench.add(input=b"x" * 10)
        long = [new_job(input=b"x" * size) for size in (9, 12, 11)]
        assert told(await refused(bench, *long)) == ("payload_bytes", 12, 10, None)
        assert (await use(bench)).pending == 1
