"""Deadlines and lost leases that a claim finds."""

from __future__ import annotations

from ropewalk.domain.jobs.record import CompensationSpec
from ropewalk.domain.jobs.states import Move, Status
from ropewalk.domain.time import SECOND
from ropewalk.ports.store.capabilities import WORKFLOWS
from ropewalk.testing.contract.base import Contract, needs
from ropewalk.testing.contract.bench import Bench
from ropewalk.testing.contract.builders import LEASE, worker_card


class DeadlineContract(Contract):
    """A claim expires jobs whose deadline has passed instead of leasing them (R7)."""

    async def test_an_overdue_job_is_expired_instead_of_given(self, bench: Bench) -> None:
        overdue = await bench.add(ttl_us=SECOND)
        good = await bench.add()
        await bench.runtime.advance(1)
        claimed = await bench.claimed(1)
        assert [job.id for job in claimed.jobs] == [good], "an expired job does not use up the limit"
        [moved] = claimed.moved
        assert (moved.move, moved.job.id, moved.job.status) == (Move.EXPIRE, overdue, Status.DEAD_LETTER)
        job = await bench.job(overdue)
        assert moved.job == job
        assert job.error is not None
        assert job.error.code == "deadline_exceeded"
        assert (job.attempt, job.started_at, job.finished_at) == (0, None, bench.runtime.now())

    async def test_just_before_the_deadline_it_starts(self, bench: Bench) -> None:
        job_id = await bench.add(ttl_us=SECOND)
        await bench.runtime.advance(0.999_999)
        assert (await bench.claim_one()).id == job_id

    @needs(WORKFLOWS)
    async def test_an_expired_job_is_compensated(self, bench: Bench) -> None:
        """safe-14: once, and told that it never started."""
        overdue = await bench.add(ttl_us=SECOND, on_failure=CompensationSpec(type="undo"))
        await bench.runtime.advance(1)
        first = await bench.claimed(9)
        assert [moved.job.id for moved in first.moved] == [overdue]
        undo = [*first.jobs, *await bench.claim(9)]
        assert [job.type for job in undo] == ["undo"]
        origin = undo[0].origin
        assert origin is not None
        assert (origin.id, origin.started) == (overdue, False)

    async def test_an_overdue_last_attempt_holds_up_no_other_job(self, bench: Bench) -> None:
        await bench.add(ttl_us=SECOND, max_attempts=1)
        good = await bench.add()
        await bench.runtime.advance(1)
        claimed = await bench.claimed(5, slots=0)
        assert [job.id for job in claimed.jobs] == [good]


class ReclaimContract(Contract):
    """Claims alone are enough to take back lost leases, without any sweep (R3, live-2)."""

    async def test_a_claim_takes_back_a_lost_lease_and_gives_it_out(self, bench: Bench) -> None:
        lost = await bench.running(owner="dead")
        await bench.runtime.advance(LEASE / SECOND - 0.000_001)
        assert await bench.claim(owner="alive") == []
        await bench.runtime.advance(0.000_001)
        claimed = await bench.claimed(owner="alive")
        assert [(moved.move, moved.job.id, moved.job.crashes) for moved in claimed.moved] == [(Move.LOSE, lost.id, 1)]
        [job] = claimed.jobs
        assert (job.id, job.owner, job.attempt, job.crashes) == (lost.id, "alive", 2, 1)
        assert job.fence > lost.fence

    async def test_a_claim_that_is_served_too_late_takes_nothing_back(self, bench: Bench) -> None:
        """R3: it may have waited for the same outage as the holder's renewal. What is ready it gives all the same."""
        held = await bench.running(owner="held_up")
        await bench.runtime.advance(60)
        for until in (0, bench.runtime.now() - 1):
            ready = await bench.add()
            claimed = await bench.claimed(9, owner="alive", take_back_until=until)
            assert ([job.id for job in claimed.jobs], claimed.moved) == ([ready], [])
        assert await bench.job(held.id) == held
        claimed = await bench.claimed(9, owner="alive", take_back_until=bench.runtime.now())
        assert [(moved.move, moved.job.id) for moved in claimed.moved] == [(Move.LOSE, held.id)]

    async def test_a_claim_takes_back_types_it_does_not_serve(self, bench: Bench) -> None:
        lost = await bench.running("b", owner="dead")
        await bench.runtime.advance(60)
        claimed = await bench.claimed(owner="alive", types=["a"])
        assert [moved.job.id for moved in claimed.moved] == [lost.id]
        assert claimed.jobs == []

    async def test_a_job_that_never_started_is_given_back_whole(self, bench: Bench) -> None:
        """safe-7: neither attempt nor crash."""
        await bench.store.register(worker_card("dead"))
        ids = [await bench.add() for _ in range(2)]
        await bench.claim(2, owner="dead", slots=1, first_ticket=1, started_upto=1)
        await bench.runtime.advance(60)
        claimed = await bench.claimed(0, owner="alive")
        assert {moved.job.id: (moved.move, moved.job.attempt, moved.job.crashes) for moved in claimed.moved} == {
            ids[0]: (Move.LOSE, 1, 1),
            ids[1]: (Move.RELEASE, 0, 0),
        }
