"""One claim after the other: whatever a store remembers of the last one, the next one sees what changed in between."""

from __future__ import annotations

from typing import Any

import pytest

from ropewalk.domain.jobs.record import JobRecord
from ropewalk.domain.jobs.states import Move, State, Status
from ropewalk.domain.jobs.transition import EPOCH_SHIFT
from ropewalk.domain.limits.fleet_limit import FlowLimit
from ropewalk.domain.statistics.aggregation import StatsQuery
from ropewalk.domain.statistics.histogram import Histogram
from ropewalk.domain.statistics.statistics import Latency
from ropewalk.domain.time import HOUR, SECOND
from ropewalk.ports.store.capabilities import LIMITS, STATISTICS, WORKFLOWS
from ropewalk.testing.contract.base import Contract, needs
from ropewalk.testing.contract.bench import Bench
from ropewalk.testing.contract.build import BOOM, LEASE, gate_on, settlement

SOON = SECOND // 2
"""before anybody looks for lost leases again"""


class ClaimsInARowContract(Contract):
    """R2, safe-8: claims of one type in one queue come thick and fast, and stores make them cheap."""

    async def test_they_give_all_of_it_in_order(self, bench: Bench) -> None:
        """R2: and the records that were written, each time."""
        ids = [await bench.add(priority=number % 3) for number in range(9)]
        in_order = sorted(ids, key=lambda job_id: -(ids.index(job_id) % 3))
        given = [await bench.claim(2, first_ticket=1 + 2 * turn, started_upto=2 * turn) for turn in range(6)]
        assert [job.id for jobs in given for job in jobs] == in_order
        assert [job.ticket for jobs in given for job in jobs] == list(range(1, 10))
        assert [await bench.job(job.id) for jobs in given for job in jobs] == [job for jobs in given for job in jobs]

    async def test_what_comes_later_and_goes_first(self, bench: Bench) -> None:
        """S3: the store decides the order, in the claim."""
        await _begun(bench)
        first = await bench.add(priority=9)
        assert (await bench.claim_one()).id == first

    async def test_another_type_or_queue(self, bench: Bench) -> None:
        """R1: one that is served, and one that is not."""
        await _begun(bench)
        await bench.add("a", priority=9)
        other = await bench.add("b", priority=8)
        assert (await bench.claim_one(types=["t", "b"])).id == other
        elsewhere = await bench.add(queue="q")
        assert elsewhere in {job.id for job in await bench.claim(9)}

    @pytest.mark.parametrize("served", [{"types": ["a"]}, {"queues": ("q",)}, {"tenants": ("acme",)}], ids=str)
    async def test_another_worker(self, bench: Bench, served: dict[str, Any]) -> None:
        """R1: that serves other types, queues or tenants."""
        await _begun(bench)
        assert await bench.claim(9, **served) == []
        assert len(await bench.claim(9)) == 2

    async def test_a_queue_that_is_paused(self, bench: Bench) -> None:
        """safe-8."""
        await _begun(bench)
        await bench.store.pause("default", "default", paused=True)
        assert await bench.claim(9) == []
        await bench.store.pause("default", "default", paused=False)
        assert len(await bench.claim(9)) == 2

    @needs(LIMITS)
    async def test_a_limit_that_is_set(self, bench: Bench) -> None:
        """safe-8."""
        await _begun(bench)
        await bench.store.put_limit(FlowLimit(tenant="default", kind="type", name="t", concurrency=2))
        assert len(await bench.claim(9)) == 1

    async def test_a_job_that_comes_due(self, bench: Bench) -> None:
        """S2: at its time, and before others if that is its place."""
        due = await bench.add(delay_us=SOON, priority=9)
        await _begun(bench)
        claimed = await bench.claimed(1)
        assert claimed.next_due == bench.runtime.now() + SOON
        await bench.runtime.advance(SOON / SECOND)
        assert (await bench.claim_one()).id == due

    @needs(WORKFLOWS)
    async def test_a_wait_that_is_over(self, bench: Bench) -> None:
        """C3: a gate that times out, while others are given out."""
        held = await bench.running()
        gated = await bench.add(gate=gate_on(held.id, timeout_us=SOON))
        await _begun(bench)
        assert (await bench.claimed(1)).next_due == bench.runtime.now() + SOON
        await bench.runtime.advance(SOON / SECOND)
        await bench.claim(1)
        assert await bench.status(gated) is Status.FAILED

    async def test_a_job_past_its_deadline(self, bench: Bench) -> None:
        """S2, R7: it never starts."""
        await _begun(bench)
        late = await bench.add(ttl_us=SOON, priority=9)
        await bench.add(priority=10)
        assert (await bench.claim_one()).id != late
        await bench.runtime.advance(SOON / SECOND)
        assert late not in {job.id for job in await bench.claim(9)}
        assert await bench.state(late) is State.DEAD_LETTER

    async def test_a_last_attempt_waits_for_a_free_slot(self, bench: Bench) -> None:
        """storage.md, buffer."""
        await _begun(bench)
        last = await bench.add(max_attempts=1, priority=9)
        assert last not in {job.id for job in await bench.claim(9, slots=0)}
        assert last in {job.id for job in await bench.claim(9, slots=1)}

    async def test_a_lease_of_its_own(self, bench: Bench) -> None:
        """R2."""
        await _begun(bench)
        await bench.add(lease_us=5 * SECOND, priority=9)
        job = await bench.claim_one()
        assert job.lease_expires_at == bench.runtime.now() + 5 * SECOND
        assert job == await bench.job(job.id)

    async def test_one_that_was_tried_before(self, bench: Bench) -> None:
        """R5, R9: with all that its attempts left."""
        job = await _begun(bench)
        await bench.settle(job, Move.RETRY, error=BOOM)
        again = {each.id: each for each in await bench.claim(9)}[job.id]
        assert (again.attempt, again.fence, again.rev) == (2, 2, 4)
        assert again == await bench.job(job.id)

    async def test_a_lease_that_was_lost(self, bench: Bench) -> None:
        """R3: taken back by whoever claims next, and given out alone."""
        job = await _begun(bench)
        await bench.runtime.advance(LEASE / SECOND)
        claimed = await bench.claimed(9, slots=9)
        assert [moved.job.id for moved in claimed.moved] == [job.id]
        assert job.id in {each.id for each in claimed.jobs}

    async def test_a_raised_epoch(self, bench: Bench) -> None:
        """storage.md, restores."""
        await _begun(bench)
        await bench.backend.raise_epoch(bench.store, 3)
        job = await bench.claim_one()
        assert job.fence >> EPOCH_SHIFT == 3
        assert job == await bench.job(job.id)

    async def test_nothing_is_left_and_then_there_is(self, bench: Bench) -> None:
        await _begun(bench)
        assert [len(await bench.claim(9)) for _ in range(3)] == [2, 0, 0]
        more = await bench.add()
        assert (await bench.claim_one()).id == more


class SettlementsInARowContract(Contract):
    """R2, safe-5: so do completions that nobody else has to hear of."""

    async def test_each_keeps_its_own_result(self, bench: Bench) -> None:
        """Also none at all, an empty one, and bytes that are no text."""
        results = [b"1", None, b"", b"\xff\x00\xfe", b"x" * 2000, b"6"]
        for _ in results:
            await bench.add()
        jobs = await bench.claim(9)
        asked = [settlement(job, result=result) for job, result in zip(jobs, results, strict=True)]
        settled = await bench.settle_all("worker", asked[::-1])
        assert [each.seq for each in settled] == [job.seq for job in reversed(jobs)]
        assert [(await bench.job(job.id)).result for job in jobs] == results

    @needs(STATISTICS)
    async def test_one_that_lost_its_lease_takes_nothing_with_it(self, bench: Bench) -> None:
        """safe-5: neither from the others nor of what is counted."""
        lost = await bench.running("a")
        await bench.runtime.advance(LEASE / SECOND)
        await bench.sweep()
        kept = [await bench.running("b"), await bench.running("b")]
        settled = await bench.settle_all("worker", [settlement(job) for job in (kept[0], lost, kept[1])])
        assert [each.lost is None for each in settled] == [True, False, True]
        assert [await bench.status(job.id) for job in kept] == [Status.COMPLETED] * 2
        assert await bench.status(lost.id) is Status.WAITING
        told = await bench.store.stats("default", StatsQuery(last_us=HOUR))
        assert told.flow.completed == told.flow.total.count == 2

    async def test_a_lease_of_before_is_not_the_lease_of_now(self, bench: Bench) -> None:
        """safe-5: though the same worker has both."""
        before = await bench.running()
        await bench.settle(before, Move.RELEASE)
        now = await bench.claim_one()
        [settled] = await bench.settle_all("worker", [settlement(before, result=b"before")])
        assert settled.lost is not None
        assert await bench.job(now.id) == now

    @needs(STATISTICS)
    async def test_they_are_counted_like_one_by_one(self, bench: Bench) -> None:
        """O4: how long each of them waited, ran, and took in all."""
        waits, jobs = [3 * SECOND, 3 * SECOND + 1, 70_000, 1, 0], list[JobRecord]()
        await bench.add()
        for wait in (3 * SECOND, 1, 70_000, 1, 0):
            if len(jobs) != 1:  # the first two came together: alike in all but a µs
                await bench.add()
            await bench.runtime.advance(wait / SECOND)
            jobs.append(await bench.claim_one())
        await bench.runtime.advance(1)
        taken = [bench.runtime.now() - job.created_at for job in jobs]
        assert len(await bench.settle_all("worker", [settlement(job) for job in jobs])) == len(jobs)
        flow = (await bench.store.stats("default", StatsQuery(last_us=HOUR))).flow
        ran = [took - wait for took, wait in zip(taken, waits, strict=True)]
        told = [flow.wait, flow.run, flow.total]
        assert told == [Latency.of(Histogram.of(spans)) for spans in (waits, ran, taken)]

    @needs(WORKFLOWS)
    async def test_one_that_somebody_came_to_depend_on(self, bench: Bench) -> None:
        """C3, safe-9: after it was claimed, which its worker does not know."""
        parent, other = await bench.running(), await bench.running()
        child = await bench.add(gate=gate_on(parent.id))
        await bench.settle_all("worker", [settlement(job) for job in (other, parent)])
        assert await bench.state(child) is State.SCHEDULED

    async def test_the_same_lease_twice(self, bench: Bench) -> None:
        """safe-6: the first counts."""
        job = await bench.running()
        first, second = await bench.settle_all("worker", [settlement(job, result=b"1"), settlement(job, result=b"2")])
        assert (first.lost, second.lost is None) == (None, False)
        assert (await bench.job(job.id)).result == b"1"


async def _begun(bench: Bench) -> JobRecord:
    """Three plain jobs, of which one is claimed: what most claims are like."""
    for _ in range(3):
        await bench.add()
    return await bench.claim_one()
