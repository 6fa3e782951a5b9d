"""Claims and completions that follow one another, in stores that remember something of the last one."""

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
from ropewalk.testing.contract.builders import BOOM, LEASE, gate_on, settlement

SOON = SECOND // 2
"""A span so short that a store does not look for lost leases again."""


class ClaimsInARowContract(Contract):
    """A store may remember what the last claim saw, but the next claim sees everything that changed since (R2,
    safe-8).
    """

    async def test_claims_in_a_row_give_every_job_in_order(self, bench: Bench) -> None:
        """R2: and the records that were written, each time."""
        ids = [await bench.add(priority=number % 3) for number in range(9)]
        in_order = sorted(ids, key=lambda job_id: -(ids.index(job_id) % 3))
        given = [await bench.claim(2, first_ticket=1 + 2 * turn, started_upto=2 * turn) for turn in range(6)]
        assert [job.id for jobs in given for job in jobs] == in_order
        assert [job.ticket for jobs in given for job in jobs] == list(range(1, 10))
        assert [await bench.job(job.id) for jobs in given for job in jobs] == [job for jobs in given for job in jobs]

    async def test_the_next_claim_sees_a_later_job_that_goes_first(self, bench: Bench) -> None:
        """S3: the store decides the order, in the claim."""
        await _begun(bench)
        first = await bench.add(priority=9)
        assert (await bench.claim_one()).id == first

    async def test_the_next_claim_sees_another_type_or_queue(self, bench: Bench) -> None:
        """R1: one that is served, and one that is not."""
        await _begun(bench)
        await bench.add("a", priority=9)
        other = await bench.add("b", priority=8)
        assert (await bench.claim_one(types=["t", "b"])).id == other
        elsewhere = await bench.add(queue="q")
        assert elsewhere in {job.id for job in await bench.claim(9)}

    @pytest.mark.parametrize("served", [{"types": ["a"]}, {"queues": ("q",)}, {"tenants": ("acme",)}], ids=str)
    async def test_the_next_claim_may_be_that_of_another_worker(self, bench: Bench, served: dict[str, Any]) -> None:
        """R1: that serves other types, queues or tenants."""
        await _begun(bench)
        assert await bench.claim(9, **served) == []
        assert len(await bench.claim(9)) == 2

    async def test_the_next_claim_sees_that_a_queue_was_paused(self, bench: Bench) -> None:
        """safe-8."""
        await _begun(bench)
        await bench.store.pause("default", "default", paused=True)
        assert await bench.claim(9) == []
        await bench.store.pause("default", "default", paused=False)
        assert len(await bench.claim(9)) == 2

    @needs(LIMITS)
    async def test_the_next_claim_sees_that_a_limit_was_set(self, bench: Bench) -> None:
        """safe-8."""
        await _begun(bench)
        await bench.store.put_limit(FlowLimit(tenant="default", kind="type", name="t", concurrency=2))
        assert len(await bench.claim(9)) == 1

    async def test_the_next_claim_sees_a_job_that_came_due(self, bench: Bench) -> None:
        """S2: at its time, and before others if that is its place."""
        due = await bench.add(delay_us=SOON, priority=9)
        await _begun(bench)
        claimed = await bench.claimed(1)
        assert claimed.next_due == bench.runtime.now() + SOON
        await bench.runtime.advance(SOON / SECOND)
        assert (await bench.claim_one()).id == due

    @needs(WORKFLOWS)
    async def test_the_next_claim_sees_a_gate_that_timed_out(self, bench: Bench) -> None:
        """C3: a gate that times out, while others are given out."""
        held = await bench.running()
        gated = await bench.add(gate=gate_on(held.id, timeout_us=SOON))
        await _begun(bench)
        assert (await bench.claimed(1)).next_due == bench.runtime.now() + SOON
        await bench.runtime.advance(SOON / SECOND)
        await bench.claim(1)
        assert await bench.status(gated) is Status.FAILED

    async def test_the_next_claim_sees_a_deadline_that_passed(self, bench: Bench) -> None:
        """S2, R7: it never starts."""
        await _begun(bench)
        late = await bench.add(ttl_us=SOON, priority=9)
        await bench.add(priority=10)
        assert (await bench.claim_one()).id != late
        await bench.runtime.advance(SOON / SECOND)
        assert late not in {job.id for job in await bench.claim(9)}
        assert await bench.state(late) is State.DEAD_LETTER

    async def test_the_next_claim_leaves_a_last_attempt_without_a_free_slot(self, bench: Bench) -> None:
        """safe-7."""
        await _begun(bench)
        last = await bench.add(max_attempts=1, priority=9)
        assert last not in {job.id for job in await bench.claim(9, slots=0)}
        assert last in {job.id for job in await bench.claim(9, slots=1)}

    async def test_the_next_claim_uses_the_lease_that_a_job_asks_for(self, bench: Bench) -> None:
        """R2."""
        await _begun(bench)
        await bench.add(lease_us=5 * SECOND, priority=9)
        job = await bench.claim_one()
        assert job.lease_expires_at == bench.runtime.now() + 5 * SECOND
        assert job == await bench.job(job.id)

    async def test_the_next_claim_sees_a_job_that_was_tried_before(self, bench: Bench) -> None:
        """R5, R9: with all that its attempts left."""
        job = await _begun(bench)
        await bench.settle(job, Move.RETRY, error=BOOM)
        again = {each.id: each for each in await bench.claim(9)}[job.id]
        assert (again.attempt, again.fence, again.rev) == (2, 2, 4)
        assert again == await bench.job(job.id)

    async def test_the_next_claim_takes_back_a_lost_lease(self, bench: Bench) -> None:
        """R3: taken back by whoever claims next, and given out alone."""
        job = await _begun(bench)
        await bench.runtime.advance(LEASE / SECOND)
        claimed = await bench.claimed(9, slots=9)
        assert [moved.job.id for moved in claimed.moved] == [job.id]
        assert job.id in {each.id for each in claimed.jobs}

    async def test_the_next_claim_uses_a_raised_epoch(self, bench: Bench) -> None:
        """safe-5."""
        await _begun(bench)
        await bench.backend.raise_epoch(bench.store, 3)
        job = await bench.claim_one()
        assert job.fence >> EPOCH_SHIFT == 3
        assert job == await bench.job(job.id)

    async def test_the_next_claim_sees_a_job_that_came_after_an_empty_claim(self, bench: Bench) -> None:
        await _begun(bench)
        assert [len(await bench.claim(9)) for _ in range(3)] == [2, 0, 0]
        more = await bench.add()
        assert (await bench.claim_one()).id == more


class SettlementsInARowContract(Contract):
    """Completions that no other job depends on may be written together, but each is still checked and counted (R2,
    safe-5).
    """

    async def test_each_settlement_keeps_its_own_result(self, bench: Bench) -> None:
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
    async def test_one_lost_lease_changes_nothing_for_the_other_settlements(self, bench: Bench) -> None:
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

    async def test_an_earlier_lease_of_the_same_worker_is_not_its_present_one(self, bench: Bench) -> None:
        """safe-5: though the same worker has both."""
        before = await bench.running()
        await bench.settle(before, Move.RELEASE)
        now = await bench.claim_one()
        [settled] = await bench.settle_all("worker", [settlement(before, result=b"before")])
        assert settled.lost is not None
        assert await bench.job(now.id) == now

    @needs(STATISTICS)
    async def test_settlements_in_a_row_are_counted_like_single_ones(self, bench: Bench) -> None:
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
    async def test_a_completion_resolves_a_dependant_that_came_after_the_claim(self, bench: Bench) -> None:
        """C3, safe-9: after it was claimed, which its worker does not know."""
        parent, other = await bench.running(), await bench.running()
        child = await bench.add(gate=gate_on(parent.id))
        await bench.settle_all("worker", [settlement(job) for job in (other, parent)])
        assert await bench.state(child) is State.SCHEDULED

    async def test_of_two_settlements_of_one_lease_in_a_row_the_first_counts(self, bench: Bench) -> None:
        """safe-6: the first counts."""
        job = await bench.running()
        first, second = await bench.settle_all("worker", [settlement(job, result=b"1"), settlement(job, result=b"2")])
        assert (first.lost, second.lost is None) == (None, False)
        assert (await bench.job(job.id)).result == b"1"


async def _begun(bench: Bench) -> JobRecord:
    """Submit three plain jobs and claim one of them, so that the next claim is a typical one."""
    for _ in range(3):
        await bench.add()
    return await bench.claim_one()
