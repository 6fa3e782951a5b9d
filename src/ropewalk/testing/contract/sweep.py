"""Lost leases and passed deadlines that a sweep finds."""

from __future__ import annotations

from ropewalk.domain.failure import DEADLINE_EXCEEDED, WORKER_LOST
from ropewalk.domain.jobs.lease import LossReason
from ropewalk.domain.jobs.record import CompensationSpec
from ropewalk.domain.jobs.states import Move, Status
from ropewalk.domain.time import HOUR, SECOND
from ropewalk.ports.store.capabilities import WORKFLOWS
from ropewalk.ports.store.leases import Renewal
from ropewalk.testing.contract.base import Contract, needs
from ropewalk.testing.contract.bench import Bench
from ropewalk.testing.contract.builders import LEASE, worker_card


class SweepContract(Contract):
    """A sweep takes back the leases that have expired (R3)."""

    async def test_a_lost_job_is_ready_again_where_it_stood_in_line(self, bench: Bench) -> None:
        """R3, live-2: the attempt is used, a crash counted, no backoff."""
        job = await bench.running(owner="dead")
        await bench.runtime.advance(LEASE / SECOND - 0.000_001)
        assert await bench.sweep(9) == []
        await bench.runtime.advance(0.000_001)
        [moved] = await bench.sweep(9)
        after = await bench.job(job.id)
        assert (moved.move, moved.job) == (Move.LOSE, after)
        assert (after.status, after.attempt, after.crashes) == (Status.WAITING, 1, 1)
        assert (after.owner, after.lease_expires_at, after.error) == (None, None, WORKER_LOST)
        assert (after.run_at, after.prio_key, after.time_key) == (job.run_at, job.prio_key, job.time_key)
        [record] = (await bench.stored_history(job.id)).attempts
        assert (record.move, record.owner, record.error) == (Move.LOSE, "dead", WORKER_LOST)
        assert record.next_run_at == job.run_at
        assert await bench.sweep(9) == []

    async def test_a_sweep_that_is_served_too_late_takes_nothing_back(self, bench: Bench) -> None:
        """R3: it may have waited for the same outage as the holder's renewal. Everything else is done all the same."""
        job = await bench.running(owner="held_up")
        overdue = await bench.add(ttl_us=SECOND)
        await bench.runtime.advance(60)
        for until in (0, bench.runtime.now() - 1):
            late = (await bench.store.sweep(9, take_back_until=until)).moved
            assert [each.job.id for each in late] == ([overdue] if until == 0 else [])
        assert await bench.job(job.id) == job
        [moved] = (await bench.store.sweep(9, take_back_until=bench.runtime.now())).moved
        assert (moved.job.id, moved.move) == (job.id, Move.LOSE)

    async def test_a_lost_job_becomes_a_dead_letter_at_max_crashes(self, bench: Bench) -> None:
        """R3, safe-7: crashes ≤ max_crashes."""
        job_id = await bench.add(max_attempts=None, max_crashes=2)
        moves: list[Move] = []
        for _ in range(2):
            await bench.claim_one()
            await bench.runtime.advance(60)
            moves += [moved.move for moved in await bench.sweep(9)]
        assert moves == [Move.LOSE, Move.BURY]
        job = await bench.job(job_id)
        assert (job.status, job.crashes, job.error) == (Status.DEAD_LETTER, 2, WORKER_LOST)
        assert job.finished_at == bench.runtime.now()

    async def test_a_lost_job_becomes_a_dead_letter_at_max_attempts(self, bench: Bench) -> None:
        """R3, safe-7."""
        job = await bench.running(max_attempts=1)
        await bench.runtime.advance(60)
        [moved] = await bench.sweep(9)
        assert (moved.move, moved.job.status, moved.job.error) == (Move.BURY, Status.DEAD_LETTER, WORKER_LOST)
        assert await bench.claim() == []
        assert (await bench.job(job.id)).attempt == 1

    @needs(WORKFLOWS)
    async def test_a_lost_job_that_becomes_a_dead_letter_is_compensated(self, bench: Bench) -> None:
        """safe-14: exactly as for any other terminal failure."""
        job = await bench.running(max_attempts=1, on_failure=CompensationSpec(type="undo"))
        await bench.runtime.advance(60)
        await bench.sweep(9)
        undo = await bench.claim_one(types=["undo"])
        assert undo.origin is not None
        assert (undo.origin.id, undo.origin.error) == (job.id, WORKER_LOST)

    async def test_a_job_that_never_started_loses_nothing(self, bench: Bench) -> None:
        """safe-7: it was only in the worker's buffer."""
        await bench.store.register(worker_card("w"))
        ids = [await bench.add(max_crashes=1) for _ in range(3)]
        await bench.claim(3, owner="w", slots=1, first_ticket=1, started_upto=1)
        await bench.runtime.advance(60)
        moved = {each.job.id: each for each in await bench.sweep(9)}
        assert [moved[each].move for each in ids] == [Move.BURY, Move.RELEASE, Move.RELEASE]
        for each in ids[1:]:
            job = await bench.job(each)
            assert (job.status, job.attempt, job.crashes, job.error) == (Status.WAITING, 0, 0, None)

    async def test_a_later_claim_says_which_jobs_have_started_meanwhile(self, bench: Bench) -> None:
        """Every earlier ticket of this worker up to `started_upto` counts as started."""
        await bench.store.register(worker_card("w"))
        for _ in range(3):
            await bench.add()
        await bench.claim(3, owner="w", slots=1, first_ticket=1, started_upto=1)
        await bench.claim(0, owner="w", first_ticket=4, started_upto=2)
        await bench.runtime.advance(60)
        assert [moved.move for moved in await bench.sweep(9)] == [Move.LOSE, Move.LOSE, Move.RELEASE]

    async def test_jobs_of_an_unknown_worker_count_as_started(self, bench: Bench) -> None:
        """Never registered, or unregistered: its jobs count as started."""
        await bench.store.register(worker_card("gone"))
        await bench.add()
        await bench.add()
        await bench.claim_one(owner="stranger", started_upto=0)
        await bench.claim_one(owner="gone", started_upto=0)
        await bench.store.unregister("gone")
        await bench.runtime.advance(60)
        assert [moved.move for moved in await bench.sweep(9)] == [Move.LOSE, Move.LOSE]

    async def test_a_renewed_lease_is_left_alone(self, bench: Bench) -> None:
        await bench.add()
        await bench.add()
        kept, lost = await bench.claim(2, owner="me")
        await bench.runtime.advance(20)
        await bench.store.renew("me", [Renewal(seq=kept.seq, fence=kept.fence, lease_us=LEASE)])
        await bench.runtime.advance(10)
        assert [moved.job.id for moved in await bench.sweep(9)] == [lost.id]

    async def test_a_shortened_lease_is_taken_back_in_time(self, bench: Bench) -> None:
        job = await bench.running(owner="me")
        await bench.store.renew("me", [Renewal(seq=job.seq, fence=job.fence, lease_us=SECOND)])
        await bench.runtime.advance(1)
        assert [moved.job.id for moved in await bench.sweep(9)] == [job.id]

    async def test_a_settled_lease_is_left_alone(self, bench: Bench) -> None:
        job = await bench.running()
        await bench.settle(job)
        await bench.runtime.advance(60)
        assert await bench.sweep(9) == []

    async def test_a_noted_cancellation_ends_a_lost_job(self, bench: Bench) -> None:
        """R8: cancelled, never retried, and no crash counted."""
        job = await bench.running(on_failure=bench.compensation)
        await bench.store.cancel("default", [job.id], reason="r", force=False)
        await bench.runtime.advance(60)
        [moved] = await bench.sweep(9)
        assert (moved.move, moved.job.status, moved.job.crashes) == (Move.CANCEL, Status.CANCELLED, 0)
        assert await bench.claim(9) == []

    async def test_a_sweep_takes_back_the_oldest_leases_up_to_its_limit(self, bench: Bench) -> None:
        ids: list[str] = []
        for _ in range(5):
            ids.append((await bench.running()).id)
            await bench.runtime.advance(1)
        await bench.runtime.advance(60)
        taken = [[moved.job.id for moved in await bench.sweep(2)] for _ in range(4)]
        assert taken == [ids[:2], ids[2:4], ids[4:], []]

    async def test_the_holder_of_a_lost_lease_is_told(self, bench: Bench) -> None:
        """R4."""
        job = await bench.running(owner="me")
        await bench.runtime.advance(60)
        await bench.sweep(9)
        renewed = await bench.store.renew("me", [Renewal(seq=job.seq, fence=job.fence, lease_us=LEASE)])
        assert [lost.reason for lost in renewed.lost] == [LossReason.TAKEN_BY_ANOTHER_WORKER]


class DeadlineSweepContract(Contract):
    """A sweep expires waiting jobs whose deadline has passed (R7)."""

    async def test_a_waiting_job_past_its_deadline_expires(self, bench: Bench) -> None:
        job_id = await bench.add(ttl_us=HOUR)
        await bench.runtime.advance(hours=1)
        [moved] = await bench.sweep(9)
        job = await bench.job(job_id)
        assert (moved.move, moved.job) == (Move.EXPIRE, job)
        assert (job.status, job.error) == (Status.DEAD_LETTER, DEADLINE_EXCEEDED)
        assert [entry.kind for entry in await bench.history(job_id)] == ["queued", "expired"]

    async def test_delayed_retrying_and_paused_jobs_expire_too(self, bench: Bench) -> None:
        await bench.store.pause("default", "q", paused=True)
        retrying = await bench.running(ttl_us=2 * HOUR)
        await bench.settle(retrying, Move.RETRY, delay_us=HOUR)
        delayed = await bench.add(ttl_us=2 * HOUR, delay_us=HOUR)
        paused = await bench.add(ttl_us=2 * HOUR, queue="q")
        nobodys = await bench.add("unregistered", ttl_us=2 * HOUR)
        await bench.runtime.advance(hours=2)
        assert {moved.job.id for moved in await bench.sweep(9)} == {retrying.id, delayed, paused, nobodys}

    async def test_a_job_does_not_expire_before_its_deadline(self, bench: Bench) -> None:
        await bench.add(ttl_us=HOUR)
        await bench.runtime.advance(3599.999_999)
        assert await bench.sweep(9) == []

    async def test_a_running_job_past_its_deadline_is_left_to_its_holder(self, bench: Bench) -> None:
        """R7: a sweep expires it after its lease has expired, instead of letting it run again."""
        job = await bench.running(ttl_us=10 * SECOND)
        await bench.runtime.advance(20)
        assert await bench.sweep(9) == []
        await bench.runtime.advance(10)
        [moved] = await bench.sweep(9)
        assert (moved.job.id, moved.move, moved.job.error) == (job.id, Move.EXPIRE, DEADLINE_EXCEEDED)

    async def test_the_lost_attempt_of_an_expired_job_is_recorded(self, bench: Bench) -> None:
        """R7, O5: the job expired; its worker was lost only where it had started."""
        await bench.store.register(worker_card("dead"))
        started, buffered = [await bench.add(ttl_us=10 * SECOND) for _ in range(2)]
        await bench.claim(2, owner="dead", slots=1, started_upto=1)
        await bench.runtime.advance(60)
        await bench.sweep(9)
        for job_id, error in ((started, WORKER_LOST), (buffered, None)):
            trail = await bench.stored_history(job_id)
            assert (trail.job.status, trail.job.error) == (Status.DEAD_LETTER, DEADLINE_EXCEEDED)
            assert [(each.move, each.error) for each in trail.attempts] == [(Move.EXPIRE, error)]

    async def test_a_sweep_expires_no_more_jobs_than_its_limit(self, bench: Bench) -> None:
        ids = [await bench.add(ttl_us=HOUR + number) for number in range(5)]
        await bench.runtime.advance(hours=2)
        taken = [[moved.job.id for moved in await bench.sweep(2)] for _ in range(4)]
        assert taken == [ids[:2], ids[2:4], ids[4:], []]

    async def test_a_finished_job_never_expires(self, bench: Bench) -> None:
        """safe-6."""
        done = await bench.finished(ttl_us=HOUR)
        await bench.runtime.advance(hours=2)
        assert await bench.sweep(9) == []
        assert await bench.job(done.id) == done
