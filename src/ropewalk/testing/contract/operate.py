"""What people do to jobs: cancel, retry, change, trigger, delete, pause."""

from __future__ import annotations

import pytest
from msgspec import structs

from ropewalk.domain.instants import HOUR, MINUTE, SECOND
from ropewalk.domain.job import CancelRequest, JobRecord
from ropewalk.domain.operator import Amendment, CancelStatus, RetryStatus, Revival
from ropewalk.domain.order import order_key
from ropewalk.domain.states import Move, State, Status
from ropewalk.ports.store import AmendAnswer, CancelAnswer, Note, ReviveAnswer
from ropewalk.testing.contract.base import Contract
from ropewalk.testing.contract.bench import Bench, holder
from ropewalk.testing.contract.build import BOOM

ENDS = {Move.COMPLETE: "completed", Move.FAIL: "failed", Move.BURY: "dead_letter", Move.CANCEL: "cancelled"}


class CancelContract(Contract):
    """R8, safe-13."""

    @pytest.mark.parametrize(("delay_us", "previous"), [(0, State.SCHEDULED), (HOUR, State.DELAYED)])
    async def test_a_waiting_job_is_cancelled_at_once(self, bench: Bench, delay_us: int, previous: State) -> None:
        job_id = await bench.add(delay_us=delay_us)
        await bench.runtime.advance(5)
        assert await _cancel(bench, job_id, reason="why") == CancelAnswer(
            id=job_id, status=CancelStatus.CANCELLED, previous=previous
        )
        job = await bench.job(job_id)
        now = bench.runtime.now()
        assert (job.status, job.finished_at, job.last_move) == (Status.CANCELLED, now, Move.CANCEL)
        assert job.cancel == CancelRequest("why", force=False, at=now)
        await bench.runtime.advance(hours=2)
        assert await bench.claim() == []

    async def test_a_retrying_job_is_cancelled_at_once(self, bench: Bench) -> None:
        job = await bench.running()
        await bench.settle(job, Move.RETRY, delay_us=HOUR)
        assert (await _cancel(bench, job.id)).previous is State.RETRYING
        assert await bench.status(job.id) is Status.CANCELLED

    async def test_a_running_job_is_asked(self, bench: Bench) -> None:
        """The holder decides; it stays running until then."""
        job = await bench.running()
        answer = await _cancel(bench, job.id, reason="please")
        assert answer == CancelAnswer(id=job.id, status=CancelStatus.CANCEL_REQUESTED, previous=State.RUNNING)
        seen = await bench.job(job.id)
        assert seen.cancel == CancelRequest("please", force=False, at=bench.runtime.now())
        assert (seen.status, seen.owner, seen.fence, seen.rev) == (Status.RUNNING, job.owner, job.fence, job.rev + 1)

    async def test_a_request_can_only_become_stronger(self, bench: Bench) -> None:
        job = await bench.running()
        await _cancel(bench, job.id, reason="first")
        noted = await bench.job(job.id)
        await _cancel(bench, job.id, reason="second")
        assert await bench.job(job.id) == noted, "the same again changes nothing"
        await _cancel(bench, job.id, reason="third", force=True)
        forced = await bench.job(job.id)
        assert forced.cancel == CancelRequest("third", force=True, at=bench.runtime.now())
        await _cancel(bench, job.id, reason="fourth", force=False)
        assert await bench.job(job.id) == forced

    @pytest.mark.parametrize(("move", "state"), ENDS.items())
    async def test_a_finished_job_refuses(self, bench: Bench, move: Move, state: str) -> None:
        done = await bench.finished(move)
        answer = await _cancel(bench, done.id, force=True)
        assert answer == CancelAnswer(id=done.id, status=CancelStatus.ALREADY_COMPLETE, previous=State(state))
        assert await bench.job(done.id) == done

    async def test_many_are_answered_in_order_and_independently(self, bench: Bench) -> None:
        done = await bench.finished()
        running = await bench.running()
        waiting = await bench.add()
        answers = await bench.store.cancel(
            "default", [waiting, "missing", done.id, running.id, waiting], reason=None, force=False
        )
        assert [(answer.id, answer.status) for answer in answers] == [
            (waiting, CancelStatus.CANCELLED),
            ("missing", CancelStatus.NOT_FOUND),
            (done.id, CancelStatus.ALREADY_COMPLETE),
            (running.id, CancelStatus.CANCEL_REQUESTED),
            (waiting, CancelStatus.ALREADY_COMPLETE),
        ]
        assert answers[1].previous is None
        assert await bench.store.cancel("default", [], reason=None, force=False) == []


class ReviveContract(Contract):
    """R16: a new run of a finished job, under the same id."""

    @pytest.mark.parametrize("move", [Move.FAIL, Move.BURY])
    async def test_a_failed_job_starts_over(self, bench: Bench, move: Move) -> None:
        done = await _failed(bench, move)
        await bench.runtime.advance(60)
        now = bench.runtime.now()
        [answer] = await bench.store.revive("default", [done.id], Revival())
        assert answer == ReviveAnswer(id=done.id, status=RetryStatus.QUEUED, state=State.SCHEDULED, run_at=now)
        job = await bench.job(done.id)
        assert (job.status, job.run, job.attempt, job.crashes, job.last_move) == (Status.WAITING, 2, 0, 0, Move.REVIVE)
        assert (job.run_at, job.finished_at, job.result, job.fence) == (now, None, None, done.fence)
        assert (job.checkpoint, job.error) == (b"[1]", BOOM), "a retry keeps what the job had reached"
        assert (job.prio_key, job.time_key) == order_key(job.priority, now, job.flags)
        again = await bench.claim_one()
        assert (again.id, again.attempt, again.run) == (done.id, 1, 2)
        assert again.fence > done.fence

    async def test_delay_and_priority(self, bench: Bench) -> None:
        done = await _failed(bench)
        [answer] = await bench.store.revive("default", [done.id], Revival(priority=50, delay_us=MINUTE))
        assert (answer.state, answer.run_at) == (State.DELAYED, bench.runtime.now() + MINUTE)
        job = await bench.job(done.id)
        assert job.priority == 50
        assert (job.prio_key, job.time_key) == order_key(50, job.run_at, job.flags)
        assert await bench.claim() == []

    async def test_fresh_forgets_what_was_reached(self, bench: Bench) -> None:
        done = await _failed(bench)
        await bench.store.revive("default", [done.id], Revival(reset_attempts=False, fresh=True))
        job = await bench.job(done.id)
        assert (job.attempt, job.crashes, job.checkpoint, job.error) == (0, 0, None, None)

    async def test_without_reset_the_budget_goes_on(self, bench: Bench) -> None:
        done = await _failed(bench)
        await bench.store.revive("default", [done.id], Revival(reset_attempts=False))
        assert (await bench.claim_one()).attempt == 2

    async def test_without_reset_an_exhausted_budget_refuses(self, bench: Bench) -> None:
        """safe-7."""
        attempts = await bench.finished(Move.BURY, max_attempts=1)
        crashed = await bench.running(max_attempts=None, max_crashes=1)
        await bench.runtime.advance(60)
        await bench.store.sweep(9)
        answers = await bench.store.revive("default", [attempts.id, crashed.id], Revival(reset_attempts=False))
        assert [(answer.status, answer.reason) for answer in answers] == [
            (RetryStatus.NOT_RETRIABLE, "attempts_exhausted"),
            (RetryStatus.NOT_RETRIABLE, "crashes_exhausted"),
        ]
        again = await bench.store.revive("default", [attempts.id, crashed.id], Revival())
        assert [answer.status for answer in again] == [RetryStatus.QUEUED] * 2

    async def test_a_cancelled_job_only_if_asked(self, bench: Bench) -> None:
        done = await bench.finished(Move.CANCEL)
        [refused] = await bench.store.revive("default", [done.id], Revival())
        assert (refused.status, refused.reason) == (RetryStatus.NOT_RETRIABLE, "state_cancelled")
        [queued] = await bench.store.revive("default", [done.id], Revival(include_cancelled=True))
        assert queued.status is RetryStatus.QUEUED
        assert (await bench.job(done.id)).cancel is None

    async def test_other_states_refuse_and_say_so(self, bench: Bench) -> None:
        completed = await bench.finished()
        running = await bench.running()
        waiting = await bench.add()
        before = await bench.store.get("default", [completed.id, running.id, waiting])
        answers = await bench.store.revive(
            "default", [completed.id, running.id, waiting, "missing"], Revival(include_cancelled=True)
        )
        assert [(answer.status, answer.reason) for answer in answers] == [
            (RetryStatus.NOT_RETRIABLE, "state_completed"),
            (RetryStatus.NOT_RETRIABLE, "state_running"),
            (RetryStatus.NOT_RETRIABLE, "state_waiting"),
            (RetryStatus.NOT_FOUND, None),
        ]
        assert await bench.store.get("default", [completed.id, running.id, waiting]) == before

    async def test_the_same_job_twice_in_one_call(self, bench: Bench) -> None:
        done = await _failed(bench)
        first, second = await bench.store.revive("default", [done.id, done.id], Revival())
        assert (first.status, second.status) == (RetryStatus.QUEUED, RetryStatus.NOT_RETRIABLE)
        assert (await bench.job(done.id)).run == 2

    async def test_a_passed_deadline_is_dropped_a_coming_one_kept(self, bench: Bench) -> None:
        """R7: keeping a passed one would bury the new run at once."""
        passed = await bench.finished(Move.FAIL, ttl_us=SECOND)
        coming = await bench.finished(Move.FAIL, ttl_us=HOUR)
        await bench.runtime.advance(5)
        await bench.store.revive("default", [passed.id, coming.id], Revival())
        assert (await bench.job(passed.id)).deadline is None
        assert (await bench.job(coming.id)).deadline == coming.deadline
        await bench.runtime.advance(hours=1)
        assert [moved.job.id for moved in await bench.store.sweep(9)] == [coming.id]

    async def test_the_old_holder_stays_out(self, bench: Bench) -> None:
        """safe-5: across runs."""
        job = await bench.running()
        await bench.settle(job, Move.FAIL)
        await bench.store.revive("default", [job.id], Revival())
        assert (await bench.settle(job)).lost is not None
        await bench.claim_one()
        assert (await bench.settle(job)).lost is not None


class AmendContract(Contract):
    """R16: trigger and update, on a waiting job only."""

    async def test_input_priority_and_time(self, bench: Bench) -> None:
        job_id = await bench.add(delay_us=HOUR)
        before = await bench.job(job_id)
        await bench.runtime.advance(5)
        now = bench.runtime.now()
        answer = await bench.store.amend("default", job_id, Amendment(input=b"[2]", priority=7, run_at=now + MINUTE))
        job = await bench.job(job_id)
        assert answer == AmendAnswer(id=job_id, job=job, state=State.DELAYED)
        assert (job.input, job.priority, job.run_at) == (b"[2]", 7, now + MINUTE)
        assert (job.prio_key, job.time_key) == order_key(7, now + MINUTE, job.flags)
        assert (job.rev, job.updated_at, job.status) == (before.rev + 1, now, Status.WAITING)

    async def test_what_is_not_named_stays(self, bench: Bench) -> None:
        job_id = await bench.add(delay_us=HOUR, priority=3, input=b"[1]")
        before = await bench.job(job_id)
        await bench.store.amend("default", job_id, Amendment(input=b"[2]"))
        after = await bench.job(job_id)
        assert after == structs.replace(before, input=b"[2]", rev=before.rev + 1)

    async def test_a_triggered_job_runs_now(self, bench: Bench) -> None:
        job_id = await bench.add(delay_us=HOUR)
        answer = await bench.store.amend("default", job_id, Amendment(run_now=True))
        assert answer.state is State.SCHEDULED
        assert (await bench.claim_one()).id == job_id
        assert (await bench.history(job_id))[1].kind == "triggered"

    async def test_a_time_in_the_past_clamps_to_now(self, bench: Bench) -> None:
        job_id = await bench.add(delay_us=HOUR)
        await bench.store.amend("default", job_id, Amendment(run_at=0))
        assert (await bench.job(job_id)).run_at == bench.runtime.now()

    async def test_a_postponed_job_waits(self, bench: Bench) -> None:
        """safe-8."""
        job_id = await bench.add()
        await bench.store.amend("default", job_id, Amendment(run_at=bench.runtime.now() + MINUTE))
        claimed = await bench.claimed()
        assert (claimed.jobs, claimed.next_due) == ([], bench.runtime.now() + MINUTE)
        await bench.runtime.advance(60)
        assert (await bench.claim_one()).id == job_id

    async def test_a_new_priority_changes_the_order(self, bench: Bench) -> None:
        """S3: an older entry of the job must not come first."""
        ids = [await bench.add() for _ in range(3)]
        await bench.store.amend("default", ids[2], Amendment(priority=5))
        await bench.store.amend("default", ids[0], Amendment(priority=-5))
        assert [job.id for job in await bench.claim(9)] == [ids[2], ids[1], ids[0]]

    @pytest.mark.parametrize(("move", "state"), ENDS.items())
    async def test_a_finished_job_is_not_amended(self, bench: Bench, move: Move, state: str) -> None:
        done = await bench.finished(move)
        answer = await bench.store.amend("default", done.id, Amendment(priority=5, run_now=True))
        assert answer == AmendAnswer(id=done.id, job=None, state=State(state))
        assert await bench.job(done.id) == done

    async def test_a_running_or_missing_job_is_not_amended(self, bench: Bench) -> None:
        job = await bench.running()
        assert await bench.store.amend("default", job.id, Amendment(run_now=True)) == AmendAnswer(
            id=job.id, state=State.RUNNING
        )
        assert await bench.job(job.id) == job
        assert await bench.store.amend("default", "missing", Amendment()) == AmendAnswer(id="missing")


class DeleteContract(Contract):
    """model.md, delete: terminal jobs only, with everything recorded about them."""

    @pytest.mark.parametrize("move", list(ENDS))
    async def test_a_finished_job_is_gone(self, bench: Bench, move: Move) -> None:
        done = await bench.finished(move)
        assert await bench.store.delete("default", [done.id]) == {done.id: True}
        assert await bench.find(done.id) is None
        assert await bench.store.trail("default", done.id) is None
        assert await bench.store.delete("default", [done.id]) == {done.id: None}

    async def test_a_live_job_stays(self, bench: Bench) -> None:
        running = await bench.running()
        waiting = await bench.add()
        delayed = await bench.add(delay_us=HOUR)
        ids = [running.id, waiting, delayed]
        assert await bench.store.delete("default", [*ids, "missing"]) == {**dict.fromkeys(ids, False), "missing": None}
        assert len((await bench.store.get("default", ids)).jobs) == 3

    async def test_its_id_is_free_again_and_its_past_forgotten(self, bench: Bench) -> None:
        job = await bench.running(id="again", input=b"[1]")
        await bench.settle(job, Move.FAIL, error=BOOM)
        await bench.store.delete("default", ["again"])
        await bench.add(id="again", input=b"[2]")
        trail = await bench.trail("again")
        assert (trail.job.rev, trail.attempts, trail.events) == (1, [], [])
        assert trail.job.seq > job.seq, "numbers are never used twice"

    async def test_the_same_id_twice_in_one_call(self, bench: Bench) -> None:
        done = await bench.finished()
        assert await bench.store.delete("default", [done.id, done.id]) == {done.id: True}
        assert await bench.store.delete("default", []) == {}


class PauseContract(Contract):
    """R19."""

    async def test_running_jobs_go_on(self, bench: Bench) -> None:
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


async def _cancel(bench: Bench, job_id: str, *, reason: str | None = None, force: bool = False) -> CancelAnswer:
    [answer] = await bench.store.cancel("default", [job_id], reason=reason, force=force)
    return answer


async def _failed(bench: Bench, move: Move = Move.FAIL) -> JobRecord:
    """A job that had reached a checkpoint before it failed."""
    job = await bench.running()
    await bench.store.note(Note(holder=holder(job), checkpoint=b"[1]"))
    await bench.settle(job, move, error=BOOM)
    return await bench.job(job.id)
