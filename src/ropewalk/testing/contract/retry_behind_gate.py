"""Manual retries of jobs with unmet dependencies, and of jobs whose end is still being propagated."""

from __future__ import annotations

import asyncio
from typing import Final

import pytest

from ropewalk.domain.jobs.operations import (
    DEPENDANTS_UNRESOLVED,
    UNMET_DEPENDENCIES,
    EndRequest,
    RetryRequest,
    RetryStatus,
)
from ropewalk.domain.jobs.states import Move, State
from ropewalk.domain.search import Filter
from ropewalk.domain.time import HOUR, SECOND
from ropewalk.domain.workflow.dependency import Policy
from ropewalk.ports.store.capabilities import WORKFLOWS
from ropewalk.ports.store.operations import RetryAnswer
from ropewalk.testing.contract.base import Contract, needs
from ropewalk.testing.contract.bench import Bench
from ropewalk.testing.contract.builders import BOOM, chain, gate_on, new_job, tree
from ropewalk.testing.contract.workflow_bench import WorkflowBench, node, plan

ANY: Final = RetryRequest(include_cancelled=True)
FAN: Final = 2500
ROUNDS: Final = 20


@needs(WORKFLOWS)
class RetryBehindGateContract(Contract):
    """A manual retry starts no job whose dependencies are unmet (safe-8)."""

    @pytest.mark.parametrize("how", ["cancel", "fail", "deadline", "gate_timeout"])
    async def test_a_job_that_ended_before_its_parent_waits_for_it_again(self, bench: Bench, how: str) -> None:
        workflow = WorkflowBench(bench)
        timeout = {"timeout_us": 60 * SECOND} if how == "gate_timeout" else {}
        deadline = {"ttl_us": 60 * SECOND} if how == "deadline" else {}
        await workflow.submit(node("p", delay_us=HOUR), node("child", "p", gate=timeout, **deadline))
        match how:
            case "cancel":
                await bench.cancel("child")
            case "fail":
                await bench.store.end("default", "child", EndRequest(error=BOOM))
            case _:
                await bench.runtime.advance(60)
                await bench.store.sweep(99)
        answer = await _retry(bench, "child")
        assert (answer.status, answer.state) == (RetryStatus.QUEUED, State.PENDING)
        assert await bench.claim(9, types=["child"]) == []
        await bench.runtime.advance(hours=1)
        if how == "gate_timeout":
            await bench.store.sweep(99)
            assert await workflow.states("child") == ["failed"], "a new wait has a new timeout"
            await _retry(bench, "child")
        await workflow.end("p")
        assert await workflow.states("child") == ["scheduled"]

    async def test_a_new_wait_begins_with_the_whole_timeout(self, bench: Bench) -> None:
        workflow = WorkflowBench(bench)
        await workflow.submit(node("p"), node("child", "p", gate={"timeout_us": 60 * SECOND}))
        await bench.runtime.advance(50)
        await bench.cancel("child")
        await _retry(bench, "child")
        assert (await bench.job("child")).wake_at == bench.runtime.now() + 60 * SECOND

    @pytest.mark.parametrize("ids", [("p", "child"), ("child", "p")])
    async def test_a_parent_and_its_child_can_be_retried_in_one_call(self, bench: Bench, ids: tuple[str, ...]) -> None:
        workflow = WorkflowBench(bench)
        await workflow.submit(node("p"), node("child", "p"))
        await workflow.end("p", Move.FAIL)
        answers = await bench.store.retry("default", ids, ANY)
        assert {answer.id: answer.state for answer in answers} == {"p": State.SCHEDULED, "child": State.PENDING}
        assert [answer.id for answer in answers] == list(ids)
        await workflow.end("p")
        assert await workflow.states("child") == ["scheduled"]

    async def test_dependent_jobs_can_be_retried_in_one_call_in_any_order(self, bench: Bench) -> None:
        """A member of a tree may have been submitted after the job that waits for the tree."""
        workflow = WorkflowBench(bench)
        await workflow.submit(node("root"), node("after", tree("root")), node("last", chain("after")))
        await workflow.end("root", left=plan(node("a"), node("b", "a")))
        await workflow.end("a", Move.FAIL)
        assert await workflow.states("b", "after", "last") == ["failed"] * 3
        answers = await bench.store.retry("default", ["last", "after", "b", "a"], ANY)
        assert [answer.status for answer in answers] == [RetryStatus.QUEUED] * 4
        await workflow.end("a")
        assert await workflow.states("b", "after", "last") == ["scheduled", "pending", "pending"]
        await workflow.end_all("b", "after")
        assert await workflow.states("last") == ["scheduled"]

    @pytest.mark.parametrize("ids", [("b", "after"), ("after", "b")])
    async def test_a_gate_that_was_open_waits_for_parents_of_the_same_call(
        self, bench: Bench, ids: tuple[str, ...]
    ) -> None:
        workflow = WorkflowBench(bench)
        await workflow.submit(node("root"), node("after", tree("root"), gate={"when": "all_done"}))
        await workflow.end("root", left=plan(node("a"), node("b", "a")))
        await bench.cancel("after", "b")
        await workflow.end("a")
        answers = await bench.store.retry("default", ids, ANY)
        assert {answer.id: answer.state for answer in answers} == {"b": State.SCHEDULED, "after": State.PENDING}
        assert await workflow.states("b", "after") == ["scheduled", "pending"]
        await workflow.end("b")
        assert await workflow.states("after") == ["scheduled"]

    async def test_a_child_can_be_retried_after_its_parent(self, bench: Bench) -> None:
        workflow = WorkflowBench(bench)
        await workflow.submit(node("p"), node("early", "p"), node("late", "p"))
        await workflow.end("p", Move.FAIL)
        await _retry(bench, "p")
        assert (await _retry(bench, "early")).state is State.PENDING
        await workflow.end("p")
        assert await workflow.states("early", "late") == ["scheduled", "failed"]
        assert (await _retry(bench, "late")).state is State.SCHEDULED

    async def test_a_gate_that_can_no_longer_open_refuses_the_retry(self, bench: Bench) -> None:
        workflow = WorkflowBench(bench)
        await workflow.submit(node("p"), node("child", "p"))
        await workflow.end("p", Move.FAIL)
        before = await bench.job("child")
        answer = await _retry(bench, "child")
        assert (answer.status, answer.state) == (RetryStatus.NOT_RETRIABLE, State.FAILED)
        assert answer.reason == UNMET_DEPENDENCIES
        assert await bench.job("child") == before

    @pytest.mark.parametrize("gate", [{"when": "all_done"}, {"when": "any_success"}, {"policy": "run"}])
    async def test_a_gate_that_is_open_by_now_lets_the_retried_job_run(
        self, bench: Bench, gate: dict[str, str]
    ) -> None:
        """Its parents ended while it was cancelled."""
        workflow = WorkflowBench(bench)
        await workflow.submit(node("p"), node("q"), node("child", "p", "q", gate=gate))
        await bench.cancel("child")
        await workflow.end("p", Move.FAIL)
        await workflow.end("q")
        assert (await _retry(bench, "child")).state is State.SCHEDULED

    @pytest.mark.parametrize("policy", ["cancel", "skip"])
    async def test_a_retried_job_is_doomed_again_by_its_policy(self, bench: Bench, policy: Policy) -> None:
        workflow = WorkflowBench(bench)
        await workflow.submit(node("p"), node("child", "p", gate={"policy": policy}))
        await bench.cancel("child")
        assert (await _retry(bench, "child")).state is State.PENDING
        await workflow.end("p", Move.FAIL)
        assert await workflow.states("child") == ["cancelled" if policy == "cancel" else "completed"]

    async def test_a_deleted_parent_counts_by_how_it_ended(self, bench: Bench) -> None:
        workflow = WorkflowBench(bench)
        await workflow.submit(node("p"), node("q"), node("good", "p"), node("bad", "q"))
        await bench.cancel("good", "bad")
        await workflow.end("p")
        await workflow.end("q", Move.FAIL)
        await bench.store.delete("default", ["p", "q"])
        assert (await _retry(bench, "good")).state is State.SCHEDULED
        assert (await _retry(bench, "bad")).reason == UNMET_DEPENDENCIES

    async def test_a_child_retried_while_its_parent_ends_waits_for_that_end(self, bench: Bench) -> None:
        """The end is never lost, and nothing starts before it: whichever of the two comes first."""
        other = await bench.second()
        workflow = WorkflowBench(bench)
        for turn in range(ROUNDS):
            parent, child = f"p{turn}", f"child{turn}"
            await workflow.submit(node(parent), node(child, parent))
            await workflow.end(parent, Move.FAIL)
            await _retry(bench, parent)
            await workflow.start(parent)
            _, answer = await asyncio.gather(workflow.end(parent), _retry(other, child))
            assert answer.status is RetryStatus.QUEUED
            assert await workflow.states(parent, child) == ["completed", "scheduled"]

    async def test_a_job_that_had_started_starts_again(self, bench: Bench) -> None:
        workflow = WorkflowBench(bench)
        await workflow.submit(node("p"), node("child", "p", gate={"when": "all_done"}))
        await workflow.end_all("p", "child", move=Move.FAIL)
        await _retry(bench, "p")
        assert (await _retry(bench, "child")).state is State.SCHEDULED


@needs(WORKFLOWS)
class DeferredThenRetriedContract(Contract):
    """The end of a job with more than a thousand dependants is applied to all of them, although the job is retried
    (safe-9).
    """

    async def test_without_cascade_the_recorded_end_is_applied_first(self, bench: Bench) -> None:
        workflow = await _cancelled_above_a_fan(bench)
        refused = await _retry(bench, "p")
        assert (refused.status, refused.reason) == (RetryStatus.NOT_RETRIABLE, DEPENDANTS_UNRESOLVED)
        while (await bench.store.cascade(1000)).more:
            pass
        assert (await _retry(bench, "p")).status is RetryStatus.QUEUED
        await workflow.end("p")
        assert await _count(bench, State.CANCELLED) == FAN

    async def test_with_cascade_all_dependants_wait_again(self, bench: Bench) -> None:
        """And the deferred work of the former ending touches none of them."""
        workflow = await _cancelled_above_a_fan(bench)
        answer = await _retry(bench, "p", RetryRequest(include_cancelled=True, cascade=True))
        assert answer.status is RetryStatus.QUEUED
        while (await bench.store.cascade(1000)).more:
            pass
        assert await _count(bench, State.PENDING) == FAN
        await workflow.end("p")
        while (await bench.store.cascade(1000)).more:
            pass
        assert await _count(bench, State.SCHEDULED) == FAN

    async def test_new_dependants_wait_for_the_new_run_of_their_parent(self, bench: Bench) -> None:
        """Although deferred work that has nothing left to do is still recorded."""
        workflow = await _cancelled_above_a_fan(bench, 1000)
        assert (await _retry(bench, "p")).status is RetryStatus.QUEUED
        await workflow.submit(node("new", "p"))
        await bench.store.cascade(1000)
        assert await workflow.states("new") == ["pending"]
        await workflow.end("p")
        assert await workflow.states("new") == ["scheduled"]


async def _cancelled_above_a_fan(bench: Bench, size: int = FAN) -> WorkflowBench:
    """A parent that was cancelled, of whose dependants a thousand have been told."""
    workflow = WorkflowBench(bench)
    await workflow.submit(node("p"), *(new_job(gate=gate_on("p")) for _ in range(size)))
    await bench.cancel("p")
    assert await _count(bench, State.CANCELLED) == min(size, 1000)
    return workflow


async def _count(bench: Bench, state: State) -> int:
    return await bench.store.count("default", Filter(types=("t",), states=(state,)))


async def _retry(bench: Bench, job_id: str, request: RetryRequest = ANY) -> RetryAnswer:
    [answer] = await bench.store.retry("default", [job_id], request)
    return answer
