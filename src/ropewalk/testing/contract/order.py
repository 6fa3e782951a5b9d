"""The order in which jobs are given out, and the time at which they become ready."""

from __future__ import annotations

import pytest

from ropewalk.domain.jobs.order import AGEING_STEP
from ropewalk.domain.jobs.states import KEEPS_ITS_PLACE, Move, State
from ropewalk.domain.time import HOUR, SECOND
from ropewalk.testing.contract.base import Contract
from ropewalk.testing.contract.bench import Bench
from ropewalk.testing.contract.builders import BOOM, LEASE, new_job, worker_card

keeps_its_place = pytest.mark.parametrize("move", sorted(KEEPS_ITS_PLACE))


class OrderContract(Contract):
    """The store decides the order in which jobs are given out, by priority and age (S3, live-5)."""

    async def test_jobs_of_one_priority_are_served_in_order(self, bench: Bench) -> None:
        ids = [await bench.add(("a", "b", "t")[number % 3]) for number in range(9)]
        assert [job.id for job in await bench.claim(9)] == ids, "merged over the types of a queue"

    async def test_an_older_job_overtakes_one_of_higher_priority(self, bench: Bench) -> None:
        """One point of priority is worth 36 s: an older job overtakes, so nothing starves."""
        low = await bench.add(priority=-2)
        await bench.runtime.advance(2 * AGEING_STEP / SECOND - 0.000_001)
        normal = await bench.add()
        high = await bench.add(priority=1)
        await bench.runtime.advance(0.000_002)
        late = await bench.add()
        assert [job.id for job in await bench.claim(4)] == [high, normal, low, late]

    async def test_a_tie_goes_to_the_older(self, bench: Bench) -> None:
        low = await bench.add(priority=-1)
        await bench.runtime.advance(AGEING_STEP / SECOND)
        normal = await bench.add()
        assert [job.id for job in await bench.claim(2)] == [low, normal]

    async def test_strict_priority_without_ageing(self, bench: Bench) -> None:
        low = await bench.add(priority=-1, strict_order=True)
        await bench.runtime.advance(days=30)
        normal, high, later = [await bench.add(priority=rank, strict_order=True) for rank in (0, 5, 5)]
        assert [job.id for job in await bench.claim(4)] == [high, later, normal, low]

    async def test_among_equals_the_earlier_run_at_goes_first(self, bench: Bench) -> None:
        later = await bench.add(delay_us=2 * SECOND)
        sooner = await bench.add(delay_us=SECOND)
        await bench.runtime.advance(5)
        assert [job.id for job in await bench.claim(2)] == [sooner, later]

    @pytest.mark.parametrize("move", [Move.RETRY, Move.DEFER, Move.SUSPEND])
    async def test_a_job_that_asked_for_another_time_queues_by_it(self, bench: Bench, move: Move) -> None:
        first = await bench.running()
        second = await bench.add()
        await bench.runtime.advance(1)
        await bench.settle(first, move)
        assert [job.id for job in await bench.claim(2)] == [second, first.id]

    @keeps_its_place
    @pytest.mark.parametrize("strict_order", [False, True])
    async def test_a_job_given_back_keeps_its_place(self, bench: Bench, move: Move, *, strict_order: bool) -> None:
        """R2, live-2: before what was queued after it, behind what was queued before it."""
        older = await bench.add("a", strict_order=strict_order)
        await bench.runtime.advance(1)
        held = await bench.running("b", strict_order=strict_order)
        await bench.runtime.advance(1)
        newer = await bench.add(strict_order=strict_order)
        await bench.settle(held, move)
        after = await bench.job(held.id)
        assert (after.run_at, after.prio_key, after.time_key) == (held.run_at, held.prio_key, held.time_key)
        assert [job.id for job in await bench.claim(3)] == [older, held.id, newer]

    async def test_a_job_keeps_its_place_however_often_it_is_given_back(self, bench: Bench) -> None:
        """R2, live-5: a drain never costs a job its turn."""
        first = await bench.add()
        for _ in range(3):
            await bench.runtime.advance(1)
            await bench.add()
            held = await bench.claim_one()
            assert held.id == first
            await bench.settle(held, Move.RELEASE)

    @keeps_its_place
    async def test_a_job_given_back_with_a_delay_loses_its_place(self, bench: Bench, move: Move) -> None:
        """R6: declined here, it lets the others go first."""
        held = await bench.running()
        newer = await bench.add()
        await bench.settle(held, move, delay_us=SECOND)
        await bench.runtime.advance(1)
        assert [job.id for job in await bench.claim(2)] == [newer, held.id]

    async def test_jobs_of_a_dead_worker_keep_their_places(self, bench: Bench) -> None:
        """R3, live-2: the one that had started and the one that had not, taken back by the claim itself."""
        await bench.store.register(worker_card("dead"))
        lost = [await bench.add() for _ in range(2)]
        await bench.claim(2, owner="dead", slots=1, started_upto=1)
        await bench.runtime.advance(1)
        newer = await bench.add()
        await bench.runtime.advance(LEASE / SECOND)
        assert [job.id for job in await bench.claim(3)] == [*lost, newer]

    async def test_queues_take_turns(self, bench: Bench) -> None:
        """R12: a flood on one cannot starve another."""
        for _ in range(8):
            await bench.add(queue="flood", priority=1000)
        for queue in ("calm", "mild"):
            await bench.add(queue=queue)
        jobs = await bench.claim(4)
        assert {job.queue for job in jobs[:3]} == {"flood", "calm", "mild"}
        assert jobs[3].queue == "flood"

    async def test_tenants_take_turns(self, bench: Bench) -> None:
        """live-5: a tenant with backlog gets its share, not more."""
        for _ in range(8):
            await bench.add(tenant="loud")
        await bench.add(tenant="quiet")
        assert "quiet" in {job.tenant for job in await bench.claim(2)}

    async def test_the_turn_decides_which_line_goes_first(self, bench: Bench) -> None:
        """domain.jobs.order: the next claim begins with the next line."""
        for _ in range(2):
            for queue in ("one", "three", "two"):
                await bench.add(queue=queue)
        firsts = [(await bench.claim_one(turn=turn)).queue for turn in range(3)]
        assert sorted(firsts) == ["one", "three", "two"]

    async def test_lines_without_ready_work_take_no_turn(self, bench: Bench) -> None:
        await bench.add(queue="a", delay_us=HOUR)
        await bench.add("b", queue="b")
        ready = [await bench.add(queue="c") for _ in range(3)]
        for turn, expected in enumerate(ready):
            [job] = await bench.claim(types=["t"], turn=turn)
            assert job.id == expected


class DueContract(Contract):
    """No job starts before its time by the store's clock, and time alone makes it ready (safe-8)."""

    async def test_a_job_starts_not_even_a_microsecond_early(self, bench: Bench) -> None:
        await bench.add(delay_us=1)
        assert await bench.claim() == []
        await bench.runtime.advance(0.000_001)
        assert len(await bench.claim()) == 1

    async def test_a_job_never_starts_before_its_run_at(self, bench: Bench) -> None:
        job_id = await bench.add(delay_us=10 * SECOND)
        await bench.runtime.advance(9.999_999)
        assert await bench.claim() == []
        assert await bench.state(job_id) is State.DELAYED
        await bench.runtime.advance(0.000_001)
        assert await bench.state(job_id) is State.SCHEDULED
        assert (await bench.claim_one()).id == job_id

    async def test_a_delayed_job_of_high_priority_does_not_hide_a_ready_one(self, bench: Bench) -> None:
        await bench.add(priority=1000, delay_us=SECOND)
        ready = await bench.add(priority=-1000)
        assert [job.id for job in await bench.claim(5)] == [ready]

    async def test_next_due_names_the_nearest(self, bench: Bench) -> None:
        """R17: the claimer's timer. Of these types, queues and tenants only."""
        now = bench.runtime.now()
        await bench.submit(
            new_job("a", delay_us=30 * SECOND),
            new_job("a", delay_us=20 * SECOND),
            new_job("b", delay_us=10 * SECOND),
            new_job("a", delay_us=9 * SECOND, queue="other"),
            new_job("a", delay_us=8 * SECOND, tenant="acme"),
            new_job("a"),
        )
        mine = {"types": ["a"], "queues": ("default",), "tenants": ("default",)}
        claimed = await bench.claimed(5, **mine)
        assert len(claimed.jobs) == 1
        assert claimed.next_due == now + 20 * SECOND
        assert (await bench.claimed(5)).next_due == now + 8 * SECOND
        await bench.runtime.advance(20)
        claimed = await bench.claimed(5, **mine)
        assert len(claimed.jobs) == 1
        assert claimed.next_due == now + 30 * SECOND

    async def test_a_cancelled_or_claimed_job_is_not_due(self, bench: Bench) -> None:
        job_id = await bench.add(delay_us=SECOND)
        await bench.store.cancel("default", [job_id], reason=None, force=False)
        assert (await bench.claimed()).next_due is None

    async def test_a_retry_is_due_after_its_backoff(self, bench: Bench) -> None:
        """R5."""
        job = await bench.running()
        await bench.settle(job, Move.RETRY, error=BOOM, delay_us=4 * SECOND)
        claimed = await bench.claimed()
        assert (claimed.jobs, claimed.next_due) == ([], bench.runtime.now() + 4 * SECOND)
        assert await bench.state(job.id) is State.RETRYING
        await bench.runtime.advance(4)
        assert await bench.state(job.id) is State.SCHEDULED
        assert (await bench.claim_one()).attempt == 2
