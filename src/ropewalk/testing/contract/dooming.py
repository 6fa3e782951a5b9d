"""Jobs whose gates can no longer open, or time out."""

from __future__ import annotations

import pytest

from ropewalk.domain.failure import Category
from ropewalk.domain.jobs.operations import UpdateRequest
from ropewalk.domain.jobs.record import CompensationSpec
from ropewalk.domain.jobs.states import Move
from ropewalk.domain.time import HOUR, MINUTE
from ropewalk.domain.workflow.dependency import Policy
from ropewalk.ports.store.capabilities import WORKFLOWS
from ropewalk.testing.contract.base import Contract, needs
from ropewalk.testing.contract.bench import Bench
from ropewalk.testing.contract.builders import chain, tree
from ropewalk.testing.contract.workflow_bench import WorkflowBench, closed_by, node, plan


@needs(WORKFLOWS)
class DoomContract(Contract):
    """When a gate can no longer open, its job and everything that depends on it are settled in the same transaction
    (safe-9, live-3).
    """

    async def test_a_doom_spreads_through_gates(self, bench: Bench) -> None:
        workflow = WorkflowBench(bench)
        await workflow.submit(node("0"), *(node(str(n), str(n - 1)) for n in range(1, 60)))
        await workflow.end("0", Move.FAIL)
        assert set(await workflow.states(*map(str, range(60)))) == {"failed"}
        last = await bench.job("59")
        assert last.error is not None
        assert last.error.context["parent"] == "58"

    async def test_policies_decide_how_a_doom_spreads(self, bench: Bench) -> None:
        """A skipped job is a success for its own dependants; a cancelled one cancels those that name no policy."""
        workflow = WorkflowBench(bench)
        await workflow.submit(
            node("p"),
            node("skipped", "p", gate={"policy": "skip"}),
            node("goes-on", "skipped"),
            node("cancelled", "p", gate={"policy": "cancel"}),
            node("follows", "cancelled"),
            node("any", "p", "skipped", gate={"when": "any_success"}),
        )
        await workflow.end("p", Move.FAIL)
        names = ("skipped", "goes-on", "cancelled", "follows", "any")
        assert await workflow.states(*names) == ["completed", "scheduled", "cancelled", "cancelled", "scheduled"]
        assert (await bench.job("skipped")).result is None

    @pytest.mark.parametrize("ref", [tree, chain])
    async def test_a_doom_spreads_through_trees_and_chains(self, bench: Bench, ref: object) -> None:
        assert callable(ref)
        workflow = WorkflowBench(bench)
        await workflow.submit(node("root"), node("after", ref("root")), node("last", tree("after"), chain("after")))
        await workflow.end("root", left=plan(then=node("next")))
        assert await workflow.states("after", "last") == ["pending", "pending"]
        await workflow.end("next", Move.FAIL)
        assert await workflow.states("after", "last") == ["failed", "failed"]

    async def test_dependants_of_a_tree_are_doomed_when_the_tree_closes(self, bench: Bench) -> None:
        """What is counted once never has to be taken back: a failure inside may yet be retried."""
        workflow = WorkflowBench(bench)
        await workflow.submit(node("root"), node("after", tree("root")), node("watch", "root"))
        await workflow.end("root", left=plan(node("a"), node("b")))
        await workflow.end("a", Move.FAIL)
        assert await workflow.states("after", "watch") == ["pending", "scheduled"]
        await workflow.end("b")
        assert await workflow.states("after") == ["failed"]

    @pytest.mark.parametrize("before", [True, False])
    @pytest.mark.parametrize("how", [Move.FAIL, Move.BURY, Move.CANCEL])
    async def test_the_reason_names_the_group_that_failed_and_not_its_root(
        self, bench: Bench, how: Move, *, before: bool
    ) -> None:
        """safe-9: the reason is true, whether the job was submitted before the group ended or after."""
        workflow = WorkflowBench(bench)
        await workflow.submit(node("root"))
        if before:
            await workflow.submit(node("after", tree("root"), gate={"policy": "fail"}))
        await workflow.end("root", left=plan(node("a"), node("b")))
        if how is Move.CANCEL:
            await bench.store.cancel("default", ["a"], reason=None, force=False)
        else:
            await workflow.end("a", how)
        await workflow.end("b")
        if not before:
            await workflow.submit(node("after", tree("root"), gate={"policy": "fail"}))
        told = "was cancelled" if how is Move.CANCEL else "failed"
        assert await _reason(bench) == f"it depends on the group of root, where a job {told}"

    @pytest.mark.parametrize("before", [True, False])
    async def test_the_reason_names_a_group_value_that_could_not_be_folded(self, bench: Bench, *, before: bool) -> None:
        """safe-9: every job of the group completed."""
        workflow = WorkflowBench(bench)
        await workflow.submit(node("root"))
        if before:
            await workflow.submit(node("after", tree("root")))
        await workflow.end("root", left=plan(node("a"), node("b")))
        await workflow.end("a", left=plan(value=b"1", reducer="sum"))
        await workflow.end("b", left=plan(value=b"1", reducer="list"))
        if not before:
            await workflow.submit(node("after", tree("root")))
        why = "t contributes with append='sum', t with append='list'"
        assert await _reason(bench) == f"it depends on the group of root, whose value cannot be told: {why}"

    @pytest.mark.parametrize("before", [True, False])
    async def test_the_reason_names_deeper_failures_and_trees_inside_a_group(
        self, bench: Bench, *, before: bool
    ) -> None:
        """safe-9: what failed may stand deeper, and the tree of a member is no group."""
        workflow = WorkflowBench(bench)
        await workflow.submit(node("root"))
        if before:
            await workflow.submit(node("after", tree("root")))
        await workflow.end("root", left=plan(node("a"), node("last", tree("a"))))
        await workflow.end("a", left=plan(node("deep")))
        await workflow.end("deep", Move.FAIL)
        if not before:
            await workflow.submit(node("after", tree("root")))
        assert await _reason(bench, "last") == "it depends on a and what was queued under it, where a job failed"
        assert await _reason(bench) == "it depends on the group of root, where a job failed"

    @pytest.mark.parametrize("before", [True, False])
    async def test_the_reason_names_the_member_of_a_chain_that_failed(self, bench: Bench, *, before: bool) -> None:
        """safe-9: the first job of the chain has completed."""
        workflow = WorkflowBench(bench)
        await workflow.submit(node("first"))
        if before:
            await workflow.submit(node("after", chain("first")))
        await workflow.end("first", left=plan(then=node("second")))
        await workflow.end("second", Move.FAIL)
        if not before:
            await workflow.submit(node("after", chain("first")))
        assert await _reason(bench) == "it depends on the chain of first, whose job second ended as failed"

    async def test_children_doomed_inside_a_group_close_it(self, bench: Bench) -> None:
        workflow = WorkflowBench(bench)
        await workflow.submit(node("root"))
        await workflow.end("root", left=plan(node("a"), node("b", "a"), node("c", tree("b"))))
        ended = await workflow.settle("a", Move.FAIL)
        assert closed_by(ended) == ["root"]
        assert await workflow.counts("root") == (0, 1, 3, 0)

    async def test_the_compensation_of_a_doomed_job_says_that_it_never_started(self, bench: Bench) -> None:
        """And holds up the tree of what it compensates."""
        workflow = WorkflowBench(bench)
        await workflow.submit(
            node("p"), node("a", "p", on_failure=CompensationSpec(type="undo")), node("after", tree("a"))
        )
        await workflow.end("p", Move.FAIL)
        undo = await bench.claim_one(types=["undo"])
        assert undo.origin is not None
        assert (undo.origin.id, undo.origin.started, undo.origin.error.code) == ("a", False, "dependency_failed")
        assert await workflow.states("after") == ["pending"]
        await bench.settle(undo)
        assert await workflow.states("after") == ["failed"]

    @pytest.mark.parametrize(("policy", "compensated"), [("fail", 1), ("cancel", 0), ("skip", 0), ("run", 0)])
    async def test_only_a_doomed_job_that_fails_is_compensated(
        self, bench: Bench, policy: Policy, compensated: int
    ) -> None:
        workflow = WorkflowBench(bench)
        await workflow.submit(
            node("p"), node("a", "p", gate={"policy": policy}, on_failure=CompensationSpec(type="undo"))
        )
        await workflow.end("p", Move.FAIL)
        assert len(await bench.claim(9, types=["undo"])) == compensated

    async def test_a_job_that_is_doomed_when_it_is_submitted_ends_at_once(self, bench: Bench) -> None:
        """Its compensation and its dependants follow in the same transaction."""
        workflow = WorkflowBench(bench)
        await workflow.submit(node("p"))
        await workflow.end("p", Move.FAIL)
        await workflow.submit(node("b", "a"), node("a", "p", on_failure=CompensationSpec(type="undo")))
        assert await workflow.states("a", "b") == ["failed", "failed"]
        assert len(await bench.claim(9, types=["undo"])) == 1

    async def test_the_history_of_a_doomed_job_has_no_gap(self, bench: Bench) -> None:
        """safe-16."""
        workflow = WorkflowBench(bench)
        policies: list[Policy] = ["fail", "cancel", "skip", "run"]
        await workflow.submit(node("p"), *(node(each, "p", gate={"policy": each}) for each in policies))
        await workflow.end("p", Move.FAIL)
        await workflow.end("run")
        kinds = {each: [entry.kind for entry in await bench.history(each)] for each in policies}
        assert kinds == {
            "fail": ["queued", "doomed"],
            "cancel": ["queued", "cancelled"],
            "skip": ["queued", "skipped"],
            "run": ["queued", "gate_ignored", "started", "complete"],
        }
        for each in policies:
            assert [entry.rev for entry in await bench.history(each)] == list(range(1, (await bench.job(each)).rev + 1))


@needs(WORKFLOWS)
class GateTimeoutContract(Contract):
    """A gate may have a timeout; when it is over, the job ends as the policy of the gate says (C3)."""

    @pytest.mark.parametrize(
        ("policy", "state"),
        [(None, "failed"), ("fail", "failed"), ("cancel", "cancelled"), ("skip", "completed"), ("run", "scheduled")],
    )
    async def test_a_gate_that_times_out_follows_its_policy(
        self, bench: Bench, policy: Policy | None, state: str
    ) -> None:
        workflow = WorkflowBench(bench)
        await workflow.submit(node("p"), node("a", "p", gate={"policy": policy, "timeout_us": MINUTE}), node("b", "a"))
        await bench.runtime.advance(59.999_999)
        assert await bench.sweep() == []
        await bench.runtime.advance(0.000_001)
        consequences = await bench.store.sweep(9)
        assert await workflow.states("a") == [state]
        assert {moved.job.id for moved in consequences.moved} >= ({"a"} if state != "scheduled" else set())
        assert await workflow.states("b") == [
            {"completed": "scheduled", "scheduled": "pending"}.get(state, state),
        ]
        assert await bench.sweep() == [], "once"
        if state == "failed":
            error = (await bench.job("a")).error
            assert error is not None
            assert (error.code, error.category) == ("gate_timeout", Category.TIMEOUT)

    async def test_a_gate_that_opened_in_time_has_no_timeout_left(self, bench: Bench) -> None:
        workflow = WorkflowBench(bench)
        await workflow.submit(node("p"), node("a", "p", gate={"timeout_us": MINUTE}))
        await workflow.end("p")
        await bench.runtime.advance(hours=1)
        assert await bench.sweep() == []
        assert await workflow.states("a") == ["scheduled"]

    async def test_a_bounded_sweep_times_out_the_oldest_gates_first(self, bench: Bench) -> None:
        workflow = WorkflowBench(bench)
        await workflow.submit(node("p"), *(node(str(n), "p", gate={"timeout_us": (9 - n) * MINUTE}) for n in range(5)))
        await bench.runtime.advance(hours=1)
        given_up = [[moved.job.id for moved in await bench.sweep(2)] for _ in range(4)]
        assert given_up == [["4", "3"], ["2", "1"], ["0"], []]

    async def test_a_pending_job_expires_at_its_deadline(self, bench: Bench) -> None:
        workflow = WorkflowBench(bench)
        await workflow.submit(node("p"), node("a", "p", ttl_us=MINUTE), node("b", "a"))
        await bench.runtime.advance(60)
        await bench.sweep()
        assert await workflow.states("a", "b") == ["dead_letter", "failed"]

    async def test_triggering_a_pending_job_does_not_open_its_gate(self, bench: Bench) -> None:
        workflow = WorkflowBench(bench)
        await workflow.submit(node("p"), node("a", "p", delay_us=HOUR))
        await bench.store.update("default", "a", UpdateRequest(run_now=True))
        assert await workflow.states("a") == ["pending"]
        await workflow.end("p")
        assert await workflow.states("a") == ["scheduled"]


async def _reason(bench: Bench, name: str = "after") -> str:
    job = await bench.job(name)
    assert job.error is not None
    return job.error.message
