"""Limits on how many jobs of a queue, a type or a key start in a span of time."""

from __future__ import annotations

import pytest

from ropewalk.domain.jobs.states import Move
from ropewalk.domain.limits.fleet_limit import FlowLimit, LimitKind
from ropewalk.domain.limits.rate import ALGORITHMS, Algorithm, Rate
from ropewalk.domain.retention import Retention
from ropewalk.domain.time import SECOND
from ropewalk.ports.store.capabilities import LIMITS
from ropewalk.ports.store.submission import SkipQueue, Submission
from ropewalk.runtime.system import SystemRuntime
from ropewalk.testing.contract.base import Contract, needs
from ropewalk.testing.contract.bench import Bench
from ropewalk.testing.contract.builders import LEASE, claim_request, new_job
from ropewalk.testing.contract.limits import RACES, kinds, race

algorithms = pytest.mark.parametrize("algorithm", ALGORITHMS)


def paced(rate: Rate, kind: LimitKind = "key", name: str = "k", *, concurrency: int | None = None) -> FlowLimit:
    return FlowLimit(tenant="default", kind=kind, name=name, rate=rate, concurrency=concurrency)


@needs(LIMITS)
class RateContract(Contract):
    """No job starts before the rates of its limits leave room for it (R13, safe-8)."""

    @kinds
    @algorithms
    async def test_no_more_jobs_start_in_a_window_than_the_rate_allows(
        self, bench: Bench, kind: LimitKind, name: str, algorithm: Algorithm
    ) -> None:
        """R13, safe-8: ended or not."""
        await bench.store.put_limit(paced(Rate(2, per=10, algorithm=algorithm), kind, name))
        await bench.submit(*(new_job(queue="q", limit_key="k") for _ in range(9)))
        first = await bench.claimed(9)
        assert len(first.jobs) == 2
        for job in first.jobs:
            await bench.settle(job)
        assert first.next_due is not None
        wait_us = first.next_due - first.now
        assert 0 < wait_us <= 10 * SECOND
        await bench.runtime.advance((wait_us - 1) / SECOND)
        assert await bench.claim(9) == [], "not a microsecond early"
        await bench.runtime.advance(0.000_001)
        assert len(await bench.claim(9)) >= 1, "and not later"

    async def test_a_sliding_rate_holds_in_every_window(self, bench: Bench) -> None:
        """R13: each start makes room exactly a window later."""
        await bench.store.put_limit(paced(Rate(2, per=10)))
        await bench.submit(*(new_job(limit_key="k") for _ in range(9)))
        assert len(await bench.claim(1)) == 1
        await bench.runtime.advance(4)
        assert len(await bench.claim(9)) == 1
        await bench.runtime.advance(6)
        again = await bench.claimed(9)
        assert len(again.jobs) == 1
        assert again.next_due == again.now + 4 * SECOND

    async def test_a_token_rate_allows_starts_evenly_after_a_burst(self, bench: Bench) -> None:
        """R13: after a burst one every per/count seconds."""
        await bench.store.put_limit(paced(Rate(4, per=10, algorithm="token")))
        await bench.submit(*(new_job(limit_key="k") for _ in range(9)))
        assert len(await bench.claim(9)) == 4
        for _ in range(3):
            await bench.runtime.advance(2.5)
            claimed = await bench.claimed(9)
            assert len(claimed.jobs) == 1
            assert claimed.next_due == claimed.now + 2_500_000

    async def test_an_attempt_that_was_given_back_counts_as_a_start(self, bench: Bench) -> None:
        """R13: a rate counts starts, whatever became of them."""
        await bench.store.put_limit(paced(Rate(1, per=10)))
        job = await bench.running(limit_key="k")
        await bench.settle(job, Move.RELEASE)
        assert await bench.claim(9) == []
        await bench.runtime.advance(10)
        assert len(await bench.claim(9)) == 1

    async def test_a_family_has_a_rate_for_each_key(self, bench: Bench) -> None:
        """R13: and forgets those that rest."""
        await bench.store.put_limit(paced(Rate(1, per=1000), name="c:*"))
        for _ in range(2):
            await bench.submit(*(new_job(limit_key=f"c:{number}") for number in range(20)))
            assert len(await bench.claim(50)) == 20
            assert await bench.claim(50) == []
            await bench.store.prune(Retention(), 1000)
            assert await bench.claim(50) == [], "what still counts is kept"
            await bench.runtime.advance(1000)
            for job in await bench.claim(50):
                await bench.settle(job)
            await bench.runtime.advance(2000)
            await bench.store.prune(Retention(), 1000)

    async def test_concurrency_and_rate_of_one_limit_hold_together(self, bench: Bench) -> None:
        """R13: concurrency and rate of one limit; when to ask again is when both leave room."""
        await bench.store.put_limit(paced(Rate(3, per=10), concurrency=2))
        await bench.submit(*(new_job(limit_key="k") for _ in range(9)))
        jobs = await bench.claim(9)
        assert len(jobs) == 2
        await bench.settle(jobs[0])
        third = await bench.claimed(9)
        assert len(third.jobs) == 1
        await bench.settle(jobs[1])
        held = await bench.claimed(9)
        assert (held.jobs, held.next_due) == ([], held.now + 10 * SECOND)

    async def test_a_changed_count_of_a_rate_keeps_what_was_used(self, bench: Bench) -> None:
        """R13: another count goes on with the same window, another window begins anew."""
        await bench.store.put_limit(paced(Rate(2, per=10)))
        await bench.submit(*(new_job(limit_key="k") for _ in range(20)))
        assert len(await bench.claim(9)) == 2
        await bench.store.put_limit(paced(Rate(3, per=10), concurrency=9))
        assert len(await bench.claim(9)) == 1
        await bench.store.put_limit(paced(Rate(1, per=10)))
        held = await bench.claimed(9)
        assert (held.jobs, held.next_due) == ([], held.now + 10 * SECOND)
        await bench.store.put_limit(paced(Rate(4, per=20)))
        assert len(await bench.claim(9)) == 4
        await bench.store.remove_limit("default", "key", "k")
        await bench.store.put_limit(paced(Rate(4, per=20)))
        assert len(await bench.claim(9)) == 4, "what is removed is forgotten"

    async def test_the_rate_that_holds_a_job_back_is_named_with_its_end(self, bench: Bench) -> None:
        """R13, O4."""
        await bench.store.put_limit(paced(Rate(1, per=10)))
        waits = [await bench.add(limit_key="k") for _ in range(2)][1]
        now = bench.runtime.now()
        await bench.claim(1)
        [full] = await bench.store.full_limits_for(await bench.job(waits))
        assert full.next_at == now + 10 * SECOND

    async def test_a_job_that_skips_the_queue_counts_as_a_start(self, bench: Bench) -> None:
        """R13, S7."""
        await bench.store.put_limit(paced(Rate(1, per=10)))
        skip = SkipQueue(owner="me", ticket=1, lease_us=LEASE)
        [first] = await bench.submit(new_job(limit_key="k"), skip_queue=skip)
        [second] = await bench.submit(new_job(limit_key="k"), skip_queue=skip)
        assert first.leased is not None
        assert second.leased is None
        assert await bench.claim(9) == []

    @algorithms
    async def test_claims_that_race_never_exceed_a_rate(self, bench: Bench, algorithm: Algorithm) -> None:
        """R13, safe-8: with real threads and a real clock; the window is longer than the test."""
        runtime = SystemRuntime()
        stores = [await bench.opened(runtime) for _ in range(3)]
        for number in range(RACES):
            await stores[0].put_limit(paced(Rate(3, per=86_400 + number, algorithm=algorithm)))  # begins anew
            await stores[0].submit([Submission(jobs=[new_job(limit_key="k") for _ in range(6)])])
            jobs = await race(stores)
            assert len(jobs) <= 3
            jobs += (await stores[0].claim(claim_request(limit=9))).jobs
            assert len(jobs) == 3
