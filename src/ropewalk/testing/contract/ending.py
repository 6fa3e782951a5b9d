"""A job that somebody outside completes or fails."""

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
from ropewalk.testing.contract.build import BOOM, LEASE, keyed
from ropewalk.testing.contract.flow import Flow, closed_by, node, plan

DONE, FAILED = EndRequest(result=b"yes"), EndRequest(error=BOOM)


@needs(WORKFLOWS)
class EndingContract(Contract):
    """safe-13: linearizable with claim and settle; everything an ending brings follows."""

    @pytest.mark.parametrize("asked", [DONE, FAILED], ids=["completed", "failed"])
    @pytest.mark.parametrize("before", ["scheduled", "delayed", "pending", "running"])
    async def test_a_job_that_has_not_ended(self, bench: Bench, before: str, asked: EndRequest) -> None:
        flow = Flow(bench)
        await flow.submit(node("p"))
        await flow.submit(
            node("a", *(["p"] if before == "pending" else []), delay_us=HOUR if before == "delayed" else 0)
        )
        if before == "running":
            await flow.start("a")
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
        await flow.end("p", Move.FAIL)
        assert ((await bench.job("a")).rev, await flow.states("a")) == (job.rev, [ended])

    async def test_its_value_counts_for_its_group(self, bench: Bench) -> None:
        flow = Flow(bench)
        await flow.submit(node("root"))
        await flow.end("root", left=plan(node("a")))
        await bench.store.end("default", "a", DONE)
        group = (await bench.store.groups("default", ["root"]))["root"]
        assert (group.value.type, group.value.value, group.closed_at is not None) == ("a", b"yes", True)

    async def test_its_holder_is_told(self, bench: Bench) -> None:
        flow = Flow(bench)
        await flow.submit(node("a"))
        job = await flow.start("a")
        await bench.store.end("default", "a", DONE)
        renewed = await bench.store.renew("worker", [Renewal(seq=job.seq, fence=job.fence, lease_us=LEASE)])
        assert [lost.reason for lost in renewed.lost] == [LossReason.ALREADY_COMPLETED]
        settled = await bench.settle(job, result=b"mine", plan=plan(node("child")))
        assert (settled.lost, (await bench.job("a")).result) == (LossReason.ALREADY_COMPLETED, b"yes")
        assert await bench.find("child") is None
        await bench.runtime.advance(60)
        assert await bench.sweep() == []

    @pytest.mark.parametrize("move", [Move.COMPLETE, Move.FAIL, Move.BURY, Move.CANCEL])
    async def test_what_has_ended_stays_so(self, bench: Bench, move: Move) -> None:
        done = await bench.finished(move)
        answer = await bench.store.end("default", done.id, DONE)
        assert (answer.job, answer.state) == (None, State(done.status.value))
        assert await bench.job(done.id) == done

    async def test_a_missing_job(self, bench: Bench) -> None:
        assert await bench.store.end("default", "missing", DONE) == EndAnswer(id="missing")

    async def test_gates_and_groups_follow(self, bench: Bench) -> None:
        flow = Flow(bench)
        await flow.submit(node("root"), node("good", "root"), node("bad", "root"))
        await flow.end("root", left=plan(node("a"), node("b"), node("after-a", "a"), node("after-b", "b")))
        answer = await bench.store.end("default", "a", DONE)
        assert answer.consequences is not None
        assert (answer.consequences.ready, closed_by(answer)) == (["default"], [])
        answer = await bench.store.end("default", "b", FAILED)
        assert answer.consequences is not None
        assert [moved.job.id for moved in answer.consequences.moved] == ["after-b"]
        answer = await bench.store.end("default", "after-a", DONE)
        assert answer.consequences is not None
        assert closed_by(answer) == ["root"]
        assert await flow.counts("root") == (0, 3, 2, 0)

    async def test_a_failure_is_compensated_and_can_be_retried(self, bench: Bench) -> None:
        flow = Flow(bench)
        await flow.submit(node("a", on_failure=CompensationSpec(type="undo")))
        await bench.store.end("default", "a", FAILED)
        undo = await bench.claim_one(types=["undo"])
        assert undo.origin is not None
        assert (undo.origin.started, undo.origin.error) == (False, BOOM)
        await bench.store.retry("default", ["a"], RetryRequest())
        assert (await flow.start("a")).run == 2

    async def test_its_key_is_free(self, bench: Bench) -> None:
        """safe-12."""
        [first] = await bench.submit(keyed("k"))
        await bench.store.end("default", first.id, DONE)
        [second] = await bench.submit(keyed("k"))
        assert not second.duplicate
