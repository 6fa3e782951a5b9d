"""Manual retries of finished jobs."""

from __future__ import annotations

import pytest

from ropewalk.domain.jobs.operations import RetryRequest, RetryStatus
from ropewalk.domain.jobs.order import order_key
from ropewalk.domain.jobs.record import JobRecord
from ropewalk.domain.jobs.states import Move, State, Status
from ropewalk.domain.time import HOUR, MINUTE, SECOND
from ropewalk.ports.store.leases import Note
from ropewalk.ports.store.operations import RetryAnswer
from ropewalk.testing.contract.base import Contract
from ropewalk.testing.contract.bench import Bench, holder
from ropewalk.testing.contract.builders import BOOM

ENDS = {Move.COMPLETE: "completed", Move.FAIL: "failed", Move.BURY: "dead_letter", Move.CANCEL: "cancelled"}


class ManualRetryContract(Contract):
    """A manual retry begins a new run of a finished job under the same id (R16)."""

    @pytest.mark.parametrize("move", [Move.FAIL, Move.BURY])
    async def test_a_failed_job_starts_over(self, bench: Bench, move: Move) -> None:
        done = await _failed(bench, move)
        await bench.runtime.advance(60)
        now = bench.runtime.now()
        [answer] = await bench.store.retry("default", [done.id], RetryRequest())
        assert answer == RetryAnswer(id=done.id, status=RetryStatus.QUEUED, state=State.SCHEDULED, run_at=now)
        job = await bench.job(done.id)
        assert (job.status, job.run, job.attempt, job.crashes, job.last_move) == (Status.WAITING, 2, 0, 0, Move.RESTART)
        assert (job.run_at, job.finished_at, job.result, job.fence) == (now, None, None, done.fence)
        assert (done.owner, job.owner) == (None, None)
        assert (job.checkpoint, job.error) == (b"[1]", BOOM), "a retry keeps what the job had reached"
        assert (job.prio_key, job.time_key) == order_key(job.priority, now, job.flags)
        again = await bench.claim_one()
        assert (again.id, again.attempt, again.run) == (done.id, 1, 2)
        assert again.fence > done.fence

    async def test_a_manual_retry_can_change_delay_and_priority(self, bench: Bench) -> None:
        done = await _failed(bench)
        [answer] = await bench.store.retry("default", [done.id], RetryRequest(priority=50, delay_us=MINUTE))
        assert (answer.state, answer.run_at) == (State.DELAYED, bench.runtime.now() + MINUTE)
        job = await bench.job(done.id)
        assert job.priority == 50
        assert (job.prio_key, job.time_key) == order_key(50, job.run_at, job.flags)
        assert await bench.claim() == []

    async def test_a_fresh_retry_forgets_the_checkpoint(self, bench: Bench) -> None:
        done = await _failed(bench)
        await bench.store.retry("default", [done.id], RetryRequest(reset_attempts=False, fresh=True))
        job = await bench.job(done.id)
        assert (job.attempt, job.crashes, job.checkpoint, job.error) == (0, 0, None, None)

    async def test_without_a_reset_the_attempts_are_counted_on(self, bench: Bench) -> None:
        done = await _failed(bench)
        await bench.store.retry("default", [done.id], RetryRequest(reset_attempts=False))
        assert (await bench.claim_one()).attempt == 2

    async def test_without_a_reset_exhausted_attempts_allow_one_more(self, bench: Bench) -> None:
        """safe-7, R16: somebody asked for this start, so it is one more, and the last one again."""
        job = await bench.running(max_attempts=2)
        await bench.settle(job, Move.RETRY, error=BOOM)
        await bench.settle(await bench.claim_one(), Move.BURY, error=BOOM)
        for run in (2, 3):
            [answer] = await bench.store.retry("default", [job.id], RetryRequest(reset_attempts=False))
            assert answer.status is RetryStatus.QUEUED
            last = await bench.claim_one()
            assert (last.run, last.attempt, last.max_attempts) == (run, 2, 2)
            await bench.settle(last, Move.BURY, error=BOOM)

    async def test_without_a_reset_exhausted_crashes_allow_one_more(self, bench: Bench) -> None:
        """safe-7, R16."""
        job = await bench.running(max_attempts=None, max_crashes=1)
        for run in (2, 3):
            await bench.runtime.advance(60)
            assert [moved.move for moved in await bench.sweep(9)] == [Move.BURY]
            [answer] = await bench.store.retry("default", [job.id], RetryRequest(reset_attempts=False))
            assert answer.status is RetryStatus.QUEUED
            again = await bench.claim_one()
            assert (again.id, again.run, again.crashes) == (job.id, run, 0)

    async def test_a_cancelled_job_is_retried_only_if_asked(self, bench: Bench) -> None:
        done = await bench.finished(Move.CANCEL)
        [refused] = await bench.store.retry("default", [done.id], RetryRequest())
        assert (refused.status, refused.reason) == (RetryStatus.NOT_RETRIABLE, "state_cancelled")
        [queued] = await bench.store.retry("default", [done.id], RetryRequest(include_cancelled=True))
        assert queued.status is RetryStatus.QUEUED
        assert (await bench.job(done.id)).cancel is None

    async def test_a_retry_in_any_other_state_is_refused_and_names_it(self, bench: Bench) -> None:
        completed = await bench.finished()
        running = await bench.running()
        waiting = await bench.add()
        before = await bench.store.get("default", [completed.id, running.id, waiting])
        answers = await bench.store.retry(
            "default", [completed.id, running.id, waiting, "missing"], RetryRequest(include_cancelled=True)
        )
        assert [(answer.status, answer.reason) for answer in answers] == [
            (RetryStatus.NOT_RETRIABLE, "state_completed"),
            (RetryStatus.NOT_RETRIABLE, "state_running"),
            (RetryStatus.NOT_RETRIABLE, "state_waiting"),
            (RetryStatus.NOT_FOUND, None),
        ]
        assert await bench.store.get("default", [completed.id, running.id, waiting]) == before

    async def test_a_job_named_twice_in_one_call_is_retried_once(self, bench: Bench) -> None:
        done = await _failed(bench)
        first, second = await bench.store.retry("default", [done.id, done.id], RetryRequest())
        assert (first.status, second.status) == (RetryStatus.QUEUED, RetryStatus.NOT_RETRIABLE)
        assert (await bench.job(done.id)).run == 2

    async def test_a_retry_holds_only_for_the_run_that_its_caller_saw(self, bench: Bench) -> None:
        """R16: of several who saw the same failure one retries it, whatever became of it since."""
        done = await _failed(bench, Move.BURY)
        asked = RetryRequest(fresh=True, of_run=done.run, reason="redriven")
        [first] = await bench.store.retry("default", [done.id], asked)
        assert first.status is RetryStatus.QUEUED
        await bench.settle(await bench.claim_one(), Move.BURY, error=BOOM)
        before = await bench.job(done.id)
        [late] = await bench.store.retry("default", [done.id], asked)
        assert (late.status, late.reason) == (RetryStatus.NOT_RETRIABLE, "another_run")
        assert await bench.job(done.id) == before

    async def test_history_names_the_reason_of_a_manual_retry(self, bench: Bench) -> None:
        done = await _failed(bench)
        await bench.store.retry("default", [done.id], RetryRequest(reason="redriven"))
        trail = await bench.store.history("default", done.id)
        assert trail is not None
        assert [(event.kind, event.reason) for event in trail.events] == [("retried", "redriven")]

    async def test_a_retry_drops_a_passed_deadline_and_keeps_a_future_one(self, bench: Bench) -> None:
        """R7: keeping a passed one would bury the new run at once."""
        passed = await bench.finished(Move.FAIL, ttl_us=SECOND)
        coming = await bench.finished(Move.FAIL, ttl_us=HOUR)
        await bench.runtime.advance(5)
        await bench.store.retry("default", [passed.id, coming.id], RetryRequest())
        assert (await bench.job(passed.id)).deadline is None
        assert (await bench.job(coming.id)).deadline == coming.deadline
        await bench.runtime.advance(hours=1)
        assert [moved.job.id for moved in await bench.sweep(9)] == [coming.id]

    async def test_the_holder_of_an_earlier_run_cannot_settle_the_new_one(self, bench: Bench) -> None:
        """safe-5: across runs."""
        job = await bench.running()
        await bench.settle(job, Move.FAIL)
        await bench.store.retry("default", [job.id], RetryRequest())
        assert (await bench.settle(job)).lost is not None
        await bench.claim_one()
        assert (await bench.settle(job)).lost is not None


async def _failed(bench: Bench, move: Move = Move.FAIL) -> JobRecord:
    """A job that had reached a checkpoint before it failed."""
    job = await bench.running()
    await bench.store.note(Note(holder=holder(job), checkpoint=b"[1]"))
    await bench.settle(job, move, error=BOOM)
    return await bench.job(job.id)
