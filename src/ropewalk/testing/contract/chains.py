"""A job and its continuations, one after another."""

from __future__ import annotations

from itertools import pairwise

import pytest

from ropewalk.domain.jobs.operations import RetryRequest
from ropewalk.domain.jobs.states import Move
from ropewalk.domain.workflow.dependency import Ending
from ropewalk.errors import Conflict
from ropewalk.ports.store.capabilities import WORKFLOWS
from ropewalk.testing.contract.base import Contract, needs
from ropewalk.testing.contract.bench import Bench
from ropewalk.testing.contract.builders import chain, keyed, settlement, tree
from ropewalk.testing.contract.workflow_bench import WorkflowBench, closed_by, node, plan


@needs(WORKFLOWS)
class ChainContract(Contract):
    """A job continues at most once, when it completes, and the members of its chain are numbered (C5)."""

    async def test_members_of_a_chain_are_numbered_and_listed_in_order(self, bench: Bench) -> None:
        workflow = await _chain(bench, "a", "b", "c")
        for name in "abc":
            members = await bench.store.chain("default", name)
            assert [(job.id, job.chain_id, job.chain_index) for job in members] == [
                ("a", "a", 0),
                ("b", "a", 1),
                ("c", "a", 2),
            ]
        assert await workflow.states("a", "b", "c") == ["completed", "completed", "scheduled"]

    async def test_a_job_that_never_continued_is_a_chain_of_one(self, bench: Bench) -> None:
        workflow = WorkflowBench(bench)
        await workflow.submit(node("a"))
        assert [job.id for job in await bench.store.chain("default", "a")] == ["a"]
        assert await bench.store.chain("default", "missing") == []
        assert (await bench.job("a")).chain_id is None

    async def test_the_last_members_of_a_chain_can_be_read(self, bench: Bench) -> None:
        await _chain(bench, "a", "b", "c")
        ends = [await bench.store.chain("default", "b", last=last) for last in (1, 2, 3, 9)]
        assert [[job.id for job in end] for end in ends] == [["c"], ["b", "c"], ["a", "b", "c"], ["a", "b", "c"]]

    async def test_a_chain_is_part_of_its_group(self, bench: Bench) -> None:
        """However long: one more opens as one ends, and the group closes with the last."""
        workflow = WorkflowBench(bench)
        await workflow.submit(node("root"))
        await workflow.end("root", left=plan(node("c0")))
        for number in range(30):
            assert (
                await workflow.settle(f"c{number}", Move.COMPLETE, plan(then=node(f"c{number + 1}")))
            ).consequences.closed == []
            assert await workflow.counts("root") == (1, number + 2, 0, 0)
        job = await bench.job("c30")
        assert (job.group_id, job.chain_id, job.chain_index) == ("root", "c0", 30)
        assert closed_by(await workflow.settle("c30")) == ["root"]

    async def test_who_waits_for_a_chain_waits_for_its_end(self, bench: Bench) -> None:
        workflow = WorkflowBench(bench)
        await workflow.submit(node("a"), node("job", "a"), node("chain", chain("a")), node("tree", tree("a")))
        await workflow.end("a", left=plan(then=node("b")))
        assert await workflow.states("job", "chain", "tree") == ["scheduled", "pending", "pending"]
        await workflow.submit(node("late", chain("b")), node("early", chain("a")))
        await workflow.end("b", left=plan(node("side"), then=node("c")))
        assert await workflow.states("chain", "tree", "late", "early") == ["pending"] * 4
        await workflow.end("c", result=b"3")
        assert await workflow.states("chain", "late", "early") == ["scheduled"] * 3
        assert await workflow.states("tree") == ["pending"], "its side job is open"
        [found] = await bench.store.dependencies((await bench.job("late")).seq)
        assert found.job is not None
        assert (found.edge.parent_id, found.edge.ending, found.job.id, found.job.result) == (
            "a",
            Ending.COMPLETED,
            "c",
            b"3",
        )

    @pytest.mark.parametrize("move", [Move.FAIL, Move.BURY, Move.CANCEL])
    async def test_a_failure_in_the_middle_ends_a_chain(self, bench: Bench, move: Move) -> None:
        workflow = await _chain(bench, "a", "b")
        await workflow.submit(node("after", chain("a")))
        ended = await workflow.settle("b", move)
        assert closed_by(ended) == ["a"]
        assert await workflow.states("after") == ["cancelled" if move is Move.CANCEL else "failed"]

    async def test_a_chain_whose_member_is_retried_continues_once(self, bench: Bench) -> None:
        """safe-5: what a stale attempt continues with is not written."""
        workflow = WorkflowBench(bench)
        await workflow.submit(node("a"), node("after", chain("a")))
        old = await workflow.start("a")
        await workflow.end("a", Move.RETRY, plan(then=node("b")))
        await workflow.end("a", left=plan(then=node("c")))
        stale = await bench.settle(old, plan=plan(then=node("d")))
        assert stale.lost is not None
        assert [job.id for job in await bench.store.chain("default", "a")] == ["a", "c"]
        assert [await bench.find(name) for name in "bd"] == [None, None]

    async def test_one_lease_settled_twice_continues_once(self, bench: Bench) -> None:
        workflow = WorkflowBench(bench)
        await workflow.submit(node("a"))
        job = await workflow.start("a")
        twice = [settlement(job, plan=plan(then=node(name))) for name in "bc"]
        first, second = await bench.settle_all("worker", twice)
        assert (first.move, second.lost is not None) == (Move.COMPLETE, True)
        assert await bench.find("c") is None

    async def test_a_chain_does_not_continue_with_a_job_that_already_exists(self, bench: Bench) -> None:
        workflow = WorkflowBench(bench)
        await workflow.submit(node("a"), node("b"))
        settled = await workflow.end("a", left=plan(then=node("b")))
        assert isinstance(settled.refused, Conflict)
        assert await workflow.states("a") == ["running"]

    async def test_a_continuation_takes_over_the_priority_of_its_predecessor(self, bench: Bench) -> None:
        workflow = WorkflowBench(bench)
        await workflow.submit(node("a", priority=7))
        await workflow.end("a", left=plan(then=node("b", inherits_priority=True)))
        await workflow.end("b", left=plan(then=node("c", priority=1)))
        assert [(await bench.job(name)).priority for name in "abc"] == [7, 7, 1]

    async def test_a_continuation_may_wait_for_something(self, bench: Bench) -> None:
        workflow = WorkflowBench(bench)
        await workflow.submit(node("p"))
        await workflow.submit(node("a"))
        await workflow.end("a", left=plan(then=node("b", "p")))
        assert await workflow.states("b") == ["pending"]
        await workflow.end("p", Move.FAIL)
        assert await workflow.states("b") == ["failed"]
        assert (await workflow.group("a")).closed_at is not None

    async def test_a_child_and_the_continuation_cannot_share_an_idempotency_key(self, bench: Bench) -> None:
        """safe-12: both are written with the same ending, so neither would find the other."""
        workflow = WorkflowBench(bench)
        await workflow.submit(node("a"))
        child, following = keyed("k", type="b", id="child"), keyed("k", type="b", id="following")
        assert isinstance((await workflow.end("a", left=plan(child, then=following))).refused, Conflict)
        assert (await workflow.end("a", left=plan(child, then=keyed("other", type="b")))).refused is None

    async def test_a_retried_last_member_continues_the_chain(self, bench: Bench) -> None:
        workflow = await _chain(bench, "a", "b")
        await workflow.end("b", Move.FAIL)
        await bench.store.retry("default", ["b"], RetryRequest())
        await workflow.end("b", left=plan(then=node("c")))
        assert [job.id for job in await bench.store.chain("default", "b")] == ["a", "b", "c"]
        assert closed_by(await workflow.settle("c")) == ["a"]
        assert (await workflow.group("a")).generation == 2


async def _chain(bench: Bench, *names: str) -> WorkflowBench:
    """Of these, the last one waiting."""
    workflow = WorkflowBench(bench)
    await workflow.submit(node(names[0]))
    for name, following in pairwise(names):
        await workflow.end(name, left=plan(then=node(following)))
    return workflow
