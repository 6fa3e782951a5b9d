"""What may depend on what, and what a submission with gates is refused for."""

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
from ropewalk.testing.contract.build import chain, new_job, settlement, tree
from ropewalk.testing.contract.flow import Flow, node, plan


@needs(WORKFLOWS)
class GateRefusalContract(Contract):
    """safe-3: a graph is submitted entirely or not at all."""

    @pytest.mark.parametrize("ref", ["missing", tree("missing"), chain("missing")], ids=["job", "tree", "chain"])
    async def test_an_unknown_parent(self, bench: Bench, ref: Any) -> None:
        await _refused(bench, NotFound, "missing", node("a"), node("b", "a", ref))

    async def test_a_circle(self, bench: Bench) -> None:
        await _refused(bench, InvalidInput, "a → b → a", node("x"), node("a", "b"), node("b", "a"))

    async def test_too_deep(self, bench: Bench) -> None:
        line = [node("0"), *(node(str(n), str(n - 1), gate={"depth_max": 3}) for n in range(1, 5))]
        await bench.submit(*line[:4])
        await _refused(bench, LimitExceeded, "over 3", node("x"), line[4])

    async def test_depth_is_counted_along_the_longest_way(self, bench: Bench) -> None:
        await bench.submit(node("a"), node("b", "a"), node("c", "a", "b"), node("d", "a"))
        assert [(await bench.job(name)).depth for name in "abcd"] == [0, 1, 2, 1]

    async def test_the_same_id_with_other_content(self, bench: Bench) -> None:
        await bench.submit(node("p"))
        await _refused(bench, Conflict, "a", node("a", "p"), new_job("other", id="a"))

    async def test_a_refused_sequel_leaves_the_attempt_as_it_was(self, bench: Bench) -> None:
        flow = Flow(bench)
        await flow.submit(node("root"))
        job = await flow.start("root")
        before = await bench.stored_history("root")
        settled = await bench.settle(job, result=b"1", plan=plan(node("a"), node("b", "missing")))
        assert isinstance(settled.refused, NotFound)
        assert (settled.move, settled.lost, await bench.stored_history("root")) == (None, None, before)
        assert await bench.find("a") is None
        assert (await bench.settle(job, result=b"1")).move is Move.COMPLETE

    async def test_a_refused_neighbour_does_not_matter(self, bench: Bench) -> None:
        flow = Flow(bench)
        await flow.submit(node("one"), node("two"))
        one, two = [await flow.start(name) for name in ("one", "two")]
        refused, fine = await bench.settle_all(
            "worker",
            [settlement(one, plan=plan(node("a", "missing"))), settlement(two, plan=plan(node("b")))],
        )
        assert refused.refused is not None
        assert fine.move is Move.COMPLETE
        assert await flow.states("one", "two", "b") == ["running", "completed", "scheduled"]


@needs(WORKFLOWS)
class InsideContract(Contract):
    """C4, decision 12: from inside a group only what has ended, siblings, and groups opened earlier."""

    async def test_siblings(self, bench: Bench) -> None:
        flow = Flow(bench)
        await flow.submit(node("root"))
        await flow.spawn("root", node("a"))
        await flow.spawn("root", node("b", "a"))
        await flow.end("root", left=plan(node("d", "b", "c"), node("c", tree("a"))))
        assert await flow.states("a", "b", "c", "d") == ["scheduled", "pending", "pending", "pending"]
        await flow.end_all("a", "b", "c")
        assert await flow.states("d") == ["scheduled"]

    async def test_what_has_ended(self, bench: Bench) -> None:
        flow = Flow(bench)
        await flow.submit(node("root"), node("later"))
        await flow.end("later")
        await flow.spawn("root", node("a", "later"))
        assert await flow.states("a") == ["scheduled"]

    async def test_a_group_opened_before(self, bench: Bench) -> None:
        flow = Flow(bench)
        await flow.submit(node("older"))
        await flow.submit(node("root"))
        await flow.spawn("root", node("a", tree("older"), "older"))
        assert await flow.states("a") == ["pending"]
        await flow.end("older")
        assert await flow.states("a") == ["scheduled"]

    @pytest.mark.parametrize("parent", ["root", "uncle", "younger"])
    @pytest.mark.parametrize("ref", [str, tree, chain])
    async def test_anything_else_is_refused(self, bench: Bench, parent: str, ref: Any) -> None:
        """Its own group above it, another branch of it, or a group that came later."""
        flow = Flow(bench)
        await flow.submit(node("root"))
        await flow.submit(node("younger"))
        await flow.spawn("root", node("father"), node("uncle"))
        job = await flow.start("father")
        answer = await bench.answer(node("x"), node("a", ref(parent)), under=holder(job))
        assert isinstance(answer, InvalidInput)
        assert (answer.field, parent in str(answer)) == ("depends_on", True)
        assert await bench.find("x") is None

    async def test_a_root_may_wait_for_anything(self, bench: Bench) -> None:
        flow = Flow(bench)
        await flow.submit(node("root"))
        await flow.spawn("root", node("a"))
        await flow.submit(node("b", "a", tree("root"), chain("a")))
        await flow.end("a")
        assert await flow.states("b") == ["pending"]
        await flow.end("root")
        assert await flow.states("b") == ["scheduled"]


@needs(WORKFLOWS)
class GraphContract(Contract):
    """C4, safe-3: a whole graph in one submission, in any order."""

    @pytest.mark.parametrize("seed", range(6))
    async def test_a_graph_in_any_order(self, bench: Bench, seed: int) -> None:
        flow = Flow(bench)
        graph = [node("a"), node("b", "a"), node("c", "a"), node("d", "b", "c"), node("e", "d", "a")]
        jobs = list(permutations(graph))[seed * 19]
        answers = await bench.submit(*jobs)
        assert [answer.id for answer in answers] == [job.id for job in jobs]
        order: list[str] = ["a"]
        await flow.end("a")
        while ready := [name for name in "bcde" if (await flow.state(name)).value == "scheduled"]:
            order += ready
            await flow.end_all(*ready)
        assert order == list("abcde")

    async def test_what_it_waits_for_can_be_read_in_order(self, bench: Bench) -> None:
        flow = Flow(bench)
        await flow.submit(node("c"), node("a"), node("b"))
        await flow.submit(node("child", "b", tree("c"), "a", chain("b"), "b"))
        child = await bench.job("child")
        edges = await bench.store.edges([child.seq])
        assert [(edge.kind, edge.parent_id, edge.position, edge.ending) for edge in edges] == [
            (ParentKind.JOB, "b", 0, None),
            (ParentKind.TREE, "c", 1, None),
            (ParentKind.JOB, "a", 2, None),
            (ParentKind.CHAIN, "b", 3, None),
        ]
        await flow.end("c", result=b"3")
        await flow.end("b", result=b"2")
        await flow.end("a", result=b"1")
        found = await bench.store.dependencies(child.seq)
        assert [each.job.result for each in found if each.job is not None] == [b"2", b"3", b"1", b"2"]
        assert {each.edge.ending for each in found} == {Ending.COMPLETED}
        assert await bench.store.edges([]) == []

    async def test_a_missing_parent_counts_as_done_where_that_is_allowed(self, bench: Bench) -> None:
        flow = Flow(bench)
        await flow.submit(node("a"), node("child", "gone", "a", "lost", gate={"allow_missing": True}))
        assert await flow.states("child") == ["pending"]
        await flow.end("a", result=b"1")
        assert await flow.states("child") == ["scheduled"]
        found = await bench.store.dependencies((await bench.job("child")).seq)
        assert [(each.edge.kind, each.edge.parent_id, each.job is None) for each in found] == [
            (ParentKind.MISSING, "gone", True),
            (ParentKind.JOB, "a", False),
            (ParentKind.MISSING, "lost", True),
        ]

    async def test_a_parent_deleted_meanwhile_is_read_as_gone(self, bench: Bench) -> None:
        flow = Flow(bench)
        await flow.submit(node("a"), node("child", "a"))
        await flow.end_all("a", "child")
        await bench.store.delete("default", ["a"])
        [found] = await bench.store.dependencies((await bench.job("child")).seq)
        assert (found.job, found.edge.parent_id, found.edge.ending) == (None, "a", Ending.COMPLETED)

    async def test_a_duplicate_keeps_its_first_gate(self, bench: Bench) -> None:
        flow = Flow(bench)
        await flow.submit(node("a"), node("b"), node("child", "a"))
        [again] = await bench.submit(node("child", "b"))
        assert again.duplicate
        await flow.end("a")
        assert await flow.states("child") == ["scheduled"]

    async def test_the_highest_priority_of_its_parents_is_taken_over(self, bench: Bench) -> None:
        parents = [node("a", priority=5), node("b", priority=40), node("c", priority=-3)]
        await bench.submit(
            *parents,
            node("heir", "a", "b", "c", inherits_priority=True),
            node("its-own", "b", priority=1),
            node("second", "heir", inherits_priority=True),
        )
        assert [(await bench.job(name)).priority for name in ("heir", "its-own", "second")] == [40, 1, 40]

    async def test_priority_taken_over_is_order(self, bench: Bench) -> None:
        flow = Flow(bench)
        await flow.submit(node("urgent", priority=100), node("plain"))
        await flow.submit(node("heir", "urgent", inherits_priority=True), node("other", "plain"))
        await flow.end_all("plain", "urgent")
        assert [job.id for job in await bench.claim(2, types=["other", "heir"])] == ["heir", "other"]


async def _refused(bench: Bench, error: type[RopewalkError], told: str, *jobs: NewJob) -> None:
    answer = await bench.answer(*jobs)
    assert type(answer) is error
    assert told in str(answer)
    for job in jobs:
        assert await bench.find(job.id) is None
