"""Manual retries inside groups, and of jobs whose end has doomed others."""

from __future__ import annotations

import pytest

from ropewalk.domain.jobs.operations import RetryRequest, RetryStatus
from ropewalk.domain.jobs.states import Move
from ropewalk.domain.workflow.dependency import Policy
from ropewalk.ports.store.capabilities import WORKFLOWS
from ropewalk.testing.contract.base import Contract, needs
from ropewalk.testing.contract.bench import Bench
from ropewalk.testing.contract.builders import chain, tree
from ropewalk.testing.contract.workflow_bench import WorkflowBench, closed_by, node, plan

CASCADE = RetryRequest(cascade=True)


@needs(WORKFLOWS)
class ReopenContract(Contract):
    """A retry opens the closed group of its job again, and the group closes once more (safe-10)."""

    async def test_the_group_of_a_retried_job_opens_and_closes_again(self, bench: Bench) -> None:
        workflow = await _family(bench, "a", "b")
        await workflow.end("a")
        assert closed_by(await workflow.settle("b", Move.FAIL)) == ["root"]
        assert await workflow.counts("root") == (0, 2, 1, 0)
        await _retry(bench, "b")
        group = await workflow.group("root")
        assert (group.generation, group.closed_at) == (2, None)
        assert await workflow.counts("root") == (1, 2, 0, 0)
        assert closed_by(await workflow.settle("b")) == ["root"]
        assert await workflow.counts("root") == (0, 3, 0, 0)

    async def test_a_retry_in_an_open_group_starts_no_new_generation(self, bench: Bench) -> None:
        workflow = await _family(bench, "a", "b")
        await workflow.end("a", Move.FAIL)
        await _retry(bench, "a")
        assert (await workflow.group("root")).generation == 1
        assert await workflow.closings(("a",), ("b",)) == [[], ["root"]]

    async def test_every_level_above_opens_again(self, bench: Bench) -> None:
        """And a tree that had failed succeeds in the end."""
        workflow = await _family(bench, "a")
        await workflow.end("a", left=plan(node("aa")))
        await workflow.end("aa", left=plan(node("aaa"), node("bbb")))
        await workflow.end("bbb")
        assert closed_by(await workflow.settle("aaa", Move.BURY)) == ["root"]
        await _retry(bench, "aaa")
        await workflow.submit(node("after", tree("a")), node("whole", tree("root")))
        assert await workflow.states("after", "whole") == ["pending", "pending"]
        assert closed_by(await workflow.settle("aaa")) == ["root"]
        assert await workflow.states("after", "whole") == ["scheduled", "scheduled"]

    async def test_a_root_that_failed_with_open_children_can_be_retried(self, bench: Bench) -> None:
        workflow = WorkflowBench(bench)
        await workflow.submit(node("root"))
        await workflow.spawn("root", node("a"))
        await workflow.end("root", Move.FAIL)
        await _retry(bench, "root")
        assert await workflow.counts("root") == (2, 0, 0, 0)
        assert await workflow.closings(("a",), ("root",)) == [[], ["root"]]
        assert (await workflow.group("root")).generation == 1

    async def test_a_root_that_failed_with_its_children_succeeds_with_them(self, bench: Bench) -> None:
        """What had broken the tree is counted once, and taken back once."""
        workflow = WorkflowBench(bench)
        await workflow.submit(node("root"))
        await workflow.spawn("root", node("a"))
        await workflow.end_all("a", "root", move=Move.FAIL)
        await _retry(bench, "root")
        await workflow.end("root")
        await workflow.submit(node("too-early", tree("root")))
        await _retry(bench, "a")
        await workflow.end("a")
        await workflow.submit(node("after", tree("root")))
        assert await workflow.states("too-early", "after") == ["failed", "scheduled"]
        assert (await workflow.group("root")).generation == 3

    async def test_the_group_of_a_retried_cancelled_job_opens_again(self, bench: Bench) -> None:
        workflow = await _family(bench, "a")
        await bench.cancel("a")
        assert await workflow.counts("root") == (0, 1, 0, 1)
        await _retry(bench, "a", RetryRequest(include_cancelled=True))
        assert await workflow.counts("root") == (1, 1, 0, 0)
        assert closed_by(await workflow.settle("a")) == ["root"]

    async def test_a_new_run_finds_the_children_that_the_old_one_spawned(self, bench: Bench) -> None:
        workflow = WorkflowBench(bench)
        await workflow.submit(node("root"))
        child = node("a", parent_id="root", spawn_key="k")
        await workflow.spawn("root", child)
        await workflow.end("root", Move.FAIL)
        await _retry(bench, "root")
        await workflow.spawn("root", child)
        assert await workflow.counts("root") == (2, 0, 0, 0)

    async def test_contributions_of_an_earlier_run_stay(self, bench: Bench) -> None:
        workflow = await _family(bench, "a", "b")
        await workflow.end("a", left=plan(value=b"1", reducer="sum"))
        await workflow.end("b", Move.FAIL)
        await _retry(bench, "b")
        await workflow.end("b", left=plan(value=b"2", reducer="sum"))
        assert await workflow.value("root") == b"3"


@needs(WORKFLOWS)
class CascadeRetryContract(Contract):
    """A retry leaves dependants that were doomed by its job as they are, unless it is a cascade (R16, safe-9)."""

    async def test_without_cascade_doomed_jobs_stay_settled(self, bench: Bench) -> None:
        workflow = WorkflowBench(bench)
        await workflow.submit(node("p"), node("a", "p"), node("late", "p", gate={"policy": "skip"}))
        await workflow.end("p", Move.FAIL)
        await _retry(bench, "p")
        await workflow.end("p")
        assert await workflow.states("a", "late") == ["failed", "completed"]

    @pytest.mark.parametrize("policy", ["fail", "cancel", "run"])
    async def test_with_cascade_doomed_jobs_wait_again(self, bench: Bench, policy: Policy) -> None:
        """One way through every kind of parent, transitively."""
        workflow = WorkflowBench(bench)
        await workflow.submit(
            node("p"), node("a", "p", gate={"policy": policy}), node("b", tree("a")), node("c", chain("b"))
        )
        await workflow.end("p", Move.FAIL)
        await _retry(bench, "p", CASCADE)
        assert await workflow.states("p", "a", "b", "c") == ["scheduled", "pending", "pending", "pending"]
        await workflow.end_all("p", "a", "b", "c")
        assert await workflow.states("p", "a", "b", "c") == ["completed"] * 4

    async def test_jobs_that_wait_again_can_be_doomed_again(self, bench: Bench) -> None:
        workflow = WorkflowBench(bench)
        await workflow.submit(node("p"), node("a", "p"))
        for _ in range(3):
            await workflow.end("p", Move.FAIL)
            assert await workflow.states("a") == ["failed"]
            await _retry(bench, "p", CASCADE)
            assert await workflow.states("a") == ["pending"]
        history = await bench.history("a")
        assert [entry.rev for entry in history] == list(range(1, (await bench.job("a")).rev + 1))

    async def test_parents_that_ended_in_the_meantime_count_for_a_retried_gate(self, bench: Bench) -> None:
        """live-3: a job that was settled already still learns how its other parents ended."""
        workflow = WorkflowBench(bench)
        await workflow.submit(node("p"), node("q"), node("a", "p", "q"), node("runs", "p", "q", gate={"policy": "run"}))
        await workflow.end("p", Move.FAIL)
        await workflow.end("q")
        await _retry(bench, "p", CASCADE)
        assert await workflow.states("a", "runs") == ["pending", "pending"]
        await workflow.end("p")
        assert await workflow.states("a", "runs") == ["scheduled", "scheduled"]

    async def test_a_doomed_job_stays_settled_while_another_parent_has_failed(self, bench: Bench) -> None:
        """Until that one is retried as well."""
        workflow = WorkflowBench(bench)
        await workflow.submit(node("p"), node("q"), node("a", "p", "q"))
        await workflow.end_all("p", "q", move=Move.FAIL)
        await _retry(bench, "p", CASCADE)
        assert await workflow.states("a") == ["failed"]
        await _retry(bench, "q", CASCADE)
        assert await workflow.states("a") == ["pending"]
        await workflow.end_all("q", "p")
        assert await workflow.states("a") == ["scheduled"]

    async def test_an_open_gate_stays_open_when_a_parent_is_retried(self, bench: Bench) -> None:
        workflow = WorkflowBench(bench)
        await workflow.submit(node("p"), node("q"), node("a", "p", "q", gate={"when": "any_success"}))
        await workflow.end("q")
        await workflow.end("p", Move.FAIL)
        await _retry(bench, "p", CASCADE)
        assert await workflow.states("a") == ["scheduled"]

    async def test_a_job_that_somebody_cancelled_stays_cancelled(self, bench: Bench) -> None:
        workflow = WorkflowBench(bench)
        await workflow.submit(node("p"), node("a", "p"), node("b", "p", gate={"when": "all_done"}))
        await bench.cancel("a", "b")
        await workflow.end("p", Move.FAIL)
        await _retry(bench, "p", CASCADE)
        assert await workflow.states("a", "b") == ["cancelled", "cancelled"]

    async def test_a_job_that_became_ready_stays_ready(self, bench: Bench) -> None:
        workflow = WorkflowBench(bench)
        await workflow.submit(node("p"), node("a", "p", gate={"when": "all_done"}))
        await workflow.end("p", Move.FAIL)
        await _retry(bench, "p", CASCADE)
        assert await workflow.states("a") == ["scheduled"]

    async def test_a_dependant_that_had_started_is_left_alone(self, bench: Bench) -> None:
        workflow = WorkflowBench(bench)
        await workflow.submit(node("p"), node("a", "p", gate={"when": "all_done"}), node("b", "a"))
        await workflow.end("p", Move.FAIL)
        await workflow.end("a", Move.FAIL)
        await _retry(bench, "p", CASCADE)
        assert await workflow.states("a", "b") == ["failed", "failed"]
        await workflow.end("p")
        assert await workflow.states("a", "b") == ["failed", "failed"]

    async def test_groups_of_doomed_jobs_open_again(self, bench: Bench) -> None:
        workflow = WorkflowBench(bench)
        await workflow.submit(node("root"))
        await workflow.end("root", left=plan(node("a"), node("b", "a")))
        assert closed_by(await workflow.settle("a", Move.FAIL)) == ["root"]
        await _retry(bench, "a", CASCADE)
        assert await workflow.counts("root") == (2, 1, 0, 0)
        assert (await workflow.group("root")).generation == 2
        assert await workflow.closings(("a",), ("b",)) == [[], ["root"]]


async def _family(bench: Bench, *names: str) -> WorkflowBench:
    workflow = WorkflowBench(bench)
    await workflow.submit(node("root"))
    await workflow.end("root", left=plan(*(node(name) for name in names)))
    return workflow


async def _retry(bench: Bench, job_id: str, request: RetryRequest | None = None) -> None:
    [answer] = await bench.store.retry("default", [job_id], request or RetryRequest())
    assert answer.status is RetryStatus.QUEUED
