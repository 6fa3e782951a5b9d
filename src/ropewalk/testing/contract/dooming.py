"""Nothing waits for something that cannot happen: how far a doom goes, and what time does to a gate."""

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
from ropewalk.testing.contract.build import chain, tree
from ropewalk.testing.contract.flow import Flow, closed_by, node, plan


@needs(WORKFLOWS)
class DoomContract(Contract):
    """safe-9, live-3: transitively, in the transaction that decides it."""

    async def test_through_gates(self, bench: Bench) -> None:
        flow = Flow(bench)
        await flow.submit(node("0"), *(node(str(n), str(n - 1)) for n in range(1, 60)))
        await flow.end("0", Move.FAIL)
        assert set(await flow.states(*map(str, range(60)))) == {"failed"}
        last = await bench.job("59")
        assert last.error is not None
        assert last.error.context["parent"] == "58"

    async def test_policies_decide_on_the_way(self, bench: Bench) -> None:
        """A skipped job is a success for its own dependants; a cancelled one cancels those that name no policy."""
        flow = Flow(bench)
        await flow.submit(
            node("p"),
            node("skipped", "p", gate={"policy": "skip"}),
            node("goes-on", "skipped"),
            node("cancelled", "p", gate={"policy": "cancel"}),
            node("follows", "cancelled"),
            node("any", "p", "skipped", gate={"when": "any_success"}),
        )
        await flow.end("p", Move.FAIL)
        names = ("skipped", "goes-on", "cancelled", "follows", "any")
        assert await flow.states(*names) == ["completed", "scheduled", "cancelled", "cancelled", "scheduled"]
        assert (await bench.job("skipped")).result is None

    @pytest.mark.parametrize("ref", [tree, chain])
    async def test_through_trees_and_chains(self, bench: Bench, ref: object) -> None:
        assert callable(ref)
        flow = Flow(bench)
        await flow.submit(node("root"), node("after", ref("root")), node("last", tree("after"), chain("after")))
        await flow.end("root", left=plan(then=node("next")))
        assert await flow.states("after", "last") == ["pending", "pending"]
        await flow.end("next", Move.FAIL)
        assert await flow.states("after", "last") == ["failed", "failed"]

    async def test_a_tree_fails_when_it_is_closed(self, bench: Bench) -> None:
        """What is counted once never has to be taken back: a failure inside may yet be retried."""
        flow = Flow(bench)
        await flow.submit(node("root"), node("after", tree("root")), node("watch", "root"))
        await flow.end("root", left=plan(node("a"), node("b")))
        await flow.end("a", Move.FAIL)
        assert await flow.states("after", "watch") == ["pending", "scheduled"]
        await flow.end("b")
        assert await flow.states("after") == ["failed"]

    @pytest.mark.parametrize("before", [True, False])
    @pytest.mark.parametrize("how", [Move.FAIL, Move.BURY, Move.CANCEL])
    async def test_a_group_that_failed_is_named_and_not_its_root(
        self, bench: Bench, how: Move, *, before: bool
    ) -> None:
        """safe-9: the reason is true, whether the job was submitted before the group ended or after."""
        flow = Flow(bench)
        await flow.submit(node("root"))
        if before:
            await flow.submit(node("after", tree("root"), gate={"policy": "fail"}))
        await flow.end("root", left=plan(node("a"), node("b")))
        if how is Move.CANCEL:
            await bench.store.cancel("default", ["a"], reason=None, force=False)
        else:
            await flow.end("a", how)
        await flow.end("b")
        if not before:
            await flow.submit(node("after", tree("root"), gate={"policy": "fail"}))
        told = "was cancelled" if how is Move.CANCEL else "failed"
        assert await _reason(bench) == f"it depends on the group of root, where a job {told}"

    @pytest.mark.parametrize("before", [True, False])
    async def test_a_value_that_cannot_be_told_is_the_reason(self, bench: Bench, *, before: bool) -> None:
        """safe-9: every job of the group completed."""
        flow = Flow(bench)
        await flow.submit(node("root"))
        if before:
            await flow.submit(node("after", tree("root")))
        await flow.end("root", left=plan(node("a"), node("b")))
        await flow.end("a", left=plan(value=b"1", reducer="sum"))
        await flow.end("b", left=plan(value=b"1", reducer="list"))
        if not before:
            await flow.submit(node("after", tree("root")))
        why = "t contributes with append='sum', t with append='list'"
        assert await _reason(bench) == f"it depends on the group of root, whose value cannot be told: {why}"

    @pytest.mark.parametrize("before", [True, False])
    async def test_deeper_failures_and_trees_inside_a_group(self, bench: Bench, *, before: bool) -> None:
        """safe-9: what failed may stand deeper, and the tree of a member is no group."""
        flow = Flow(bench)
        await flow.submit(node("root"))
        if before:
            await flow.submit(node("after", tree("root")))
        await flow.end("root", left=plan(node("a"), node("last", tree("a"))))
        await flow.end("a", left=plan(node("deep")))
        await flow.end("deep", Move.FAIL)
        if not before:
            await flow.submit(node("after", tree("root")))
        assert await _reason(bench, "last") == "it depends on a and what was queued under it, where a job failed"
        assert await _reason(bench) == "it depends on the group of root, where a job failed"

    @pytest.mark.parametrize("before", [True, False])
    async def test_a_chain_names_its_member_that_failed(self, bench: Bench, *, before: bool) -> None:
        """safe-9: the first job of the chain has completed."""
        flow = Flow(bench)
        await flow.submit(node("first"))
        if before:
            await flow.submit(node("after", chain("first")))
        await flow.end("first", left=plan(then=node("second")))
        await flow.end("second", Move.FAIL)
        if not before:
            await flow.submit(node("after", chain("first")))
        assert await _reason(bench) == "it depends on the chain of first, whose job second ended as failed"

    async def test_children_doomed_inside_a_group_close_it(self, bench: Bench) -> None:
        flow = Flow(bench)
        await flow.submit(node("root"))
        await flow.end("root", left=plan(node("a"), node("b", "a"), node("c", tree("b"))))
        ended = await flow.ended("a", Move.FAIL)
        assert closed_by(ended) == ["root"]
        assert await flow.counts("root") == (0, 1, 3, 0)

    async def test_compensation_says_that_it_never_started(self, bench: Bench) -> None:
        """And holds up the tree of what it compensates."""
        flow = Flow(bench)
        await flow.submit(node("p"), node("a", "p", on_failure=CompensationSpec(type="undo")), node("after", tree("a")))
        await flow.end("p", Move.FAIL)
        undo = await bench.claim_one(types=["undo"])
        assert undo.origin is not None
        assert (undo.origin.id, undo.origin.started, undo.origin.error.code) == ("a", False, "dependency_failed")
        assert await flow.states("after") == ["pending"]
        await bench.settle(undo)
        assert await flow.states("after") == ["failed"]

    @pytest.mark.parametrize(("policy", "compensated"), [("fail", 1), ("cancel", 0), ("skip", 0), ("run", 0)])
    async def test_only_a_failure_is_compensated(self, bench: Bench, policy: Policy, compensated: int) -> None:
        flow = Flow(bench)
        await flow.submit(node("p"), node("a", "p", gate={"policy": policy}, on_failure=CompensationSpec(type="undo")))
        await flow.end("p", Move.FAIL)
        assert len(await bench.claim(9, types=["undo"])) == compensated

    async def test_a_job_born_doomed(self, bench: Bench) -> None:
        """Its compensation and its dependants follow in the same transaction."""
        flow = Flow(bench)
        await flow.submit(node("p"))
        await flow.end("p", Move.FAIL)
        await flow.submit(node("b", "a"), node("a", "p", on_failure=CompensationSpec(type="undo")))
        assert await flow.states("a", "b") == ["failed", "failed"]
        assert len(await bench.claim(9, types=["undo"])) == 1

    async def test_history_tells_it_without_a_gap(self, bench: Bench) -> None:
        """safe-16."""
        flow = Flow(bench)
        policies: list[Policy] = ["fail", "cancel", "skip", "run"]
        await flow.submit(node("p"), *(node(each, "p", gate={"policy": each}) for each in policies))
        await flow.end("p", Move.FAIL)
        await flow.end("run")
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
    """C3: a gate may have a timeout; it follows the gate's policy."""

    @pytest.mark.parametrize(
        ("policy", "state"),
        [(None, "failed"), ("fail", "failed"), ("cancel", "cancelled"), ("skip", "completed"), ("run", "scheduled")],
    )
    async def test_a_gate_is_given_up_by_its_policy(self, bench: Bench, policy: Policy | None, state: str) -> None:
        flow = Flow(bench)
        await flow.submit(node("p"), node("a", "p", gate={"policy": policy, "timeout_us": MINUTE}), node("b", "a"))
        await bench.runtime.advance(59.999_999)
        assert await bench.sweep() == []
        await bench.runtime.advance(0.000_001)
        consequences = await bench.store.sweep(9)
        assert await flow.states("a") == [state]
        assert {moved.job.id for moved in consequences.moved} >= ({"a"} if state != "scheduled" else set())
        assert await flow.states("b") == [
            {"completed": "scheduled", "scheduled": "pending"}.get(state, state),
        ]
        assert await bench.sweep() == [], "once"
        if state == "failed":
            error = (await bench.job("a")).error
            assert error is not None
            assert (error.code, error.category) == ("gate_timeout", Category.TIMEOUT)

    async def test_a_gate_that_opened_in_time_has_no_timeout_left(self, bench: Bench) -> None:
        flow = Flow(bench)
        await flow.submit(node("p"), node("a", "p", gate={"timeout_us": MINUTE}))
        await flow.end("p")
        await bench.runtime.advance(hours=1)
        assert await bench.sweep() == []
        assert await flow.states("a") == ["scheduled"]

    async def test_a_bounded_sweep_gives_up_the_oldest_first(self, bench: Bench) -> None:
        flow = Flow(bench)
        await flow.submit(node("p"), *(node(str(n), "p", gate={"timeout_us": (9 - n) * MINUTE}) for n in range(5)))
        await bench.runtime.advance(hours=1)
        given_up = [[moved.job.id for moved in await bench.sweep(2)] for _ in range(4)]
        assert given_up == [["4", "3"], ["2", "1"], ["0"], []]

    async def test_a_deadline_reaches_a_pending_job_too(self, bench: Bench) -> None:
        flow = Flow(bench)
        await flow.submit(node("p"), node("a", "p", ttl_us=MINUTE), node("b", "a"))
        await bench.runtime.advance(60)
        await bench.sweep()
        assert await flow.states("a", "b") == ["dead_letter", "failed"]

    async def test_triggering_a_pending_job_does_not_open_its_gate(self, bench: Bench) -> None:
        flow = Flow(bench)
        await flow.submit(node("p"), node("a", "p", delay_us=HOUR))
        await bench.store.update("default", "a", UpdateRequest(run_now=True))
        assert await flow.states("a") == ["pending"]
        await flow.end("p")
        assert await flow.states("a") == ["scheduled"]


async def _reason(bench: Bench, name: str = "after") -> str:
    job = await bench.job(name)
    assert job.error is not None
    return job.error.message
