"""Which dependencies a submission may have, and for which it is refused."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest

from ropewalk.domain.jobs.record import NewJob
from ropewalk.domain.jobs.states import Move
from ropewalk.domain.workflow.dependency import Ending, ParentKind
from ropewalk.errors import Conflict, InvalidInput, LimitExceeded, NotFound, RopewalkError
from ropewalk.ports.store.capabilities import WORKFLOWS
from ropewalk.testing.contract.base import Contract, needs
from ropewalk.testing.contract.bench import Bench, holder
from ropewalk.testing.contract.builders import chain, new_job, settlement, tree
from ropewalk.testing.contract.workflow_bench import WorkflowBench, node, plan


@needs(WORKFLOWS)
class GateRefusalContract(Contract):
    """A graph is submitted entirely or not at all (safe-3)."""

    @pytest.mark.parametrize("ref", ["missing", tree("missing"), chain("missing")], ids=["job", "tree", "chain"])
    async def test_an_unknown_parent_is_refused(self, bench: Bench, ref: Any) -> None:
        await _refused(bench, NotFound, "missing", node("a"), node("b", "a", ref))

    async def test_a_circle_of_dependencies_is_refused(self, bench: Bench) -> None:
        await _refused(bench, InvalidInput, "a → b → a", node("x"), node("a", "b"), node("b", "a"))

    async def test_a_graph_that_is_too_deep_is_refused(self, bench: Bench) -> None:
        line = [node("0"), *(node(str(n), str(n - 1), gate={"depth_max": 3}) for n in range(1, 5))]
        await bench.submit(*line[:4])
        await _refused(bench, LimitExceeded, "over 3", node("x"), line[4])

    async def test_the_depth_of_a_graph_is_counted_along_the_longest_path(self, bench: Bench) -> None:
        await bench.submit(node("a"), node("b", "a"), node("c", "a", "b"), node("d", "a"))
        assert [(await bench.job(name)).depth for name in "abcd"] == [0, 1, 2, 1]

    async def test_a_repeated_id_with_other_content_refuses_the_graph(self, bench: Bench) -> None:
        await bench.submit(node("p"))
        await _refused(bench, Conflict, "a", node("a", "p"), new_job("other", id="a"))

    async def test_a_refused_completion_plan_leaves_the_attempt_as_it_was(self, bench: Bench) -> None:
        workflow = WorkflowBench(bench)
        await workflow.submit(node("root"))
        job = await workflow.start("root")
        before = await bench.stored_history("root")
        settled = await bench.settle(job, result=b"1", plan=plan(node("a"), node("b", "missing")))
        assert isinstance(settled.refused, NotFound)
        assert (settled.move, settled.lost, await bench.stored_history("root")) == (None, None, before)
        assert await bench.find("a") is None
        assert (await bench.settle(job, result=b"1")).move is Move.COMPLETE

    async def test_a_refused_graph_does_not_affect_its_neighbours(self, bench: Bench) -> None:
        workflow = WorkflowBench(bench)
        await workflow.submit(node("one"), node("two"))
        one, two = [await workflow.start(name) for name in ("one", "two")]
        refused, fine = await bench.settle_all(
            "worker",
            [settlement(one, plan=plan(node("a", "missing"))), settlement(two, plan=plan(node("b")))],
        )
        assert refused.refused is not None
        assert fine.move is Move.COMPLETE
        assert await workflow.states("one", "two", "b") == ["running", "completed", "scheduled"]


@needs(WORKFLOWS)
class InsideGroupContract(Contract):
    """A job inside a group may depend only on jobs that have ended, siblings, and groups opened earlier (C4, decision
    0012).
    """

    async def test_a_job_inside_a_group_may_depend_on_its_siblings(self, bench: Bench) -> None:
        workflow = WorkflowBench(bench)
        await workflow.submit(node("root"))
        await workflow.spawn("root", node("a"))
        await workflow.spawn("root", node("b", "a"))
        await workflow.end("root", left=plan(node("d", "b", "c"), node("c", tree("a"))))
        assert await workflow.states("a", "b", "c", "d") == ["scheduled", "pending", "pending", "pending"]
        await workflow.end_all("a", "b", "c")
        assert await workflow.states("d") == ["scheduled"]

    async def test_a_job_inside_a_group_may_depend_on_jobs_that_have_ended(self, bench: Bench) -> None:
        workflow = WorkflowBench(bench)
        await workflow.submit(node("root"), node("later"))
        await workflow.end("later")
        await workflow.spawn("root", node("a", "later"))
        assert await workflow.states("a") == ["scheduled"]

    async def test_a_job_inside_a_group_may_depend_on_a_group_that_opened_before(self, bench: Bench) -> None:
        workflow = WorkflowBench(bench)
        await workflow.submit(node("older"))
        await workflow.submit(node("root"))
        await workflow.spawn("root", node("a", tree("older"), "older"))
        assert await workflow.states("a") == ["pending"]
        await workflow.end("older")
        assert await workflow.states("a") == ["scheduled"]

    @pytest.mark.parametrize("parent", ["root", "uncle", "younger"])
    @pytest.mark.parametrize("ref", [str, tree, chain])
    async def test_a_job_inside_a_group_may_depend_on_nothing_else(self, bench: Bench, parent: str, ref: Any) -> None:
        """Its own group above it, another branch of it, or a group that came later."""
        workflow = WorkflowBench(bench)
        await workflow.submit(node("root"))
        await workflow.submit(node("younger"))
        await workflow.spawn("root", node("father"), node("uncle"))
        job = await workflow.start("father")
        answer = await bench.answer(node("x"), node("a", ref(parent)), under=holder(job))
        assert isinstance(answer, InvalidInput)
        assert (answer.field, parent in str(answer)) == ("depends_on", True)
        assert await bench.find("x") is None

    async def test_a_root_job_may_depend_on_anything(self, bench: Bench) -> None:
        workflow = WorkflowBench(bench)
        await workflow.submit(node("root"))
        await workflow.spawn("root", node("a"))
        await workflow.submit(node("b", "a", tree("root"), chain("a")))
        await workflow.end("a")
        assert await workflow.states("b") == ["pending"]
        await workflow.end("root")
        assert await workflow.states("b") == ["scheduled"]


@needs(WORKFLOWS)
class GraphContract(Contract):
    """One submission may contain a whole graph, with its jobs in any order (C4, safe-3)."""

    @pytest.mark.parametrize("seed", range(6))
    async def test_the_jobs_of_a_graph_may_come_in_any_order(self, bench: Bench, seed: int) -> None:
        workflow = WorkflowBench(bench)
        graph = [node("a"), node("b", "a"), node("c", "a"), node("d", "b", "c"), node("e", "d", "a")]
        jobs = list(permutations(graph))[seed * 19]
        answers = await bench.submit(*jobs)
        assert [answer.id for answer in answers] == [job.id for job in jobs]
        order: list[str] = ["a"]
        await workflow.end("a")
        while ready := [name for name in "bcde" if (await workflow.state(name)).value == "scheduled"]:
            order += ready
            await workflow.end_all(*ready)
        assert order == list("abcde")

    async def test_the_dependencies_of_a_job_can_be_read_in_order(self, bench: Bench) -> None:
        workflow = WorkflowBench(bench)
        await workflow.submit(node("c"), node("a"), node("b"))
        await workflow.submit(node("child", "b", tree("c"), "a", chain("b"), "b"))
        child = await bench.job("child")
        edges = await bench.store.edges([child.seq])
        assert [(edge.kind, edge.parent_id, edge.position, edge.ending) for edge in edges] == [
            (ParentKind.JOB, "b", 0, None),
            (ParentKind.TREE, "c", 1, None),
            (ParentKind.JOB, "a", 2, None),
            (ParentKind.CHAIN, "b", 3, None),
        ]
        await workflow.end("c", result=b"3")
        await workflow.end("b", result=b"2")
        await workflow.end("a", result=b"1")
        found = await bench.store.dependencies(child.seq)
        assert [each.job.result for each in found if each.job is not None] == [b"2", b"3", b"1", b"2"]
        assert {each.edge.ending for each in found} == {Ending.COMPLETED}
        assert await bench.store.edges([]) == []

    async def test_a_missing_parent_counts_as_done_where_that_is_allowed(self, bench: Bench) -> None:
        workflow = WorkflowBench(bench)
        await workflow.submit(node("a"), node("child", "gone", "a", "lost", gate={"allow_missing": True}))
        assert await workflow.states("child") == ["pending"]
        await workflow.end("a", result=b"1")
        assert await workflow.states("child") == ["scheduled"]
        found = await bench.store.dependencies((await bench.job("child")).seq)
        assert [(each.edge.kind, each.edge.parent_id, each.job is None) for each in found] == [
            (ParentKind.MISSING, "gone", True),
            (ParentKind.JOB, "a", False),
            (ParentKind.MISSING, "lost", True),
        ]

    async def test_a_parent_deleted_meanwhile_is_read_as_gone(self, bench: Bench) -> None:
        workflow = WorkflowBench(bench)
        await workflow.submit(node("a"), node("child", "a"))
        await workflow.end_all("a", "child")
        await bench.store.delete("default", ["a"])
        [found] = await bench.store.dependencies((await bench.job("child")).seq)
        assert (found.job, found.edge.parent_id, found.edge.ending) == (None, "a", Ending.COMPLETED)

    async def test_a_duplicate_keeps_its_first_gate(self, bench: Bench) -> None:
        workflow = WorkflowBench(bench)
        await workflow.submit(node("a"), node("b"), node("child", "a"))
        [again] = await bench.submit(node("child", "b"))
        assert again.duplicate
        await workflow.end("a")
        assert await workflow.states("child") == ["scheduled"]

    async def test_a_job_takes_over_the_highest_priority_of_its_parents(self, bench: Bench) -> None:
        parents = [node("a", priority=5), node("b", priority=40), node("c", priority=-3)]
        await bench.submit(
            *parents,
            node("heir", "a", "b", "c", inherits_priority=True),
            node("its-own", "b", priority=1),
            node("second", "heir", inherits_priority=True),
        )
        assert [(await bench.job(name)).priority for name in ("heir", "its-own", "second")] == [40, 1, 40]

    async def test_a_priority_that_was_taken_over_decides_the_order(self, bench: Bench) -> None:
        workflow = WorkflowBench(bench)
        await workflow.submit(node("urgent", priority=100), node("plain"))
        await workflow.submit(node("heir", "urgent", inherits_priority=True), node("other", "plain"))
        await workflow.end_all("plain", "urgent")
        assert [job.id for job in await bench.claim(2, types=["other", "heir"])] == ["heir", "other"]


async def _refused(bench: Bench, error: type[RopewalkError], told: str, *jobs: NewJob) -> None:
    answer = await bench.answer(*jobs)
    assert type(answer) is error
    assert told in str(answer)
    for job in jobs:
        assert await bench.find(job.id) is None
