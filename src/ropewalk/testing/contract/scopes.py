"""What belongs to a group, and when it is over."""

from __future__ import annotations

import pytest

from ropewalk.domain.jobs.operations import EndRequest
from ropewalk.domain.jobs.record import CompensationSpec
from ropewalk.domain.jobs.states import Move, Status
from ropewalk.ports.store.capabilities import WORKFLOWS
from ropewalk.testing.contract.base import Contract, needs
from ropewalk.testing.contract.bench import Bench
from ropewalk.testing.contract.build import BOOM, settlement, tree
from ropewalk.testing.contract.flow import Flow, closed_by, node, plan


@needs(WORKFLOWS)
class ScopeContract(Contract):
    """safe-10: a group closes exactly once, when nothing in it is open."""

    async def test_a_job_alone_is_no_group_of_its_own(self, bench: Bench) -> None:
        """It has no record, and nothing closes with it."""
        flow = Flow(bench)
        await flow.submit(node("root"))
        ended = await flow.ended("root")
        assert closed_by(ended) == []
        assert await bench.store.groups("default", ["root", "missing"]) == {}
        assert await bench.store.contributions("default", "root") == []

    async def test_children_of_a_completion_join_and_close_their_group(self, bench: Bench) -> None:
        flow = Flow(bench)
        await flow.submit(node("root"))
        assert closed_by(await flow.ended("root", Move.COMPLETE, plan(node("a"), node("b")))) == []
        for name in ("a", "b"):
            child = await bench.job(name)
            assert child.group_id == "root"
        assert await flow.counts("root") == (2, 1, 0, 0)
        assert await flow.closings(("a",), ("b",)) == [[], ["root"]]
        group = await flow.group("root")
        assert (group.closed_at, group.generation, group.cancelled_by) == (bench.runtime.now(), 1, None)
        assert await flow.counts("root") == (0, 3, 0, 0)

    async def test_children_that_end_before_their_parent_leave_it_open(self, bench: Bench) -> None:
        flow = Flow(bench)
        await flow.submit(node("root"))
        await flow.spawn("root", node("a"), node("b"))
        assert await flow.counts("root") == (3, 0, 0, 0)
        assert await flow.closings(("a",), ("b",), ("root",)) == [[], [], ["root"]]

    async def test_a_failed_attempt_leaves_what_it_spawned_but_not_what_it_queued(self, bench: Bench) -> None:
        flow = Flow(bench)
        await flow.submit(node("root"))
        await flow.spawn("root", node("spawned"))
        await flow.end("root", Move.RETRY, plan(node("queued")))
        assert await bench.find("queued") is None
        assert await flow.counts("root") == (2, 0, 0, 0)

    async def test_groups_nest_and_close_from_the_inside_out(self, bench: Bench) -> None:
        """The whole closes with the last job at any depth, whoever ends first."""
        flow = Flow(bench)
        await flow.submit(node("root"))
        await flow.end("root", Move.COMPLETE, plan(node("a"), node("b")))
        await flow.submit(node("watch", tree("a")))
        await flow.end("a", Move.COMPLETE, plan(node("aa"), node("ab")))
        await flow.spawn("ab", node("aba"))
        assert await flow.counts("root") == (5 - 1, 2, 0, 0)
        assert await flow.closings(("b",), ("ab",), ("aa",)) == [[], [], []]
        assert await flow.states("watch") == ["pending"]
        ended = await flow.ended("aba")
        assert closed_by(ended) == ["root"]
        assert await flow.states("watch") == ["scheduled"], "a's tree is closed in the same transaction"
        assert await flow.counts("root") == (0, 6, 0, 0)

    async def test_a_tree_inside_is_over_before_the_whole(self, bench: Bench) -> None:
        flow = Flow(bench)
        await flow.submit(node("root"))
        await flow.end("root", Move.COMPLETE, plan(node("a"), node("b"), node("after", tree("a"))))
        await flow.end("a", Move.COMPLETE, plan(node("aa")))
        assert await flow.states("after") == ["pending"], "a has completed, its tree has not"
        await flow.end("aa")
        assert await flow.states("after") == ["scheduled"]
        assert (await flow.group("root")).closed_at is None

    async def test_every_end_counts_as_what_it_is(self, bench: Bench) -> None:
        flow = Flow(bench)
        names = ["done", "failed", "buried", "cancelled", "lost", "resolved", "expired"]
        await flow.submit(node("root"))
        children = [node(name, max_crashes=1, ttl_us=10**7 if name == "expired" else None) for name in names]
        await flow.end("root", Move.COMPLETE, plan(*children))
        await flow.end("done")
        await flow.end("failed", Move.FAIL)
        await flow.end("buried", Move.BURY)
        await flow.end("cancelled", Move.CANCEL)
        await bench.store.end("default", "resolved", EndRequest(error=BOOM))
        consequences = await flow.lose("lost")
        assert closed_by(consequences) == ["root"], "the sweep also found the passed deadline"
        assert await flow.counts("root") == (0, 2, 5, 1)

    @pytest.mark.parametrize("move", [Move.FAIL, Move.BURY])
    async def test_a_compensation_is_part_of_the_group(self, bench: Bench, move: Move) -> None:
        flow = Flow(bench)
        await flow.submit(node("root", on_failure=CompensationSpec(type="undo")))
        assert closed_by(await flow.ended("root", move)) == []
        undo = await bench.claim_one(types=["undo"])
        assert undo.group_id == "root"
        assert await flow.counts("root") == (1, 0, 1, 0)
        settled = await bench.store.settle("worker", [settlement(undo)])
        assert closed_by(settled) == ["root"]

    async def test_several_ends_in_one_batch_close_it_once(self, bench: Bench) -> None:
        flow = Flow(bench)
        await flow.submit(node("root"))
        await flow.spawn("root", *(node(f"c{number}") for number in range(5)))
        jobs = [await flow.held(name) for name in ("root", "c0", "c1", "c2", "c3", "c4")]
        settled = await bench.store.settle("worker", [settlement(job) for job in jobs])
        assert closed_by(settled) == ["root"]
        assert await flow.counts("root") == (0, 6, 0, 0)

    async def test_two_groups_in_one_batch_close_each_for_itself(self, bench: Bench) -> None:
        flow = Flow(bench)
        await flow.submit(node("one"), node("two"))
        for name in ("one", "two"):
            await flow.spawn(name, node(f"{name}-child"))
            await flow.end(name)
        jobs = [await flow.held(f"{name}-child") for name in ("one", "two")]
        settled = await bench.store.settle("worker", [settlement(job) for job in jobs])
        assert sorted(closed_by(settled)) == ["one", "two"]

    async def test_a_spawn_that_finds_its_child_adds_nothing(self, bench: Bench) -> None:
        flow = Flow(bench)
        await flow.submit(node("root"))
        child = node("a", parent_id="root", spawn_key="k")
        for _ in range(2):
            await flow.spawn("root", child)
        assert await flow.counts("root") == (2, 0, 0, 0)
        assert await flow.closings(("a",), ("root",)) == [[], ["root"]]

    async def test_a_stale_settlement_leaves_no_children(self, bench: Bench) -> None:
        """safe-5."""
        flow = Flow(bench)
        await flow.submit(node("root"))
        job = await flow.start("root")
        await flow.lose("root")
        settled = await bench.settle(job, plan=plan(node("a"), then=node("b")))
        assert settled.lost is not None
        assert [await bench.find(name) for name in ("a", "b")] == [None, None]

    async def test_the_claim_tells_what_closed_with_a_lost_lease(self, bench: Bench) -> None:
        flow = Flow(bench)
        await flow.submit(node("root", max_crashes=1))
        await flow.spawn("root", node("a"))
        await flow.end("a")
        await bench.runtime.advance(60)
        claimed = await bench.claimed(types=["other"])
        assert (closed_by(claimed), [moved.job.status for moved in claimed.moved]) == (["root"], [Status.DEAD_LETTER])
