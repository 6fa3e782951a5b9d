"""Durable steps, and handlers that sleep."""

from __future__ import annotations

import pytest
from msgspec import structs

from ropewalk.domain.jobs.flags import STEPPED
from ropewalk.domain.jobs.lease import LossReason
from ropewalk.domain.jobs.operations import RetryRequest, RetryStatus
from ropewalk.domain.jobs.states import Move, State
from ropewalk.domain.time import HOUR, MINUTE
from ropewalk.domain.workflow.completion import StepRecord, Suspension
from ropewalk.ports.store.capabilities import WORKFLOWS
from ropewalk.testing.contract.base import Contract, needs
from ropewalk.testing.contract.bench import Bench, holder
from ropewalk.testing.contract.workflow_bench import WorkflowBench, node


def step(position: int, value: bytes | None = b"1", **fields: object) -> StepRecord:
    return structs.replace(StepRecord(position=position, name=f"s{position}", kind="step", value=value), **fields)


@needs(WORKFLOWS)
class StepContract(Contract):
    """A finished step is kept for later attempts, and is written only under a current lease (R9)."""

    async def test_steps_are_kept_in_order_of_position(self, bench: Bench) -> None:
        job = await bench.running()
        assert await bench.store.steps(job.seq) == []
        for position in (2, 0, 1):
            answer = await bench.store.record_step(holder(job), step(position))
            assert (answer.lost, answer.taken) == (None, None)
        assert await bench.store.steps(job.seq) == [step(0), step(1), step(2)]

    async def test_a_later_attempt_finds_the_steps_of_earlier_ones(self, bench: Bench) -> None:
        job = await bench.running()
        await bench.store.record_step(holder(job), step(0))
        await bench.settle(job, Move.RETRY)
        await bench.claim_one()
        assert await bench.store.steps(job.seq) == [step(0)]

    async def test_a_stale_holder_records_nothing(self, bench: Bench) -> None:
        """safe-5."""
        job = await bench.running()
        lease = holder(job)
        for stale in (structs.replace(lease, fence=lease.fence + 1), structs.replace(lease, owner="other")):
            answer = await bench.store.record_step(stale, step(0))
            assert answer.lost is LossReason.TAKEN_BY_ANOTHER_WORKER
        await bench.settle(job)
        assert (await bench.store.record_step(lease, step(0))).lost is LossReason.ALREADY_COMPLETED
        gone = structs.replace(lease, seq=10**9)
        assert (await bench.store.record_step(gone, step(0))).lost is LossReason.NOT_FOUND
        assert await bench.store.steps(job.seq) == []

    async def test_a_finished_step_replaces_an_unfinished_one(self, bench: Bench) -> None:
        job = await bench.running()
        await _suspend(bench, job.id, Suspension(position=0, name="nap", span_us=MINUTE))
        [waiting] = await bench.store.steps(job.seq)
        until = bench.runtime.now() + MINUTE
        assert waiting == StepRecord(position=0, name="nap", kind="sleep", until=until, finished=False)
        await bench.runtime.advance(60)
        again = await bench.claim_one()
        done = structs.replace(waiting, finished=True)
        await bench.store.record_step(holder(again), done)
        assert await bench.store.steps(job.seq) == [done]

    @pytest.mark.parametrize(("named", "kept"), [("s0", []), ("s1", [0]), ("s2", [0, 1])])
    async def test_a_retry_from_a_step_keeps_the_steps_before_it(
        self, bench: Bench, named: str, kept: list[int]
    ) -> None:
        job = await bench.running()
        for position in range(3):
            await bench.store.record_step(holder(job), step(position))
        await bench.settle(job, Move.FAIL)
        [answer] = await bench.store.retry("default", [job.id], RetryRequest(from_step=named))
        assert answer.status is RetryStatus.QUEUED
        assert await bench.store.steps(job.seq) == [step(position) for position in kept]
        again = await bench.claim_one()
        assert (again.run, bool(again.flags & STEPPED)) == (2, bool(kept)), "a job without steps is not marked"

    async def test_a_retry_from_a_step_that_is_not_stored_is_refused(self, bench: Bench) -> None:
        job, plain = await bench.running(), await bench.finished(Move.FAIL)
        await bench.store.record_step(holder(job), step(0))
        await bench.settle(job, Move.FAIL)
        before = await bench.store.get("default", [job.id, plain.id])
        answers = await bench.store.retry("default", [job.id, plain.id], RetryRequest(from_step="s1"))
        assert [(answer.status, answer.reason) for answer in answers] == [
            (RetryStatus.NOT_RETRIABLE, "no_such_step"),
            (RetryStatus.NOT_RETRIABLE, "no_such_step"),
        ]
        assert await bench.store.get("default", [job.id, plain.id]) == before
        assert await bench.store.steps(job.seq) == [step(0)]

    async def test_a_retry_from_an_unfinished_step_waits_anew(self, bench: Bench) -> None:
        """What a forgotten sleep had slept already does not count, and a forgotten signal is waited for again."""
        job = await bench.running()
        await bench.store.record_step(holder(job), step(0))
        await _suspend(bench, job.id, Suspension(position=1, name="nap", span_us=MINUTE))
        await bench.runtime.advance(60)
        await bench.settle(await bench.claim_one(), Move.FAIL)
        await bench.store.retry("default", [job.id], RetryRequest(from_step="nap"))
        assert await bench.store.steps(job.seq) == [step(0)]

    @pytest.mark.parametrize(("fresh", "kept"), [(False, 1), (True, 0)])
    async def test_a_retry_keeps_steps_and_a_fresh_retry_forgets_them(
        self, bench: Bench, *, fresh: bool, kept: int
    ) -> None:
        job = await bench.running()
        await bench.store.record_step(holder(job), step(0))
        await bench.settle(job, Move.FAIL)
        await bench.store.retry("default", [job.id], RetryRequest(fresh=fresh))
        assert len(await bench.store.steps(job.seq)) == kept

    async def test_steps_are_removed_with_their_job(self, bench: Bench) -> None:
        job = await bench.running()
        await bench.store.record_step(holder(job), step(0))
        await bench.settle(job)
        await bench.store.delete("default", [job.id])
        assert await bench.store.steps(job.seq) == []


@needs(WORKFLOWS)
class SleepContract(Contract):
    """A handler that sleeps gives back its slot and its attempt, and later runs again from the top (C10)."""

    async def test_a_sleeping_job_is_delayed(self, bench: Bench) -> None:
        job = await bench.running(max_attempts=1)
        await _suspend(bench, job.id, Suspension(position=0, name="nap", span_us=HOUR))
        seen = await bench.job(job.id)
        assert (seen.state_at(bench.runtime.now()), seen.attempt, seen.owner) == (State.DELAYED, 0, None)
        assert seen.run_at == bench.runtime.now() + HOUR
        await bench.runtime.advance(3599.999_999)
        assert await bench.claim() == []
        await bench.runtime.advance(0.000_001)
        assert (await bench.claim_one()).attempt == 1

    async def test_a_sleep_that_continues_keeps_the_end_that_was_set_before(self, bench: Bench) -> None:
        job = await bench.running()
        until = bench.runtime.now() + MINUTE
        await _suspend(bench, job.id, Suspension(position=0, name="nap", span_us=HOUR, until=until), run_at=until)
        assert (await bench.job(job.id)).run_at == until
        assert [each.until for each in await bench.store.steps(job.seq)] == [until]

    async def test_a_sleep_is_recorded_in_the_history(self, bench: Bench) -> None:
        workflow = WorkflowBench(bench)
        await workflow.submit(node("a"))
        await workflow.start("a")
        await _suspend(bench, "a", Suspension(position=0, name="nap", span_us=MINUTE))
        await bench.runtime.advance(60)
        await workflow.end("a")
        assert [entry.kind for entry in await bench.history("a")] == [
            "queued",
            "started",
            "suspend",
            "started",
            "complete",
        ]

    async def test_a_stale_suspension_leaves_no_step(self, bench: Bench) -> None:
        job = await bench.running()
        await bench.runtime.advance(60)
        await bench.sweep()
        settled = await bench.settle(job, Move.SUSPEND, suspension=Suspension(position=0, name="nap", span_us=1))
        assert settled.lost is not None
        assert await bench.store.steps(job.seq) == []

    async def test_a_job_that_would_sleep_past_its_deadline_expires(self, bench: Bench) -> None:
        job = await bench.running(ttl_us=MINUTE)
        await _suspend(bench, job.id, Suspension(position=0, name="nap", span_us=HOUR))
        assert await bench.state(job.id) is State.DEAD_LETTER


async def _suspend(bench: Bench, job_id: str, suspension: Suspension, run_at: int | None = None) -> None:
    settled = await bench.settle(
        await bench.job(job_id),
        Move.SUSPEND,
        suspension=suspension,
        delay_us=suspension.span_us or 0 if suspension.signal is None else 0,
        run_at=run_at,
    )
    assert settled.lost is None
