"""Compensations, which follow jobs that fail for good."""

from __future__ import annotations

import pytest

from ropewalk.domain.failure import DEADLINE_EXCEEDED
from ropewalk.domain.jobs.operations import RetryRequest, RetryStatus
from ropewalk.domain.jobs.record import CompensationSpec, JobRecord
from ropewalk.domain.jobs.retry import Backoff
from ropewalk.domain.jobs.states import SETTLING, Move, Status
from ropewalk.domain.time import SECOND
from ropewalk.ports.store.capabilities import WORKFLOWS
from ropewalk.testing.contract.base import Contract, needs
from ropewalk.testing.contract.bench import Bench
from ropewalk.testing.contract.builders import BOOM, settlement

every_move = pytest.mark.parametrize("move", list(SETTLING))
every_failure = pytest.mark.parametrize("move", [Move.FAIL, Move.BURY, Move.EXPIRE])
back_to_waiting = pytest.mark.parametrize("move", [move for move, after in SETTLING.items() if after is Status.WAITING])


@needs(WORKFLOWS)
class CompensationContract(Contract):
    """A job that fails for good gets its compensation exactly once for each run, in the transaction that fails it
    (safe-14).
    """

    UNDO = CompensationSpec(
        type="undo",
        accepts=("x",),
        queue="later",
        priority=9,
        max_attempts=7,
        max_crashes=2,
        timeout_us=SECOND,
        backoff=Backoff.constant(1),
    )

    @every_failure
    async def test_a_failure_is_followed_by_its_compensation(self, bench: Bench, move: Move) -> None:
        """It inherits where it comes from, and knows what failed."""
        job = await bench.running(
            tenant="acme",
            input=b'{"x":1,"y":2}',
            on_failure=self.UNDO,
            correlation_id="c",
            workflow_id="w",
            workflow_type="wt",
            trace="tr",
        )
        await bench.settle(job, move, error=BOOM)
        undo = await bench.claim_one(types=["undo"])
        assert (undo.tenant, undo.queue, undo.priority, undo.input) == ("acme", "later", 9, b'{"x":1}')
        assert (undo.max_attempts, undo.max_crashes, undo.timeout_us) == (7, 2, SECOND)
        assert undo.backoff == Backoff.constant(1)
        assert (undo.correlation_id, undo.workflow_id, undo.workflow_type, undo.trace) == ("c", "w", "wt", "tr")
        assert (undo.group_id, undo.parent_id, undo.on_failure) == (job.id, job.id, None)
        assert undo.created_at == bench.runtime.now()
        origin = undo.origin
        assert origin is not None
        assert (origin.id, origin.run, origin.type, origin.input) == (job.id, 1, "t", b'{"x":1,"y":2}')
        assert (origin.error, origin.started) == (DEADLINE_EXCEEDED if move is Move.EXPIRE else BOOM, True)
        assert await bench.job(undo.id, tenant="acme") == undo

    @pytest.mark.parametrize("move", [move for move in SETTLING if move not in (Move.FAIL, Move.BURY, Move.EXPIRE)])
    async def test_only_a_failure_is_followed_by_a_compensation(self, bench: Bench, move: Move) -> None:
        job = await bench.running(on_failure=self.UNDO, delay_us=0)
        await bench.settle(job, move, error=BOOM)
        assert await bench.claim(9, types=["undo"]) == []

    async def test_every_failed_job_of_a_batch_gets_its_own_compensation(self, bench: Bench) -> None:
        for _ in range(3):
            await bench.add(on_failure=CompensationSpec(type="undo"))
        jobs = await bench.claim(3, owner="me")
        await bench.settle_all("me", [settlement(job, Move.FAIL, error=BOOM) for job in jobs])
        undone = await bench.claim(9, types=["undo"])
        assert sorted(job.parent_id or "" for job in undone) == sorted(job.id for job in jobs)

    async def test_each_failed_run_is_compensated_once(self, bench: Bench) -> None:
        """safe-14: per run."""
        job = await bench.running(on_failure=CompensationSpec(type="undo"))
        await bench.settle(job, Move.FAIL, error=BOOM)
        await bench.settle(job, Move.FAIL, error=BOOM)
        assert [_origin_run(undo) for undo in await bench.claim(9, types=["undo"])] == [1]
        await _retry(bench, job.id)
        await bench.settle(await bench.claim_one(types=["t"]), Move.BURY, error=BOOM)
        assert [_origin_run(undo) for undo in await bench.claim(9, types=["undo"])] == [2]

    async def test_a_compensation_that_already_exists_is_left_alone(self, bench: Bench) -> None:
        """Its id follows from (tenant, job, run), so a restored or repeated failure finds it."""
        job = await bench.running(id="original", on_failure=CompensationSpec(type="undo"))
        await bench.settle(job, Move.FAIL, error=BOOM)
        undo = await bench.claim_one(types=["undo"])
        await bench.settle(undo, result=b"1")
        done = await bench.job(undo.id)
        await bench.store.delete("default", [job.id])
        again = await bench.running(id="original", on_failure=CompensationSpec(type="undo"))
        await bench.settle(again, Move.FAIL, error=BOOM)
        assert await bench.claim(9, types=["undo"]) == []
        assert await bench.job(undo.id) == done
        assert await bench.status(again.id) is Status.FAILED

    async def test_a_compensation_may_have_a_compensation_of_its_own(self, bench: Bench) -> None:
        chain = CompensationSpec(type="undo", on_failure=CompensationSpec(type="a"))
        await bench.settle(await bench.running(on_failure=chain), Move.FAIL, error=BOOM)
        undo = await bench.claim_one(types=["undo"])
        await bench.settle(undo, Move.FAIL, error=BOOM)
        last = await bench.claim_one(types=["a"])
        assert (last.parent_id, last.group_id) == (undo.id, undo.group_id)


async def _retry(bench: Bench, job_id: str) -> None:
    [answer] = await bench.store.retry("default", [job_id], RetryRequest())
    assert answer.status is RetryStatus.QUEUED


def _origin_run(job: JobRecord) -> int | None:
    return None if job.origin is None else job.origin.run
