"""Quotas on running jobs, on submissions in a span of time, and on the length of inputs."""

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
from ropewalk.testing.contract.builders import LEASE, new_job
from ropewalk.testing.contract.quotas import at_most, refused, told, use


@needs(QUOTAS)
class RunningQuotaContract(Contract):
    """No more jobs of a tenant run at once than its quota allows (S9, safe-8)."""

    async def test_a_running_quota_counts_all_queues_types_and_keys_together(self, bench: Bench) -> None:
        """S9, R13: and others are not held up."""
        await bench.store.put_quota(at_most(running=2))
        await bench.submit(new_job("a", queue="q"), new_job("b", limit_key="k"), new_job(), new_job(tenant="acme"))
        jobs = await bench.claim(9)
        assert sorted(job.tenant for job in jobs) == ["acme", "default", "default"]
        assert (await use(bench)).running == 2
        mine = next(job for job in jobs if job.tenant == DEFAULT_TENANT)
        await bench.settle(mine)
        assert len(await bench.claim(9)) == 1

    async def test_the_running_quota_of_everybody_holds_for_each_tenant(self, bench: Bench) -> None:
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

    async def test_a_running_quota_counts_jobs_that_skip_the_queue(self, bench: Bench) -> None:
        """S9, S7: with no place left it waits like any other."""
        await bench.store.put_quota(at_most(running=1))
        skips = [SkipQueue(owner="me", ticket=number, lease_us=LEASE) for number in (1, 2)]
        [[first], [second]] = [await bench.submit(new_job(), skip_queue=skip) for skip in skips]
        assert first.leased is not None
        assert (second.leased, second.state) == (None, State.SCHEDULED)

    async def test_a_running_quota_ends_when_it_is_removed(self, bench: Bench) -> None:
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
    """A tenant submits no more jobs in a span of time, and no longer inputs, than its quota allows (S9)."""

    @pytest.mark.parametrize("algorithm", ["sliding", "fixed", "token"])
    async def test_no_more_jobs_are_submitted_than_the_rate_allows(self, bench: Bench, algorithm: Algorithm) -> None:
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

    async def test_a_refused_batch_is_told_when_all_of_it_fits(self, bench: Bench) -> None:
        """S9: and that it never will, where it is larger than the rate."""
        await bench.store.put_quota(at_most(submissions=Rate(3, per=10)))
        await bench.add()
        await bench.runtime.advance(4)
        await bench.add()
        assert told(await refused(bench, *(new_job() for _ in range(3)))) == ("submissions", 2, 3, 10.0)
        assert told(await refused(bench, *(new_job() for _ in range(2)))) == ("submissions", 2, 3, 6.0)
        assert told(await refused(bench, *(new_job() for _ in range(4)))) == ("submissions", 2, 3, None)
        assert (await use(bench)).submissions == 2

    async def test_a_refused_submission_uses_nothing_of_the_rate(self, bench: Bench) -> None:
        """S9: whatever refused it."""
        await bench.store.put_quota(at_most(2, submissions=Rate(3, per=60), payload_bytes=10))
        await refused(bench, new_job(input=b"x" * 11))
        await refused(bench, *(new_job() for _ in range(3)))
        await bench.submit(new_job(), new_job())
        assert told(await refused(bench, new_job()))[0] == "pending"
        assert (await use(bench)).submissions == 2

    async def test_a_changed_count_keeps_the_window_and_a_changed_window_starts_over(self, bench: Bench) -> None:
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

    async def test_an_input_longer_than_the_quota_is_refused(self, bench: Bench) -> None:
        """S9: the longest of a batch is named."""
        await bench.store.put_quota(at_most(payload_bytes=10))
        await bench.add(input=b"x" * 10)
        long = [new_job(input=b"x" * size) for size in (9, 12, 11)]
        assert told(await refused(bench, *long)) == ("payload_bytes", 12, 10, None)
        assert (await use(bench)).pending == 1
