"""Jobs that are completed or failed from outside, without a worker."""

from __future__ import annotations

import pytest

from ropewalk.domain.jobs.lease import LossReason
from ropewalk.domain.jobs.operations import EndRequest, RetryRequest
from ropewalk.domain.jobs.record import CompensationSpec
from ropewalk.domain.jobs.states import Move, State
from ropewalk.domain.time import HOUR
from ropewalk.ports.store.capabilities import WORKFLOWS
from ropewalk.ports.store.leases import Renewal
from ropewalk.ports.store.workflows import EndAnswer
from ropewalk.testing.contract.base import Contract, needs
from ropewalk.testing.contract.bench import Bench
from ropewalk.testing.contract.builders import BOOM, LEASE, keyed
from ropewalk.testing.contract.workflow_bench import WorkflowBench, closed_by, node, plan

DONE, FAILED = EndRequest(result=b"yes"), EndRequest(error=BOOM)


@needs(WORKFLOWS)
class EndingContract(Contract):
    """A job that is completed or failed from outside ends as if its worker had settled it (safe-13)."""

    @pytest.mark.parametrize("asked", [DONE, FAILED], ids=["completed", "failed"])
    @pytest.mark.parametrize("before", ["scheduled", "delayed", "pending", "running"])
    async def test_a_job_that_has_not_ended_can_be_completed_from_outside(
        self, bench: Bench, before: str, asked: EndRequest
    ) -> None:
        workflow = WorkflowBench(bench)
        await workflow.submit(node("p"))
        await workflow.submit(
            node("a", *(["p"] if before == "pending" else []), delay_us=HOUR if before == "delayed" else 0)
        )
        if before == "running":
            await workflow.start("a")
        answer = await bench.store.end("default", "a", asked)
        job = await bench.job("a")
        ended = State.COMPLETED if asked is DONE else State.FAILED
        assert (answer.job, answer.state, answer.consequences is not None) == (job, ended, True)
        assert (job.status.value, job.result, job.error, job.last_move) == (
            ended,
            asked.result,
            asked.error,
            Move.END,
        )
        history = await bench.history("a")
        assert [entry.rev for entry in history] == list(range(1, job.rev + 1))
        assert history[-1].kind == "end"
        await bench.runtime.advance(hours=2)
        assert await bench.claim(9, types=["a"]) == []
        await workflow.end("p", Move.FAIL)
        assert ((await bench.job("a")).rev, await workflow.states("a")) == (job.rev, [ended])

    async def test_a_result_from_outside_contributes_to_the_group(self, bench: Bench) -> None:
        workflow = WorkflowBench(bench)
        await workflow.submit(node("root"))
        await workflow.end("root", left=plan(node("a")))
        await bench.store.end("default", "a", DONE)
        group = (await bench.store.groups("default", ["root"]))["root"]
        assert (group.value.type, group.value.value, group.closed_at is not None) == ("a", b"yes", True)

    async def test_the_holder_of_a_job_ended_from_outside_is_told(self, bench: Bench) -> None:
        workflow = WorkflowBench(bench)
        await workflow.submit(node("a"))
        job = await workflow.start("a")
        await bench.store.end("default", "a", DONE)
        renewed = await bench.store.renew("worker", [Renewal(seq=job.seq, fence=job.fence, lease_us=LEASE)])
        assert [lost.reason for lost in renewed.lost] == [LossReason.ALREADY_COMPLETED]
        settled = await bench.settle(job, result=b"mine", plan=plan(node("child")))
        assert (settled.lost, (await bench.job("a")).result) == (LossReason.ALREADY_COMPLETED, b"yes")
        assert await bench.find("child") is None
        await bench.runtime.advance(60)
        assert await bench.sweep() == []

    @pytest.mark.parametrize("move", [Move.COMPLETE, Move.FAIL, Move.BURY, Move.CANCEL])
    async def test_a_job_that_has_ended_cannot_be_ended_from_outside(self, bench: Bench, move: Move) -> None:
        done = await bench.finished(move)
        answer = await bench.store.end("default", done.id, DONE)
        assert (answer.job, answer.state) == (None, State(done.status.value))
        assert await bench.job(done.id) == done

    async def test_a_missing_job_cannot_be_ended_from_outside(self, bench: Bench) -> None:
        assert await bench.store.end("default", "missing", DONE) == EndAnswer(id="missing")

    async def test_gates_and_groups_follow_an_end_from_outside(self, bench: Bench) -> None:
        workflow = WorkflowBench(bench)
        await workflow.submit(node("root"), node("good", "root"), node("bad", "root"))
        await workflow.end("root", left=plan(node("a"), node("b"), node("after-a", "a"), node("after-b", "b")))
        answer = await bench.store.end("default", "a", DONE)
        assert answer.consequences is not None
        assert (answer.consequences.ready, closed_by(answer)) == (["default"], [])
        answer = await bench.store.end("default", "b", FAILED)
        assert answer.consequences is not None
        assert [moved.job.id for moved in answer.consequences.moved] == ["after-b"]
        answer = await bench.store.end("default", "after-a", DONE)
        assert answer.consequences is not None
        assert closed_by(answer) == ["root"]
        assert await workflow.counts("root") == (0, 3, 2, 0)

    async def test_a_failure_from_outside_is_compensated_and_can_be_retried(self, bench: Bench) -> None:
        workflow = WorkflowBench(bench)
        await workflow.submit(node("a", on_failure=CompensationSpec(type="undo")))
        await bench.store.end("default", "a", FAILED)
        undo = await bench.claim_one(types=["undo"])
        assert undo.origin is not None
        assert (undo.origin.started, undo.origin.error) == (False, BOOM)
        await bench.store.retry("default", ["a"], RetryRequest())
        assert (await workflow.start("a")).run == 2

    async def test_an_end_from_outside_frees_the_idempotency_key(self, bench: Bench) -> None:
        """safe-12."""
        [first] = await bench.submit(keyed("k"))
        await bench.store.end("default", first.id, DONE)
        [second] = await bench.submit(keyed("k"))
        assert not second.duplicate
