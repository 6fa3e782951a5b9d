"""Signals, which are kept in a mailbox of their job, and handlers that wait for them."""

from __future__ import annotations

import asyncio

import pytest
from msgspec import structs

from ropewalk.domain.jobs.lease import LossReason
from ropewalk.domain.jobs.record import JobRecord
from ropewalk.domain.jobs.states import Move, State
from ropewalk.domain.time import HOUR, MINUTE
from ropewalk.domain.workflow.completion import StepRecord, Suspension
from ropewalk.ports.store.capabilities import WORKFLOWS
from ropewalk.ports.store.leases import Settled
from ropewalk.ports.store.workflows import SignalAnswer
from ropewalk.testing.contract.base import Contract, needs
from ropewalk.testing.contract.bench import Bench, holder

WAIT = StepRecord(position=0, name="wait", kind="signal")
ROUNDS = 20


@needs(WORKFLOWS)
class SignalContract(Contract):
    """A signal is kept until its job asks for it, is taken once, and is refused by a finished job (C10)."""

    async def test_an_early_signal_is_kept_until_it_is_asked_for(self, bench: Bench) -> None:
        job_id = await bench.add()
        assert await _send(bench, job_id, b"1") is SignalAnswer.KEPT
        job = await bench.claim_one()
        answer = await bench.store.take_signal(holder(job), WAIT, "ring")
        taken = structs.replace(WAIT, value=b"1")
        assert (answer.lost, answer.taken) == (None, taken)
        assert await bench.store.steps(job.seq) == [taken]

    async def test_each_signal_is_taken_once_and_the_oldest_first(self, bench: Bench) -> None:
        job = await bench.running()
        for value in (b"1", b"2", None):
            assert await _send(bench, job.id, value) is SignalAnswer.KEPT
        taken = [await _take(bench, job, position) for position in range(4)]
        assert [None if each is None else each.value for each in taken] == [b"1", b"2", None, None]
        assert (taken[2] is None, taken[3] is None) == (False, True)
        assert len(await bench.store.steps(job.seq)) == 3

    async def test_asking_for_a_missing_signal_changes_nothing(self, bench: Bench) -> None:
        job = await bench.running()
        assert await _take(bench, job, 0) is None
        assert await bench.job(job.id) == job
        assert await bench.store.steps(job.seq) == []

    async def test_signals_of_different_names_are_separate(self, bench: Bench) -> None:
        job = await bench.running()
        await _send(bench, job.id, b"1", name="knock")
        assert await _take(bench, job, 0) is None
        assert (await bench.store.take_signal(holder(job), WAIT, "knock")).taken is not None

    async def test_a_waiting_job_is_pending_until_its_signal_comes(self, bench: Bench) -> None:
        """The attempt is given back; it runs again with the signal there to take."""
        job = await bench.running(max_attempts=1)
        await _wait(bench, job)
        seen = await bench.job(job.id)
        assert (seen.state_at(bench.runtime.now()), seen.attempt, seen.awaits) == (State.PENDING, 0, "ring")
        await bench.runtime.advance(days=3)
        assert await bench.sweep() == []
        assert await bench.claim() == []
        assert await _send(bench, job.id, b"0", name="knock") is SignalAnswer.KEPT
        assert await bench.claim() == []
        assert await _send(bench, job.id, b"1") is SignalAnswer.DELIVERED
        again = await bench.claim_one()
        taken = await _take(bench, again, 0)
        assert (again.attempt, taken is not None) == (1, True)
        assert await _take(bench, again, 1) is None

    async def test_a_signal_that_is_there_is_not_waited_for(self, bench: Bench) -> None:
        """It came between asking and suspending."""
        job = await bench.running()
        await _send(bench, job.id, b"1")
        await _wait(bench, job)
        assert await bench.state(job.id) is State.SCHEDULED
        assert await _take(bench, await bench.claim_one(), 0) is not None

    async def test_a_wait_for_a_signal_can_time_out(self, bench: Bench) -> None:
        job = await bench.running()
        await _wait(bench, job, span_us=MINUTE)
        until = bench.runtime.now() + MINUTE
        [unfinished] = await bench.store.steps(job.seq)
        assert (unfinished.kind, unfinished.until, unfinished.finished) == ("signal", until, False)
        await bench.runtime.advance(59.999_999)
        assert await bench.sweep() == []
        assert await bench.state(job.id) is State.PENDING
        await bench.runtime.advance(0.000_001)
        consequences = await bench.store.sweep(9)
        assert (consequences.moved, consequences.ready) == ([], ["default"])
        assert (await bench.claim_one()).attempt == 1

    async def test_a_signal_before_the_timeout_ends_the_wait(self, bench: Bench) -> None:
        job = await bench.running()
        await _wait(bench, job, span_us=MINUTE)
        assert await _send(bench, job.id, b"1") is SignalAnswer.DELIVERED
        await bench.runtime.advance(hours=1)
        assert await bench.sweep() == []
        assert await bench.state(job.id) is State.SCHEDULED

    async def test_a_claim_ends_waits_that_are_over_and_says_when_the_next_one_is(self, bench: Bench) -> None:
        """live-1: nobody waits for the next sweep."""
        job = await bench.running()
        await _wait(bench, job, span_us=MINUTE)
        claimed = await bench.claimed()
        assert (claimed.jobs, claimed.next_due) == ([], claimed.now + MINUTE)
        await bench.runtime.advance(minutes=1)
        assert (await bench.claim_one()).id == job.id

    @pytest.mark.parametrize("move", [Move.COMPLETE, Move.FAIL, Move.BURY, Move.CANCEL])
    async def test_a_finished_job_takes_no_signal(self, bench: Bench, move: Move) -> None:
        done = await bench.finished(move)
        assert await _send(bench, done.id, b"1") is SignalAnswer.ALREADY_COMPLETE
        assert await _send(bench, "missing", b"1") is SignalAnswer.NOT_FOUND

    async def test_a_stale_holder_takes_no_signal(self, bench: Bench) -> None:
        """safe-5: and the signal stays for the one who holds it."""
        job = await bench.running()
        await _send(bench, job.id, b"1")
        stale = structs.replace(holder(job), owner="other")
        answer = await bench.store.take_signal(stale, WAIT, "ring")
        assert (answer.lost, answer.taken) == (LossReason.TAKEN_BY_ANOTHER_WORKER, None)
        assert await bench.store.steps(job.seq) == []
        assert await _take(bench, job, 0) is not None

    async def test_a_waiting_job_can_be_cancelled_and_expires(self, bench: Bench) -> None:
        cancelled = await bench.running()
        await _wait(bench, cancelled)
        await bench.cancel(cancelled.id)
        late = await bench.running(ttl_us=HOUR)
        await _wait(bench, late)
        await bench.runtime.advance(hours=1)
        await bench.sweep()
        assert [await bench.state(job.id) for job in (cancelled, late)] == [State.CANCELLED, State.DEAD_LETTER]
        assert await _send(bench, late.id, b"1") is SignalAnswer.ALREADY_COMPLETE

    async def test_a_signal_that_races_with_a_suspension_is_not_missed(self, bench: Bench) -> None:
        """Whoever is first, the handler runs again and finds it: nothing is missed."""
        other = await bench.second()
        for turn in range(ROUNDS):
            job = await bench.running()
            both = [_wait(bench, job), other.store.signal("default", job.id, "ring", b"1")]
            await asyncio.gather(*(both if turn % 2 else both[::-1]))
            again = await bench.claim_one()
            assert await _take(bench, again, 0) is not None
            await bench.settle(again)


async def _send(bench: Bench, job_id: str, value: bytes | None, *, name: str = "ring") -> SignalAnswer:
    return await bench.store.signal("default", job_id, name, value)


async def _take(bench: Bench, job: JobRecord, position: int) -> StepRecord | None:
    step = structs.replace(WAIT, position=position)
    return (await bench.store.take_signal(holder(job), step, "ring")).taken


async def _wait(bench: Bench, job: JobRecord, span_us: int | None = None) -> Settled:
    suspension = Suspension(position=0, name="wait", signal="ring", span_us=span_us)
    return await bench.settle(job, Move.SUSPEND, suspension=suspension)
