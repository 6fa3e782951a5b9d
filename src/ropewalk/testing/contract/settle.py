"""Settling attempts, and everything that is written together with their outcomes."""

from __future__ import annotations

import pytest
from msgspec import structs

from ropewalk.domain.failure import DEADLINE_EXCEEDED, Category, ErrorInfo
from ropewalk.domain.jobs.lease import LossReason
from ropewalk.domain.jobs.order import order_key
from ropewalk.domain.jobs.quarantine import Suspects
from ropewalk.domain.jobs.record import AttemptRecord
from ropewalk.domain.jobs.states import GIVES_ATTEMPT_BACK, KEEPS_ITS_PLACE, SETTLING, TERMINAL, Move, Status
from ropewalk.domain.time import HOUR, MINUTE, SECOND
from ropewalk.testing.contract.base import Contract
from ropewalk.testing.contract.bench import Bench
from ropewalk.testing.contract.builders import BOOM, settlement

every_move = pytest.mark.parametrize("move", list(SETTLING))
every_failure = pytest.mark.parametrize("move", [Move.FAIL, Move.BURY, Move.EXPIRE])
back_to_waiting = pytest.mark.parametrize("move", [move for move, after in SETTLING.items() if after is Status.WAITING])
keeps_its_place = pytest.mark.parametrize("move", sorted(KEEPS_ITS_PLACE))


class SettleContract(Contract):
    """Each outcome of an attempt moves the job and records what the attempt left (R6)."""

    @every_move
    async def test_every_move_leads_to_the_status_that_the_table_names(self, bench: Bench, move: Move) -> None:
        """safe-2, safe-6: and the lease is over. Only a completed job still names its worker."""
        job = await bench.running(owner="me")
        await bench.runtime.advance(3)
        now = bench.runtime.now()
        answer = await bench.settle(job, move)
        assert (answer.seq, answer.fence, answer.move, answer.lost) == (job.seq, job.fence, move, None)
        after = await bench.job(job.id)
        assert after.status is SETTLING[move]
        assert (after.lease_expires_at, after.last_move) == (None, move)
        assert after.owner == ("me" if move is Move.COMPLETE else None)
        assert (after.rev, after.updated_at) == (job.rev + 1, now)
        assert after.finished_at == (now if after.status in TERMINAL else None)
        assert after.attempt == (0 if move in GIVES_ATTEMPT_BACK else 1)
        assert answer.job == (None if move is Move.COMPLETE else after)

    @every_move
    async def test_everything_but_success_leaves_an_attempt_record(self, bench: Bench, move: Move) -> None:
        """safe-16: failure details per attempt."""
        job = await bench.running(owner="me")
        await bench.runtime.advance(3)
        await bench.settle(job, move, error=BOOM)
        trail = await bench.stored_history(job.id)
        if move is Move.COMPLETE:
            assert trail.attempts == []
            return
        next_run_at = None
        if SETTLING[move] is Status.WAITING:
            next_run_at = job.run_at if move in KEEPS_ITS_PLACE else bench.runtime.now()
        assert trail.attempts == [
            AttemptRecord(
                seq=job.seq,
                fence=job.fence,
                run=1,
                attempt=1,
                move=move,
                start_rev=job.rev,
                rev=job.rev + 1,
                started_at=job.started_at or 0,
                ended_at=bench.runtime.now(),
                owner="me",
                error=BOOM,
                next_run_at=next_run_at,
            )
        ]
        assert trail.job.error == (DEADLINE_EXCEEDED if move is Move.EXPIRE else BOOM)

    async def test_a_completion_keeps_its_result_and_forgets_an_earlier_error(self, bench: Bench) -> None:
        """O2."""
        job = await bench.running()
        await bench.settle(job, Move.RETRY, error=BOOM)
        assert (await bench.job(job.id)).error == BOOM
        await bench.settle(await bench.claim_one(), result=b'{"n":1}')
        done = await bench.job(job.id)
        assert (done.result, done.error, done.attempt) == (b'{"n":1}', None, 2)

    async def test_a_completion_without_a_result(self, bench: Bench) -> None:
        job = await bench.finished()
        assert (job.status, job.result) == (Status.COMPLETED, None)

    async def test_every_field_of_an_error_is_kept(self, bench: Bench) -> None:
        """O5."""
        error = ErrorInfo(
            category=Category.RATE_LIMITED,
            message="slow down — ☃",
            code="429",
            type="TooMany",
            traceback="Traceback …\n  line\n",
            context={"host": "example.org"},
            worker="w",
            host="h",
            duration_us=12,
        )
        job = await bench.running()
        await bench.settle(job, Move.FAIL, error=error)
        trail = await bench.stored_history(job.id)
        assert trail.job.error == error
        assert trail.attempts[0].error == error

    async def test_a_large_result_is_kept_exactly(self, bench: Bench) -> None:
        """S9: up to a mebibyte."""
        large = bytes(range(256)) * 4096
        job = await bench.running(input=large)
        await bench.settle(job, result=large)
        done = await bench.job(job.id)
        assert (done.input, done.result) == (large, large)

    @back_to_waiting
    async def test_a_retried_job_waits_for_its_delay_by_the_clock_of_the_store(self, bench: Bench, move: Move) -> None:
        """R5, R6: and is ordered by its new time."""
        job = await bench.running(priority=4)
        await bench.runtime.advance(7)
        await bench.settle(job, move, delay_us=5 * SECOND)
        after = await bench.job(job.id)
        assert after.run_at == bench.runtime.now() + 5 * SECOND
        assert (after.prio_key, after.time_key) == order_key(4, after.run_at, after.flags)
        assert await bench.claim() == []
        await bench.runtime.advance(5)
        assert (await bench.claim_one()).id == job.id

    async def test_a_deferral_may_name_a_time(self, bench: Bench) -> None:
        """R6: it wins over the delay, and clamps to now."""
        now = bench.runtime.now()
        job = await bench.running(max_attempts=1)
        await bench.settle(job, Move.DEFER, run_at=now + HOUR, delay_us=SECOND)
        after = await bench.job(job.id)
        assert (after.run_at, after.attempt) == (now + HOUR, 0)
        await bench.runtime.advance(hours=1)
        await bench.settle(await bench.claim_one(), Move.DEFER, run_at=now)
        assert (await bench.job(job.id)).run_at == now + HOUR

    async def test_deferring_is_unlimited(self, bench: Bench) -> None:
        """R6: the attempt is given back every time."""
        await bench.add(max_attempts=1)
        for _ in range(5):
            await bench.settle(await bench.claim_one(), Move.DEFER)
        job = await bench.claim_one()
        assert (job.attempt, job.fence) == (1, 6)

    async def test_a_crash_of_the_handlers_process_counts(self, bench: Bench) -> None:
        """R20: settled by a living worker, it makes the job a suspect all the same."""
        job = await bench.running()
        answer = await bench.settle(job, Move.LOSE, error=BOOM, crashed=True)
        assert answer.job is not None
        assert (answer.job.crashes, answer.job.attempt, answer.job.status) == (1, 1, Status.WAITING)
        assert await bench.claim(suspects=Suspects(1, 1)) == []
        assert (await bench.claim_one()).crashes == 1


class SettleBatchContract(Contract):
    """One call settles hundreds of attempts, independently of one another, and answers in order (R2)."""

    async def test_a_batch_of_settlements_is_answered_in_order(self, bench: Bench) -> None:
        ids = [await bench.add() for _ in range(4)]
        a, b, c, d = await bench.claim(4, owner="me")
        answers = await bench.settle_all(
            "me",
            [
                settlement(d, Move.FAIL, error=BOOM),
                settlement(a, result=b"1"),
                structs.replace(settlement(c), fence=99),
                settlement(b, Move.RETRY, delay_us=SECOND),
            ],
        )
        assert [(answer.seq, answer.move, answer.lost) for answer in answers] == [
            (d.seq, Move.FAIL, None),
            (a.seq, Move.COMPLETE, None),
            (c.seq, None, LossReason.TAKEN_BY_ANOTHER_WORKER),
            (b.seq, Move.RETRY, None),
        ]
        statuses = [await bench.status(each) for each in ids]
        assert statuses == [Status.COMPLETED, Status.WAITING, Status.RUNNING, Status.FAILED]

    async def test_an_empty_batch_of_settlements_is_accepted(self, bench: Bench) -> None:
        assert await bench.settle_all("me", []) == []

    async def test_a_large_batch_of_settlements_is_accepted(self, bench: Bench) -> None:
        ids = [await bench.add() for _ in range(600)]
        jobs = await bench.claim(600, owner="me")
        answers = await bench.settle_all("me", [settlement(job, result=job.id.encode()) for job in jobs])
        assert all(answer.move is Move.COMPLETE for answer in answers)
        done = (await bench.store.get("default", ids)).jobs
        assert all(done[each].result == each.encode() for each in ids)


class StoreDecisionContract(Contract):
    """The store decides under its lock whether a requested cancellation or a passed deadline changes an outcome (R7,
    R8).
    """

    async def test_a_completion_beats_a_noted_cancellation(self, bench: Bench) -> None:
        """safe-13: the handler returned."""
        job = await bench.running()
        await bench.store.cancel("default", [job.id], reason="stop", force=True)
        assert (await bench.settle(job, result=b"1")).move is Move.COMPLETE
        done = await bench.job(job.id)
        assert (done.status, done.result) == (Status.COMPLETED, b"1")

    @pytest.mark.parametrize("move", [move for move in SETTLING if move is not Move.COMPLETE])
    async def test_a_noted_cancellation_beats_everything_but_a_completion(self, bench: Bench, move: Move) -> None:
        """R8: never retried."""
        job = await bench.running(on_failure=bench.compensation)
        await bench.store.cancel("default", [job.id], reason="stop", force=False)
        answer = await bench.settle(job, move, error=BOOM)
        assert answer.move is Move.CANCEL
        after = await bench.job(job.id)
        assert answer.job == after
        assert (after.status, after.finished_at) == (Status.CANCELLED, bench.runtime.now())
        assert after.cancel is not None
        assert after.cancel.reason == "stop"
        assert await bench.claim(9) == [], "and not compensated"

    @back_to_waiting
    async def test_a_next_start_past_the_deadline_expires_now(self, bench: Bench, move: Move) -> None:
        """R7, R6: deferring is bounded by the deadline."""
        job = await bench.running(ttl_us=MINUTE)
        answer = await bench.settle(job, move, delay_us=MINUTE)
        assert answer.move is Move.EXPIRE
        after = await bench.job(job.id)
        assert (after.status, after.error) == (Status.DEAD_LETTER, DEADLINE_EXCEEDED)

    @back_to_waiting
    @pytest.mark.parametrize("error", [BOOM, None], ids=["an error", "none"])
    async def test_an_expired_job_keeps_the_error_of_its_attempt_in_the_history(
        self, bench: Bench, move: Move, error: ErrorInfo | None
    ) -> None:
        """R7, O5: the job itself has the error `deadline exceeded`."""
        job = await bench.running(ttl_us=MINUTE)
        await bench.settle(job, move, error=error, delay_us=MINUTE)
        trail = await bench.stored_history(job.id)
        assert trail.job.error == DEADLINE_EXCEEDED
        assert [(each.move, each.error, each.next_run_at) for each in trail.attempts] == [(Move.EXPIRE, error, None)]

    @keeps_its_place
    async def test_an_early_place_in_line_does_not_outlive_the_deadline(self, bench: Bench, move: Move) -> None:
        """R7: the next start counts from now, wherever the job stood."""
        job = await bench.running(ttl_us=MINUTE)
        await bench.runtime.advance(60)
        assert (await bench.settle(job, move)).move is Move.EXPIRE

    @back_to_waiting
    async def test_a_next_start_before_the_deadline_is_waited_for(self, bench: Bench, move: Move) -> None:
        job = await bench.running(ttl_us=MINUTE)
        assert (await bench.settle(job, move, delay_us=MINUTE - 1)).move is move

    async def test_a_completion_after_the_deadline_counts(self, bench: Bench) -> None:
        """safe-5: a completion under a current lease wins."""
        job = await bench.running(ttl_us=SECOND)
        await bench.runtime.advance(5)
        assert (await bench.settle(job)).move is Move.COMPLETE
