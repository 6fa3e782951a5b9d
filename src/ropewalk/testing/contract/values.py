"""The value of a group."""

from __future__ import annotations

import asyncio

import pytest

from ropewalk.domain.jobs.states import Move
from ropewalk.domain.workflow.completion import CompletionPlan
from ropewalk.domain.workflow.group_value import KEPT_ONE_BY_ONE, Contribution, Reducer
from ropewalk.errors import Conflict
from ropewalk.ports.store.capabilities import WORKFLOWS
from ropewalk.ports.store.workflows import GroupContribution
from ropewalk.testing.contract.base import Contract, needs
from ropewalk.testing.contract.bench import Bench
from ropewalk.testing.contract.builders import settlement, tree
from ropewalk.testing.contract.workflow_bench import WorkflowBench, closed_by, node, plan

FOLDED: dict[Reducer, bytes] = {"count": b"3", "sum": b"6", "min": b"-1", "max": b"5"}


@needs(WORKFLOWS)
class GroupValueContract(Contract):
    """The value of a group is its last contribution, a final one, or an exact fold of all (C2)."""

    async def test_the_last_job_to_complete_decides_the_value(self, bench: Bench) -> None:
        workflow = await _family(bench, "a", "b")
        assert await workflow.value("root") is None
        await workflow.end("b", left=plan(value=b'"b"'))
        assert await workflow.value("root") == b'"b"'
        await workflow.end("a", left=plan(value=b'"a"'))
        assert await workflow.value("root") == b'"a"'
        assert (await workflow.group("root")).value.contributions == 2

    async def test_in_one_batch_the_order_of_the_settlements_decides_the_value(self, bench: Bench) -> None:
        workflow = await _family(bench, "a", "b", "c")
        jobs = [await workflow.running(name) for name in ("c", "a", "b")]
        await bench.settle_all("worker", [settlement(job, plan=plan(value=job.id.encode())) for job in jobs])
        assert await workflow.value("root") == b"b"

    async def test_a_job_without_a_value_changes_nothing(self, bench: Bench) -> None:
        workflow = await _family(bench, "a", "b")
        await workflow.end("a", left=plan(value=b"1"))
        await workflow.end("b", result=b"2")
        assert await workflow.value("root") == b"1"

    async def test_only_a_completion_contributes(self, bench: Bench) -> None:
        workflow = await _family(bench, "a", "b", "c")
        await workflow.end("a", Move.FAIL, plan(value=b"1"))
        await workflow.end("b", Move.RETRY, plan(value=b"1"))
        await workflow.end("c", Move.CANCEL, plan(value=b"1"))
        assert (await workflow.group("root")).value.contributions == 0

    async def test_a_final_value_is_not_replaced(self, bench: Bench) -> None:
        workflow = await _family(bench, "a", "b", "c")
        await workflow.end("a", left=plan(value=b"1", reducer="final"))
        await workflow.end("b", left=plan(value=b"2"))
        await workflow.end("c", left=plan(value=b"3", reducer="final"))
        value = (await workflow.group("root")).value
        assert (value.reducer, value.value, value.contributions) == ("final", b"1", 1)

    async def test_jobs_at_any_depth_contribute_to_the_group(self, bench: Bench) -> None:
        workflow = await _family(bench, "a")
        await workflow.end("a", left=plan(node("aa"), value=b"1", reducer="sum"))
        await workflow.end("aa", left=plan(then=node("next"), value=b"2", reducer="sum"))
        await workflow.end("next", left=plan(value=b"4", reducer="sum"))
        assert await workflow.value("root") == b"7"

    async def test_the_root_job_contributes_to_the_group(self, bench: Bench) -> None:
        workflow = WorkflowBench(bench)
        await workflow.submit(node("root"))
        await workflow.end("root", left=plan(node("a"), value=b"1"))
        assert await workflow.value("root") == b"1"

    async def test_whoever_depends_on_the_group_is_given_its_value(self, bench: Bench) -> None:
        workflow = await _family(bench, "a", "b")
        await workflow.submit(node("late", tree("root")), node("later", "root"))
        await workflow.end("a", left=plan(value=b"1", reducer="sum"))
        await workflow.end("b", left=plan(value=b"2", reducer="sum"))
        [found] = await bench.store.dependencies((await bench.job("late")).seq)
        assert found.group is not None
        assert found.group == await workflow.group("root")
        assert (found.group.value.value, found.contributions) == (b"3", ())
        [alone] = await bench.store.dependencies((await bench.job("later")).seq)
        assert alone.group is None, "of the job alone, its own result"

    async def test_whoever_depends_on_the_group_is_given_the_parts_of_its_value(self, bench: Bench) -> None:
        workflow = await _family(bench, "a", "b")
        await workflow.submit(node("late", tree("root")))
        await workflow.end("b", left=plan(value=b"2", reducer="list"))
        await workflow.end("a", left=plan(value=b"1", reducer="list"))
        [found] = await bench.store.dependencies((await bench.job("late")).seq)
        assert [each.value for each in found.contributions] == [b"2", b"1"]

    async def test_a_tree_inside_a_group_has_no_value_of_its_own(self, bench: Bench) -> None:
        workflow = WorkflowBench(bench)
        await workflow.submit(node("root"))
        await workflow.end("root", left=plan(node("a"), node("b", tree("a"))))
        await workflow.end("a", left=plan(node("aa"), value=b"1"))
        await workflow.end("aa", left=plan(value=b"2"))
        [found] = await bench.store.dependencies((await bench.job("b")).seq)
        assert (found.edge.parent_id, found.group) == ("a", None)

    @pytest.mark.parametrize("reducer", sorted(FOLDED))
    async def test_sums_and_extremes_are_folded_by_the_store(self, bench: Bench, reducer: Reducer) -> None:
        workflow = await _family(bench, "a", "b", "c")
        for name, number in (("a", b"5"), ("b", b"-1"), ("c", b"2")):
            await workflow.end(name, left=plan(value=number, reducer=reducer))
        value = (await workflow.group("root")).value
        assert (value.reducer, value.value, value.contributions) == (reducer, FOLDED[reducer], 3)
        assert await bench.store.contributions("default", "root") == []

    @pytest.mark.parametrize("reducer", sorted(KEPT_ONE_BY_ONE))
    async def test_contributions_that_the_reader_combines_are_kept_in_order(
        self, bench: Bench, reducer: Reducer
    ) -> None:
        workflow = await _family(bench, "a", "b", "c")
        for name in ("c", "a", "b"):
            await workflow.end(name, left=plan(value=name.encode(), reducer=reducer))
        assert (await workflow.group("root")).value.reducer == reducer
        kept = [GroupContribution(type="t", value=value) for value in (b"c", b"a", b"b")]
        assert await bench.store.contributions("default", "root") == kept

    async def test_a_root_without_children_that_appends_gets_a_group(self, bench: Bench) -> None:
        workflow = WorkflowBench(bench)
        await workflow.submit(node("root"))
        ended = await workflow.settle("root", Move.COMPLETE, plan(value=b"5", reducer="list"))
        assert closed_by(ended) == ["root"]
        assert await bench.store.contributions("default", "root") == [GroupContribution(type="t", value=b"5")]
        assert await workflow.counts("root") == (0, 1, 0, 0)

    async def test_contributions_that_fold_differently_are_a_conflict(self, bench: Bench) -> None:
        workflow = await _family(bench, "a", "b")
        await workflow.end("a", left=plan(value=b"1", reducer="sum"))
        await workflow.end("b", left=plan(value=b"2", reducer="max"))
        value = (await workflow.group("root")).value
        assert value.conflict is not None
        assert "'sum'" in value.conflict

    async def test_a_fold_over_an_outdated_value_is_refused_and_changes_nothing(self, bench: Bench) -> None:
        workflow = await _family(bench, "a", "b", "c")
        job = await workflow.running("a")
        await workflow.end("b", left=plan(value=b"1", reducer="custom", expected_version=0))
        before = await bench.job("a")
        outdated = plan(node("child"), value=b"2", reducer="custom", expected_version=0)
        settled = await bench.settle(job, plan=outdated)
        assert isinstance(settled.refused, Conflict)
        assert (settled.lost, settled.move, await bench.job("a")) == (None, None, before)
        assert await bench.find("child") is None
        assert await workflow.value("root") == b"1"
        again = await bench.settle(job, plan=plan(value=b"3", reducer="custom", expected_version=1))
        assert again.refused is None
        assert await workflow.value("root") == b"3"

    async def test_folds_in_one_batch_build_on_one_another(self, bench: Bench) -> None:
        workflow = await _family(bench, "a", "b")
        jobs = [await workflow.running(name) for name in ("a", "b")]
        fold = plan(value=b"1", reducer="custom", expected_version=0)
        first, second = await bench.settle_all("worker", [settlement(job, plan=fold) for job in jobs])
        assert first.refused is None
        assert isinstance(second.refused, Conflict)

    async def test_a_fold_that_fails_makes_the_group_fail(self, bench: Bench) -> None:
        """safe-10: its job completes, and what depends on the group is not given another value."""
        workflow = await _family(bench, "a", "b", "c")
        await workflow.submit(node("late", tree("root")), node("later", tree("a")))
        await workflow.end("a", left=plan(value=b"1", reducer="custom", expected_version=0))
        assert (await workflow.end("b", left=_failing(version=1))).refused is None
        value = (await workflow.group("root")).value
        assert (value.value, value.version, value.conflict) == (b"1", 2, "it raised")
        assert isinstance((await workflow.end("c", left=_failing(version=1))).refused, Conflict), (
            "over an outdated value"
        )
        await workflow.end("c", left=plan(value=b"2", reducer="custom", expected_version=2))
        assert await workflow.states("root", "a", "b", "c", "late", "later") == [
            *["completed"] * 4,
            "failed",
            "scheduled",
        ]
        assert (await workflow.group("root")).value.conflict == "it raised"
        await workflow.submit(node("afterwards", tree("root")))
        assert await workflow.states("afterwards") == ["failed"]

    async def test_a_sum_that_overflows_makes_the_group_fail(self, bench: Bench) -> None:
        """safe-10: the jobs settled with it complete."""
        workflow = await _family(bench, "a", "b", "c")
        jobs = [await workflow.running(name) for name in ("a", "b", "c")]
        much = plan(value=b"1e308", reducer="sum")
        settled = await bench.settle_all("worker", [settlement(job, plan=much) for job in jobs])
        assert [each.move for each in settled] == [Move.COMPLETE] * 3
        conflict = (await workflow.group("root")).value.conflict
        assert conflict is not None
        assert "over the largest float" in conflict

    async def test_contributions_made_at_once_are_all_counted(self, bench: Bench) -> None:
        """safe-10: exact, from two stores side by side."""
        names = [f"c{number}" for number in range(40)]
        workflow = await _family(bench, *names)
        benches = [bench, await bench.second()]
        jobs = [await workflow.running(name) for name in names]
        addition = plan(value=b"1", reducer="sum")
        answers = await asyncio.gather(
            *(
                benches[number % 2].store.settle("worker", [settlement(job, plan=addition)])
                for number, job in enumerate(jobs)
            )
        )
        assert await workflow.value("root") == b"40"
        assert [closed_by(each) for each in answers].count(["root"]) == 1


async def _family(bench: Bench, *names: str) -> WorkflowBench:
    """A completed root and these children of it."""
    workflow = WorkflowBench(bench)
    await workflow.submit(node("root"))
    await workflow.end("root", left=plan(*(node(name) for name in names)))
    return workflow


def _failing(*, version: int) -> CompletionPlan:
    contribution = Contribution(type="t", value=None, reducer="custom", expected_version=version, error="it raised")
    return CompletionPlan(contribution=contribution)
