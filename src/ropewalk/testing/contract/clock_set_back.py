"""What happens to waits, leases and rates when the store's clock was ahead and is set back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import pytest

from ropewalk.domain.jobs.operations import RetryRequest, UpdateRequest
from ropewalk.domain.jobs.record import JobRecord
from ropewalk.domain.jobs.states import Move, State, Status
from ropewalk.domain.limits.fleet_limit import FlowLimit
from ropewalk.domain.limits.rate import ALGORITHMS, Algorithm, Rate
from ropewalk.domain.time import DAY, MINUTE, SECOND
from ropewalk.domain.workflow.completion import StepRecord, Suspension
from ropewalk.ports.store.capabilities import LIMITS, WORKFLOWS
from ropewalk.ports.store.leases import Renewal
from ropewalk.testing.contract.base import Contract, case, needs
from ropewalk.testing.contract.bench import Bench
from ropewalk.testing.contract.builders import LEASE, gate_on, new_job, worker_card

AHEAD: Final = DAY / SECOND
"""How far ahead the clock was, in seconds."""
NAP: Final = Suspension(position=0, name="nap", span_us=MINUTE)


class ClockSetBackContract(Contract):
    """When the store's clock is set back, relative waits get no longer (live-1, live-2), and nothing starts early
    (safe-8).
    """

    @pytest.mark.parametrize(
        ("move", "how"),
        [
            (Move.RETRY, {"delay_us": MINUTE}),
            (Move.DEFER, {"delay_us": MINUTE}),
            (Move.RELEASE, {"delay_us": MINUTE}),
            case(Move.SUSPEND, {"delay_us": MINUTE, "suspension": NAP}, of=(WORKFLOWS,)),
        ],
    )
    async def test_an_attempt_waits_for_the_next_one_as_long_as_it_was_to(
        self, bench: Bench, move: Move, how: Mapping[str, Any]
    ) -> None:
        """live-1, safe-8: a retry, a snooze, a job given back for a while, a sleep."""
        bench.runtime.set_clock(ahead_seconds=AHEAD)
        await bench.settle(await bench.running(), move, **how)
        await _set_back_and_wait_a_minute(bench)

    async def test_a_delayed_job_waits_as_long_as_it_was_to(self, bench: Bench) -> None:
        """live-1, safe-8."""
        bench.runtime.set_clock(ahead_seconds=AHEAD)
        await bench.add(delay_us=MINUTE)
        await _set_back_and_wait_a_minute(bench)

    async def test_a_job_retried_by_hand_waits_as_long_as_it_was_to(self, bench: Bench) -> None:
        """live-1, safe-8."""
        failed = await bench.finished(Move.FAIL)
        bench.runtime.set_clock(ahead_seconds=AHEAD)
        await bench.store.retry("default", [failed.id], RetryRequest(delay_us=MINUTE))
        await _set_back_and_wait_a_minute(bench)

    async def test_an_instant_that_a_user_asked_for_is_never_changed(self, bench: Bench) -> None:
        """safe-8: run at, Defer(at=...), and an update of run_at."""
        bench.runtime.set_clock(ahead_seconds=AHEAD)
        at = bench.runtime.now() + MINUTE
        deferred = await bench.running()
        await bench.settle(deferred, Move.DEFER, run_at=at)
        submitted, updated = await bench.add(run_at=at), await bench.add(delay_us=SECOND)
        await bench.store.update("default", updated, UpdateRequest(run_at=at))
        bench.runtime.set_clock(back_seconds=AHEAD)
        await bench.sweep()
        assert [(await bench.job(each)).run_at for each in (deferred.id, submitted, updated)] == [at, at, at]
        await bench.runtime.advance(AHEAD + 59)
        assert await bench.claim(9) == []
        await bench.runtime.advance(1)
        assert len(await bench.claim(9)) == 3

    async def test_a_delay_that_replaced_an_instant_is_a_delay(self, bench: Bench) -> None:
        """live-1: what counts is how the wait that goes on was asked for."""
        job = await bench.running(run_at=bench.runtime.now())
        bench.runtime.set_clock(ahead_seconds=AHEAD)
        await bench.settle(job, Move.RETRY, delay_us=MINUTE)
        await _set_back_and_wait_a_minute(bench)

    async def test_waits_that_began_before_the_clock_was_ahead_are_not_changed(self, bench: Bench) -> None:
        """safe-8."""
        job_id = await bench.add(delay_us=2 * DAY)
        due = (await bench.job(job_id)).run_at
        bench.runtime.set_clock(ahead_seconds=AHEAD)
        await bench.sweep()
        bench.runtime.set_clock(back_seconds=AHEAD)
        await bench.sweep()
        assert (await bench.job(job_id)).run_at == due

    async def test_a_wait_is_shortened_only_once(self, bench: Bench) -> None:
        """safe-8: sweeps that follow change nothing, nor does a second small step of the clock."""
        bench.runtime.set_clock(ahead_seconds=AHEAD)
        job_id = await bench.add(delay_us=MINUTE)
        bench.runtime.set_clock(back_seconds=AHEAD)
        await bench.sweep()
        first = await bench.job(job_id)
        assert first.run_at == bench.runtime.now() + MINUTE
        await bench.runtime.advance(10)
        bench.runtime.set_clock(back_seconds=0.5)
        await bench.sweep()
        assert await bench.job(job_id) == first

    async def test_ready_jobs_stay_ready(self, bench: Bench) -> None:
        """live-1."""
        bench.runtime.set_clock(ahead_seconds=AHEAD)
        queued, given_back = await bench.add(), await bench.add()
        [first, second] = await bench.claim(2)
        await bench.settle(first, Move.RELEASE)
        await bench.settle(second, Move.RETRY)
        bench.runtime.set_clock(back_seconds=AHEAD)
        assert {job.id for job in await bench.claim(9)} == {queued, given_back}

    async def test_a_ready_job_that_is_changed_stays_ready(self, bench: Bench) -> None:
        """live-1."""
        bench.runtime.set_clock(ahead_seconds=AHEAD)
        job_id = await bench.add()
        bench.runtime.set_clock(back_seconds=AHEAD)
        await bench.store.update("default", job_id, UpdateRequest(priority=100))
        assert (await bench.claim_one()).id == job_id

    @needs(WORKFLOWS)
    async def test_a_job_whose_parent_ends_is_ready(self, bench: Bench) -> None:
        """live-1: it was submitted while the clock was ahead, and is released after that."""
        parent = await bench.running()
        bench.runtime.set_clock(ahead_seconds=AHEAD)
        child = await bench.add(gate=gate_on(parent.id))
        bench.runtime.set_clock(back_seconds=AHEAD)
        await bench.settle(parent)
        assert (await bench.claim_one()).id == child

    @needs(WORKFLOWS)
    async def test_a_gate_times_out_in_time(self, bench: Bench) -> None:
        """live-3: its timeout is a wait, too, also of a job with a run_at of its own."""
        parent = await bench.add(delay_us=2 * DAY)
        bench.runtime.set_clock(ahead_seconds=AHEAD)
        gate = gate_on(parent, timeout_us=MINUTE)
        children = [await bench.add(gate=gate), await bench.add(gate=gate, run_at=bench.runtime.now() + MINUTE)]
        bench.runtime.set_clock(back_seconds=AHEAD)
        await bench.sweep()
        await bench.runtime.advance(59)
        assert await bench.sweep() == []
        await bench.runtime.advance(1)
        await bench.sweep()
        assert [await bench.status(each) for each in children] == [Status.FAILED, Status.FAILED]

    @needs(WORKFLOWS)
    async def test_a_wait_for_a_signal_times_out_in_time(self, bench: Bench) -> None:
        """live-3."""
        bench.runtime.set_clock(ahead_seconds=AHEAD)
        waits = Suspension(position=0, name="wait", signal="ring", span_us=MINUTE)
        await bench.settle(await bench.running(), Move.SUSPEND, suspension=waits)
        await _set_back_and_wait_a_minute(bench)

    @needs(WORKFLOWS)
    async def test_a_sleep_that_continues_lasts_no_longer_than_its_span(self, bench: Bench) -> None:
        """live-1: the handler came back to it after the clock was set back, and finds its end a day away."""
        bench.runtime.set_clock(ahead_seconds=AHEAD)
        await bench.settle(await bench.running(), Move.SUSPEND, suspension=NAP, delay_us=MINUTE)
        await bench.runtime.advance(60)
        again = await bench.claim_one()
        [step] = await bench.store.steps(again.seq)
        bench.runtime.set_clock(back_seconds=AHEAD)
        goes_on = Suspension(position=0, name="nap", span_us=MINUTE, until=step.until)
        await bench.settle(again, Move.SUSPEND, suspension=goes_on)
        [kept] = await bench.store.steps(again.seq)
        assert kept == StepRecord(
            position=0, name="nap", kind="sleep", until=bench.runtime.now() + MINUTE, finished=False
        )
        await bench.runtime.advance(60)
        assert (await bench.claim_one()).id == again.id

    async def test_a_dead_worker_is_noticed_in_time(self, bench: Bench) -> None:
        """live-2: it died while the clock was ahead."""
        bench.runtime.set_clock(ahead_seconds=AHEAD)
        await bench.store.register(worker_card("dead"))
        job = await bench.running(owner="dead")
        await bench.runtime.advance(10)
        await bench.store.renew("dead", [Renewal(seq=job.seq, fence=job.fence, lease_us=LEASE)])
        bench.runtime.set_clock(back_seconds=AHEAD)
        assert await bench.sweep() == []
        await bench.runtime.advance(LEASE / SECOND - 1)
        assert await bench.sweep() == []
        await bench.runtime.advance(1)
        assert [(moved.job.id, moved.move) for moved in await bench.sweep()] == [(job.id, Move.LOSE)]

    async def test_a_living_worker_keeps_its_jobs(self, bench: Bench) -> None:
        """safe-4, live-2: whether it renews its leases before or after somebody looks."""
        bench.runtime.set_clock(ahead_seconds=AHEAD)
        jobs = {owner: await bench.running(owner=owner) for owner in ("early", "late")}
        for owner, job in jobs.items():
            await bench.store.register(worker_card(owner))
            await bench.store.renew(owner, [Renewal(seq=job.seq, fence=job.fence, lease_us=LEASE)])
        bench.runtime.set_clock(back_seconds=AHEAD)
        await bench.store.renew("early", [_renewal(jobs["early"])])
        assert await bench.sweep() == []
        await bench.runtime.advance(LEASE / SECOND / 3)
        await bench.store.renew("late", [_renewal(jobs["late"])])
        await bench.runtime.advance(LEASE / SECOND / 2)
        assert await bench.sweep() == []
        assert [(await bench.settle(job)).move for job in jobs.values()] == [Move.COMPLETE, Move.COMPLETE]

    async def test_a_silent_worker_does_not_look_alive_after_the_clock_is_set_back(self, bench: Bench) -> None:
        """live-3: `why` and the doctor judge by its last sign of life."""
        bench.runtime.set_clock(ahead_seconds=AHEAD)
        await bench.store.register(worker_card("dead"))
        bench.runtime.set_clock(back_seconds=AHEAD)
        await bench.sweep()
        [card] = await bench.store.workers()
        assert card.beat_at == bench.runtime.now()

    @needs(LIMITS)
    @pytest.mark.parametrize("algorithm", ALGORITHMS)
    async def test_a_rate_limit_has_room_again_within_its_window(self, bench: Bench, algorithm: Algorithm) -> None:
        """live-1, R13."""
        rate = Rate(1, per=60, algorithm=algorithm)
        await bench.store.put_limit(FlowLimit(tenant="default", kind="key", name="k", rate=rate))
        await bench.submit(new_job(limit_key="k"), new_job(limit_key="k"))
        bench.runtime.set_clock(ahead_seconds=AHEAD)
        await bench.settle(await bench.claim_one())
        bench.runtime.set_clock(back_seconds=AHEAD)
        await bench.runtime.advance(60)
        assert len(await bench.claim(9)) == 1

    async def test_a_job_that_runs_meanwhile_ends_and_is_counted(self, bench: Bench) -> None:
        """live-3: it seems to have ended before it began."""
        bench.runtime.set_clock(ahead_seconds=AHEAD)
        job = await bench.running()
        bench.runtime.set_clock(back_seconds=AHEAD)
        assert (await bench.settle(job)).move is Move.COMPLETE
        assert await bench.state(job.id) is State.COMPLETED


def _renewal(job: JobRecord) -> Renewal:
    return Renewal(seq=job.seq, fence=job.fence, lease_us=LEASE)


async def _set_back_and_wait_a_minute(bench: Bench) -> None:
    """Set the clock back and check that the only waiting job is ready after a minute, and not a second earlier."""
    bench.runtime.set_clock(back_seconds=AHEAD)
    await bench.sweep()
    await bench.runtime.advance(59)
    await bench.sweep()
    assert await bench.claim(9) == []
    await bench.runtime.advance(1)
    await bench.sweep()
    assert len(await bench.claim(9)) == 1
