"""What a claim leases, and to whom."""

from __future__ import annotations

from ropewalk.domain.jobs.operations import RetryRequest
from ropewalk.domain.jobs.record import JobRecord, Progress
from ropewalk.domain.jobs.states import Move, State, Status
from ropewalk.domain.jobs.transition import EPOCH_SHIFT
from ropewalk.domain.time import SECOND
from ropewalk.ports.store.leases import Note
from ropewalk.testing.contract.base import Contract
from ropewalk.testing.contract.bench import Bench, holder
from ropewalk.testing.contract.builders import BOOM, LEASE, new_job


class ClaimContract(Contract):
    """A claim leases the jobs it was asked for, each to one worker, and writes the whole lease at once (R1, R2)."""

    async def test_a_claim_changes_everything_together(self, bench: Bench) -> None:
        """R2, safe-7: state, owner, fence, expiry, attempt and start, before user code runs."""
        job_id = await bench.add()
        await bench.runtime.advance(1)
        now = bench.runtime.now()
        claimed = await bench.claimed(owner="me", first_ticket=11)
        [job] = claimed.jobs
        assert (claimed.now, claimed.moved, claimed.next_due) == (now, [], None)
        assert (job.id, job.status, job.owner, job.ticket, job.fence) == (job_id, Status.RUNNING, "me", 11, 1)
        assert (job.attempt, job.started_at, job.lease_expires_at) == (1, now, now + LEASE)
        assert (job.rev, job.start_rev, job.updated_at, job.last_move) == (2, 2, now, Move.CLAIM)
        assert await bench.job(job_id) == job

    async def test_what_a_claim_gives_is_what_it_wrote(self, bench: Bench) -> None:
        """R2, safe-7: also of jobs with a past, with leases of their own, and in another order than submitted."""
        texts = {"callback_url": "u", "correlation_id": 'c"\\', "trace": "t", "workflow_id": "w"}
        ids = [await bench.add(id='a "b" \\c', tags={"k": "v"}, **texts), await bench.add("a", lease_us=7 * SECOND)]
        await bench.runtime.advance(1)
        for job in await bench.claim(2, owner="before"):
            await bench.store.note(Note(holder=holder(job), checkpoint=b"\0c", progress=Progress(5.0, "p", 0)))
            await bench.settle(job, Move.RETRY, error=BOOM)
        ids += [await bench.add("b", priority=9, max_attempts=None, input=b"\xff"), await bench.add(ttl_us=2 * LEASE)]
        failed = await bench.running("undo")
        await bench.settle(failed, Move.FAIL, error=BOOM)
        await bench.store.retry("default", [failed.id], RetryRequest())
        await bench.backend.raise_epoch(bench.store, 2)
        await bench.runtime.advance(1)
        jobs = await bench.claim(9, owner="me", first_ticket=5)
        assert _ids(jobs) == {*ids, failed.id}
        assert [job.ticket for job in jobs] == [5, 6, 7, 8, 9]
        assert [await bench.job(job.id) for job in jobs] == jobs

    async def test_a_line_of_last_attempts_is_given_out_one_free_slot_at_a_time(self, bench: Bench) -> None:
        """safe-7: each claim gives as many as there are free slots, in order, whatever the claim before met."""
        ids = [await bench.add(max_attempts=1) for _ in range(7)]
        given = [[job.id for job in await bench.claim(6, slots=slots)] for slots in (2, 0, 1, 3)]
        assert given == [ids[:2], [], ids[2:3], ids[3:6]]
        more = await bench.add()
        assert [job.id for job in await bench.claim(6, slots=1)] == [ids[6], more], (
            "the buffer takes what has attempts left"
        )

    async def test_changing_a_claimed_record_changes_nothing_stored(self, bench: Bench) -> None:
        """safe-5: a worker's copy changes nothing."""
        await bench.add(tags={"a": "1"})
        job = await bench.claim_one()
        job.priority = 77
        job.tags["a"] = "2"
        stored = await bench.job(job.id)
        assert (stored.priority, stored.tags) == (0, {"a": "1"})

    async def test_a_running_job_is_not_given_again(self, bench: Bench) -> None:
        """safe-4."""
        await bench.add()
        assert len(await bench.claim(5)) == 1
        assert await bench.claim(5) == []

    async def test_an_empty_store_gives_nothing(self, bench: Bench) -> None:
        claimed = await bench.claimed(5)
        assert (claimed.jobs, claimed.moved, claimed.next_due) == ([], [], None)

    async def test_a_claim_gives_no_more_than_its_limit(self, bench: Bench) -> None:
        """R2."""
        ids = [await bench.add() for _ in range(5)]
        assert [job.id for job in await bench.claim(2)] == ids[:2]
        assert await bench.claim(0) == []
        assert [job.id for job in await bench.claim(9)] == ids[2:]

    async def test_tickets_are_numbered_in_the_order_of_the_claim(self, bench: Bench) -> None:
        """safe-7: from the tickets the store knows which jobs have started and which are buffered."""
        ids = [await bench.add() for _ in range(3)]
        jobs = await bench.claim(3, first_ticket=40)
        assert [(job.id, job.ticket) for job in jobs] == list(zip(ids, (40, 41, 42), strict=True))

    async def test_fences_strictly_increase(self, bench: Bench) -> None:
        """safe-4: whatever ended the attempt before, and whoever claims."""
        await bench.add(max_attempts=None)
        fences: list[int] = []
        for number, move in enumerate((Move.RETRY, Move.DEFER, Move.RELEASE, Move.RETRY)):
            job = await bench.claim_one(owner=f"worker-{number}")
            fences.append(job.fence)
            await bench.settle(job, move)
        assert fences == sorted(set(fences))

    async def test_the_epoch_is_part_of_every_fence(self, bench: Bench) -> None:
        """safe-5: a raised epoch makes every earlier fence stale."""
        old = await bench.running()
        await bench.settle(old, Move.RELEASE)
        await bench.backend.raise_epoch(bench.store, 3)
        new = await bench.claim_one()
        assert new.fence == (3 << EPOCH_SHIFT) + 1
        await bench.settle(new, Move.RELEASE)
        assert (await bench.claim_one()).fence == new.fence + 1

    async def test_the_lease_is_per_type_and_per_job(self, bench: Bench) -> None:
        """R2: per-type lease; a job's own wins."""
        await bench.submit(new_job("a"), new_job("b"), new_job("b", lease_us=5 * SECOND))
        jobs = await bench.claim(3, lease_us={"a": 10 * SECOND, "b": 20 * SECOND})
        now = bench.runtime.now()
        assert [(job.lease_expires_at or 0) - now for job in jobs] == [10 * SECOND, 20 * SECOND, 5 * SECOND]

    async def test_a_claim_gives_only_the_types_that_it_names(self, bench: Bench) -> None:
        """R1: a type nobody registered stays where it is."""
        await bench.add("a")
        other = await bench.add("b")
        assert [job.type for job in await bench.claim(5, types=["a", "c"])] == ["a"]
        assert await bench.state(other) is State.SCHEDULED
        assert await bench.claim(5, types=[]) == []
        assert [job.id for job in await bench.claim(5, types=["b"])] == [other]

    async def test_a_claim_gives_only_jobs_of_the_queues_and_tenants_that_it_names(self, bench: Bench) -> None:
        """R1, B4: one, a list, or all."""
        for tenant in ("acme", "zeta"):
            for queue in ("mail", "maps"):
                await bench.add(id=f"{tenant}-{queue}", tenant=tenant, queue=queue)
        assert await bench.claim(9, tenants=("nobody",)) == []
        assert await bench.claim(9, queues=()) == []
        assert _ids(await bench.claim(9, tenants=("acme",), queues=("maps", "other"))) == {"acme-maps"}
        assert _ids(await bench.claim(9, queues=("mail",))) == {"acme-mail", "zeta-mail"}
        assert _ids(await bench.claim(9)) == {"zeta-maps"}

    async def test_a_paused_queue_gives_nothing_until_resumed(self, bench: Bench) -> None:
        """safe-8: of this tenant only."""
        await bench.add(id="stopped", queue="q")
        await bench.add(id="foreign", queue="q", tenant="acme")
        await bench.add(id="delayed", queue="q", delay_us=SECOND)
        await bench.store.pause("default", "q", paused=True)
        claimed = await bench.claimed(5)
        assert _ids(claimed.jobs) == {"foreign"}
        assert claimed.next_due is None, "nothing in a paused queue becomes ready"
        await bench.store.pause("default", "q", paused=False)
        assert _ids(await bench.claim(5)) == {"stopped"}

    async def test_records_of_a_newer_format_are_left_alone(self, bench: Bench) -> None:
        """B3: a worker of an older release cannot run them."""
        newer = await bench.add()
        known = await bench.add()
        await bench.backend.set_format(bench.store, "default", newer, 2)
        assert _ids(await bench.claim(5)) == {known}
        assert await bench.state(newer) is State.SCHEDULED


def _ids(jobs: list[JobRecord]) -> set[str]:
    return {job.id for job in jobs}
