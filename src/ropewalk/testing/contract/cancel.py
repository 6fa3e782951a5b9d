"""Cancelling jobs."""

from __future__ import annotations

import pytest

from ropewalk.domain.jobs.operations import CancelStatus
from ropewalk.domain.jobs.record import CancelRequest
from ropewalk.domain.jobs.states import Move, State, Status
from ropewalk.domain.time import HOUR
from ropewalk.ports.store.operations import CancelAnswer
from ropewalk.testing.contract.base import Contract
from ropewalk.testing.contract.bench import Bench

ENDS = {Move.COMPLETE: "completed", Move.FAIL: "failed", Move.BURY: "dead_letter", Move.CANCEL: "cancelled"}


class CancelContract(Contract):
    """A waiting job is cancelled at once, and a running job is asked to stop (R8, safe-13)."""

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

    async def test_a_running_job_is_asked_to_stop(self, bench: Bench) -> None:
        """The holder decides; it stays running until then."""
        job = await bench.running()
        answer = await _cancel(bench, job.id, reason="please")
        assert answer == CancelAnswer(id=job.id, status=CancelStatus.CANCEL_REQUESTED, previous=State.RUNNING)
        seen = await bench.job(job.id)
        assert seen.cancel == CancelRequest("please", force=False, at=bench.runtime.now())
        assert (seen.status, seen.owner, seen.fence, seen.rev) == (Status.RUNNING, job.owner, job.fence, job.rev + 1)

    async def test_a_cancellation_request_can_only_become_stronger(self, bench: Bench) -> None:
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
    async def test_cancelling_a_finished_job_is_refused(self, bench: Bench, move: Move, state: str) -> None:
        done = await bench.finished(move)
        answer = await _cancel(bench, done.id, force=True)
        assert answer == CancelAnswer(id=done.id, status=CancelStatus.ALREADY_COMPLETE, previous=State(state))
        assert await bench.job(done.id) == done

    async def test_many_cancellations_are_answered_in_order_and_independently(self, bench: Bench) -> None:
        done = await bench.finished()
        running = await bench.running()
        waiting = await bench.add()
        answers = await bench.cancel(waiting, "missing", done.id, running.id, waiting)
        assert [(answer.id, answer.status) for answer in answers] == [
            (waiting, CancelStatus.CANCELLED),
            ("missing", CancelStatus.NOT_FOUND),
            (done.id, CancelStatus.ALREADY_COMPLETE),
            (running.id, CancelStatus.CANCEL_REQUESTED),
            (waiting, CancelStatus.ALREADY_COMPLETE),
        ]
        assert answers[1].previous is None
        assert await bench.cancel() == []


async def _cancel(bench: Bench, job_id: str, *, reason: str | None = None, force: bool = False) -> CancelAnswer:
    [answer] = await bench.cancel(job_id, reason=reason, force=force)
    return answer
