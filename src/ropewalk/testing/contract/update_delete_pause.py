"""Updating, triggering and deleting jobs, and pausing queues."""

from __future__ import annotations

import asyncio

import pytest
from msgspec import structs

from ropewalk.domain.jobs.operations import UpdateRequest
from ropewalk.domain.jobs.order import order_key
from ropewalk.domain.jobs.states import Move, State, Status
from ropewalk.domain.time import HOUR, MINUTE
from ropewalk.ports.store.operations import Deletion, UpdateAnswer
from ropewalk.testing.contract.base import Contract
from ropewalk.testing.contract.bench import Bench
from ropewalk.testing.contract.builders import BOOM

ENDS = {Move.COMPLETE: "completed", Move.FAIL: "failed", Move.BURY: "dead_letter", Move.CANCEL: "cancelled"}


class UpdateContract(Contract):
    """Only a waiting job can be updated or triggered (R16)."""

    async def test_an_update_changes_input_priority_and_time(self, bench: Bench) -> None:
        job_id = await bench.add(delay_us=HOUR)
        before = await bench.job(job_id)
        await bench.runtime.advance(5)
        now = bench.runtime.now()
        answer = await bench.store.update(
            "default", job_id, UpdateRequest(input=b"[2]", priority=7, run_at=now + MINUTE)
        )
        job = await bench.job(job_id)
        assert answer == UpdateAnswer(id=job_id, job=job, state=State.DELAYED)
        assert (job.input, job.priority, job.run_at) == (b"[2]", 7, now + MINUTE)
        assert (job.prio_key, job.time_key) == order_key(7, now + MINUTE, job.flags)
        assert (job.rev, job.updated_at, job.status) == (before.rev + 1, now, Status.WAITING)

    async def test_an_update_keeps_what_it_does_not_name(self, bench: Bench) -> None:
        job_id = await bench.add(delay_us=HOUR, priority=3, input=b"[1]")
        before = await bench.job(job_id)
        await bench.store.update("default", job_id, UpdateRequest(input=b"[2]"))
        after = await bench.job(job_id)
        assert after == structs.replace(before, input=b"[2]", rev=before.rev + 1)

    async def test_a_triggered_job_runs_now(self, bench: Bench) -> None:
        job_id = await bench.add(delay_us=HOUR)
        answer = await bench.store.update("default", job_id, UpdateRequest(run_now=True))
        assert answer.state is State.SCHEDULED
        assert (await bench.claim_one()).id == job_id
        assert (await bench.history(job_id))[1].kind == "triggered"

    async def test_an_updated_time_in_the_past_becomes_now(self, bench: Bench) -> None:
        job_id = await bench.add(delay_us=HOUR)
        await bench.store.update("default", job_id, UpdateRequest(run_at=0))
        assert (await bench.job(job_id)).run_at == bench.runtime.now()

    async def test_a_postponed_job_waits(self, bench: Bench) -> None:
        """safe-8."""
        job_id = await bench.add()
        await bench.store.update("default", job_id, UpdateRequest(run_at=bench.runtime.now() + MINUTE))
        claimed = await bench.claimed()
        assert (claimed.jobs, claimed.next_due) == ([], bench.runtime.now() + MINUTE)
        await bench.runtime.advance(60)
        assert (await bench.claim_one()).id == job_id

    async def test_an_updated_priority_changes_the_order(self, bench: Bench) -> None:
        """S3: an older entry of the job must not come first."""
        ids = [await bench.add() for _ in range(3)]
        await bench.store.update("default", ids[2], UpdateRequest(priority=5))
        await bench.store.update("default", ids[0], UpdateRequest(priority=-5))
        assert [job.id for job in await bench.claim(9)] == [ids[2], ids[1], ids[0]]

    @pytest.mark.parametrize(("move", "state"), ENDS.items())
    async def test_a_finished_job_is_not_updated(self, bench: Bench, move: Move, state: str) -> None:
        done = await bench.finished(move)
        answer = await bench.store.update("default", done.id, UpdateRequest(priority=5, run_now=True))
        assert answer == UpdateAnswer(id=done.id, job=None, state=State(state))
        assert await bench.job(done.id) == done

    async def test_an_update_of_another_rev_changes_nothing(self, bench: Bench) -> None:
        """The caller has seen an older state of the job, or a newer one that is no longer there."""
        job_id = await bench.add(delay_us=HOUR)
        first = await bench.store.update("default", job_id, UpdateRequest(priority=5, if_rev=1))
        assert first.job is not None
        assert (first.job.rev, first.rev) == (2, None)
        before = await bench.job(job_id)
        for seen in (1, 3):
            request = UpdateRequest(input=b"[2]", priority=7, run_now=True, if_rev=seen)
            answer = await bench.store.update("default", job_id, request)
            assert answer == UpdateAnswer(id=job_id, job=None, state=State.DELAYED, rev=2)
        assert await bench.job(job_id) == before
        same = await bench.store.update("default", job_id, UpdateRequest(priority=5, if_rev=1))
        assert same.rev == 2, "an update that would change nothing is refused, too"

    async def test_of_updates_of_one_rev_a_single_one_happens(self, bench: Bench) -> None:
        """The store compares and changes in one transaction."""
        job_id, other = await bench.add(delay_us=HOUR), await bench.second()
        answers = await asyncio.gather(
            *(
                each.store.update("default", job_id, UpdateRequest(priority=priority, if_rev=1))
                for priority in range(1, 9)
                for each in (bench, other)
            )
        )
        done = [answer.job for answer in answers if answer.job is not None]
        assert [job.rev for job in done] == [2]
        assert await bench.job(job_id) == done[0]

    async def test_a_job_that_does_not_wait_says_so_whatever_its_rev(self, bench: Bench) -> None:
        job = await bench.running()
        answer = await bench.store.update("default", job.id, UpdateRequest(priority=1, if_rev=99))
        assert answer == UpdateAnswer(id=job.id, state=State.RUNNING)

    async def test_a_running_or_missing_job_is_not_updated(self, bench: Bench) -> None:
        job = await bench.running()
        assert await bench.store.update("default", job.id, UpdateRequest(run_now=True)) == UpdateAnswer(
            id=job.id, state=State.RUNNING
        )
        assert await bench.job(job.id) == job
        assert await bench.store.update("default", "missing", UpdateRequest()) == UpdateAnswer(id="missing")


class DeleteContract(Contract):
    """Only a finished job can be deleted, and everything recorded about it is deleted with it (R16)."""

    @pytest.mark.parametrize("move", list(ENDS))
    async def test_a_deleted_job_is_gone(self, bench: Bench, move: Move) -> None:
        done = await bench.finished(move)
        assert await bench.store.delete("default", [done.id]) == {done.id: Deletion.DELETED}
        assert await bench.find(done.id) is None
        assert await bench.store.history("default", done.id) is None
        assert await bench.store.delete("default", [done.id]) == {done.id: Deletion.NOT_FOUND}

    async def test_a_job_that_has_not_ended_cannot_be_deleted(self, bench: Bench) -> None:
        running = await bench.running()
        waiting = await bench.add()
        delayed = await bench.add(delay_us=HOUR)
        ids = [running.id, waiting, delayed]
        assert await bench.store.delete("default", [*ids, "missing"]) == {
            **dict.fromkeys(ids, Deletion.NOT_TERMINAL),
            "missing": Deletion.NOT_FOUND,
        }
        assert len((await bench.store.get("default", ids)).jobs) == 3

    async def test_the_id_of_a_deleted_job_is_free_and_its_history_gone(self, bench: Bench) -> None:
        job = await bench.running(id="again", input=b"[1]")
        await bench.settle(job, Move.FAIL, error=BOOM)
        await bench.store.delete("default", ["again"])
        await bench.add(id="again", input=b"[2]")
        trail = await bench.stored_history("again")
        assert (trail.job.rev, trail.attempts, trail.events) == (1, [], [])
        assert trail.job.seq > job.seq, "numbers are never used twice"

    async def test_an_id_named_twice_in_one_call_is_deleted_once(self, bench: Bench) -> None:
        done = await bench.finished()
        assert await bench.store.delete("default", [done.id, done.id]) == {done.id: Deletion.DELETED}
        assert await bench.store.delete("default", []) == {}


class PauseContract(Contract):
    """A paused queue gives out no jobs until it is resumed, and its running jobs continue (R19)."""

    async def test_running_jobs_of_a_paused_queue_continue(self, bench: Bench) -> None:
        job = await bench.running()
        await bench.store.pause("default", "default", paused=True)
        assert (await bench.settle(job, Move.RETRY)).move is Move.RETRY
        assert await bench.claim() == []
        await bench.store.pause("default", "default", paused=False)
        assert (await bench.claim_one()).id == job.id

    async def test_pausing_twice_or_resuming_what_runs_is_harmless(self, bench: Bench) -> None:
        for paused in (False, True, True, False):
            await bench.store.pause("default", "q", paused=paused)
        await bench.add(queue="q")
        assert len(await bench.claim()) == 1

    async def test_a_queue_can_be_paused_before_it_has_jobs(self, bench: Bench) -> None:
        await bench.store.pause("default", "q", paused=True)
        job_id = await bench.add(queue="q")
        assert await bench.claim() == []
        assert await bench.state(job_id) is State.SCHEDULED
