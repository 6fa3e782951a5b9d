"""Which jobs belong to a group, and when it closes."""

from __future__ import annotations

import pytest

from ropewalk.domain.jobs.operations import EndRequest
from ropewalk.domain.jobs.record import CompensationSpec
from ropewalk.domain.jobs.states import Move, Status
from ropewalk.ports.store.capabilities import WORKFLOWS
from ropewalk.testing.contract.base import Contract, needs
from ropewalk.testing.contract.bench import Bench
from ropewalk.testing.contract.builders import BOOM, settlement, tree
from ropewalk.testing.contract.workflow_bench import WorkflowBench, closed_by, node, plan


@needs(WORKFLOWS)
class ScopeContract(Contract):
    """A group closes exactly once, when no job in it is open (safe-10)."""

    async def test_a_job_without_children_has_no_group_record(self, bench: Bench) -> None:
        """It has no record, and nothing closes with it."""
        workflow = WorkflowBench(bench)
        await workflow.submit(node("root"))
        ended = await workflow.settle("root")
        assert closed_by(ended) == []
        assert await bench.store.groups("default", ["root", "missing"]) == {}
        assert await bench.store.contributions("default", "root") == []

    async def test_children_of_a_completion_join_and_close_their_group(self, bench: Bench) -> None:
        workflow = WorkflowBench(bench)
        await workflow.submit(node("root"))
        assert closed_by(await workflow.settle("root", Move.COMPLETE, plan(node("a"), node("b")))) == []
        for name in ("a", "b"):
            child = await bench.job(name)
            assert child.group_id == "root"
        assert await workflow.counts("root") == (2, 1, 0, 0)
        assert await workflow.closings(("a",), ("b",)) == [[], ["root"]]
        group = await workflow.group("root")
        assert (group.closed_at, group.generation, group.cancelled_by) == (bench.runtime.now(), 1, None)
        assert await workflow.counts("root") == (0, 3, 0, 0)

    async def test_children_that_end_before_their_parent_leave_the_group_open(self, bench: Bench) -> None:
        workflow = WorkflowBench(bench)
        await workflow.submit(node("root"))
        await workflow.spawn("root", node("a"), node("b"))
        assert await workflow.counts("root") == (3, 0, 0, 0)
        assert await workflow.closings(("a",), ("b",), ("root",)) == [[], [], ["root"]]

    async def test_a_failed_attempt_leaves_what_it_spawned_but_not_what_it_queued(self, bench: Bench) -> None:
        workflow = WorkflowBench(bench)
        await workflow.submit(node("root"))
        await workflow.spawn("root", node("spawned"))
        await workflow.end("root", Move.RETRY, plan(node("queued")))
        assert await bench.find("queued") is None
        assert await workflow.counts("root") == (2, 0, 0, 0)

    async def test_nested_trees_close_from_the_inside_out(self, bench: Bench) -> None:
        """The whole closes with the last job at any depth, whoever ends first."""
        workflow = WorkflowBench(bench)
        await workflow.submit(node("root"))
        await workflow.end("root", Move.COMPLETE, plan(node("a"), node("b")))
        await workflow.submit(node("watch", tree("a")))
        await workflow.end("a", Move.COMPLETE, plan(node("aa"), node("ab")))
        await workflow.spawn("ab", node("aba"))
        assert await workflow.counts("root") == (5 - 1, 2, 0, 0)
        assert await workflow.closings(("b",), ("ab",), ("aa",)) == [[], [], []]
        assert await workflow.states("watch") == ["pending"]
        ended = await workflow.settle("aba")
        assert closed_by(ended) == ["root"]
        assert await workflow.states("watch") == ["scheduled"], "a's tree is closed in the same transaction"
        assert await workflow.counts("root") == (0, 6, 0, 0)

    async def test_a_tree_inside_a_group_closes_before_the_group(self, bench: Bench) -> None:
        workflow = WorkflowBench(bench)
        await workflow.submit(node("root"))
        await workflow.end("root", Move.COMPLETE, plan(node("a"), node("b"), node("after", tree("a"))))
        await workflow.end("a", Move.COMPLETE, plan(node("aa")))
        assert await workflow.states("after") == ["pending"], "a has completed, its tree has not"
        await workflow.end("aa")
        assert await workflow.states("after") == ["scheduled"]
        assert (await workflow.group("root")).closed_at is None

    async def test_every_kind_of_end_is_counted_in_the_group(self, bench: Bench) -> None:
        workflow = WorkflowBench(bench)
        names = ["done", "failed", "buried", "cancelled", "lost", "resolved", "expired"]
        await workflow.submit(node("root"))
        children = [node(name, max_crashes=1, ttl_us=10**7 if name == "expired" else None) for name in names]
        await workflow.end("root", Move.COMPLETE, plan(*children))
        await workflow.end("done")
        await workflow.end("failed", Move.FAIL)
        await workflow.end("buried", Move.BURY)
        await workflow.end("cancelled", Move.CANCEL)
        await bench.store.end("default", "resolved", EndRequest(error=BOOM))
        consequences = await workflow.lose("lost")
        assert closed_by(consequences) == ["root"], "the sweep also found the passed deadline"
        assert await workflow.counts("root") == (0, 2, 5, 1)

    @pytest.mark.parametrize("move", [Move.FAIL, Move.BURY])
    async def test_a_compensation_is_part_of_the_group(self, bench: Bench, move: Move) -> None:
        workflow = WorkflowBench(bench)
        await workflow.submit(node("root", on_failure=CompensationSpec(type="undo")))
        assert closed_by(await workflow.settle("root", move)) == []
        undo = await bench.claim_one(types=["undo"])
        assert undo.group_id == "root"
        assert await workflow.counts("root") == (1, 0, 1, 0)
        settled = await bench.store.settle("worker", [settlement(undo)])
        assert closed_by(settled) == ["root"]

    async def test_several_ends_in_one_batch_close_a_group_once(self, bench: Bench) -> None:
        workflow = WorkflowBench(bench)
        await workflow.submit(node("root"))
        await workflow.spawn("root", *(node(f"c{number}") for number in range(5)))
        jobs = [await workflow.running(name) for name in ("root", "c0", "c1", "c2", "c3", "c4")]
        settled = await bench.store.settle("worker", [settlement(job) for job in jobs])
        assert closed_by(settled) == ["root"]
        assert await workflow.counts("root") == (0, 6, 0, 0)

    async def test_two_groups_closed_in_one_batch_are_both_reported(self, bench: Bench) -> None:
        workflow = WorkflowBench(bench)
        await workflow.submit(node("one"), node("two"))
        for name in ("one", "two"):
            await workflow.spawn(name, node(f"{name}-child"))
            await workflow.end(name)
        jobs = [await workflow.running(f"{name}-child") for name in ("one", "two")]
        settled = await bench.store.settle("worker", [settlement(job) for job in jobs])
        assert sorted(closed_by(settled)) == ["one", "two"]

    async def test_a_repeated_spawn_adds_nothing_to_its_group(self, bench: Bench) -> None:
        workflow = WorkflowBench(bench)
        await workflow.submit(node("root"))
        child = node("a", parent_id="root", spawn_key="k")
        for _ in range(2):
            await workflow.spawn("root", child)
        assert await workflow.counts("root") == (2, 0, 0, 0)
        assert await workflow.closings(("a",), ("root",)) == [[], ["root"]]

    async def test_a_stale_settlement_leaves_no_children(self, bench: Bench) -> None:
        """safe-5."""
        workflow = WorkflowBench(bench)
        await workflow.submit(node("root"))
        job = await workflow.start("root")
        await workflow.lose("root")
        settled = await bench.settle(job, plan=plan(node("a"), then=node("b")))
        assert settled.lost is not None
        assert [await bench.find(name) for name in ("a", "b")] == [None, None]

    async def test_a_claim_names_the_groups_that_closed_with_a_lost_lease(self, bench: Bench) -> None:
        workflow = WorkflowBench(bench)
        await workflow.submit(node("root", max_crashes=1))
        await workflow.spawn("root", node("a"))
        await workflow.end("a")
        await bench.runtime.advance(60)
        claimed = await bench.claimed(types=["other"])
        assert (closed_by(claimed), [moved.job.status for moved in claimed.moved]) == (["root"], [Status.DEAD_LETTER])
