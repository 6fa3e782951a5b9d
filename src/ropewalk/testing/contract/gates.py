"""Gates under every condition, with parents that end in every way."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final

import pytest

from ropewalk.domain.jobs.flags import SKIPPED
from ropewalk.domain.jobs.operations import EndRequest
from ropewalk.domain.jobs.record import NewJob
from ropewalk.domain.jobs.states import Move
from ropewalk.domain.time import HOUR
from ropewalk.domain.workflow.dependency import Ending, NamedCondition, Of, Policy
from ropewalk.ports.store.capabilities import WORKFLOWS
from ropewalk.testing.contract.base import Contract, needs
from ropewalk.testing.contract.bench import Bench
from ropewalk.testing.contract.builders import BOOM, settlement
from ropewalk.testing.contract.workflow_bench import WorkflowBench, node


async def _complete(workflow: WorkflowBench, name: str) -> None:
    await workflow.end(name)


async def _fail(workflow: WorkflowBench, name: str) -> None:
    await workflow.end(name, Move.FAIL)


async def _bury(workflow: WorkflowBench, name: str) -> None:
    await workflow.end(name, Move.BURY)


async def _cancel_waiting(workflow: WorkflowBench, name: str) -> None:
    await workflow.bench.cancel(name)


async def _cancel_running(workflow: WorkflowBench, name: str) -> None:
    await workflow.end(name, Move.CANCEL)


async def _expire(workflow: WorkflowBench, name: str) -> None:
    await workflow.bench.runtime.advance(hours=2)
    await workflow.bench.sweep()


async def _expire_in_the_claim(workflow: WorkflowBench, name: str) -> None:
    await workflow.bench.runtime.advance(hours=2)
    assert await workflow.bench.claim(types=[name]) == []


async def _lose(workflow: WorkflowBench, name: str) -> None:
    await workflow.lose(name)


async def _lose_in_the_claim(workflow: WorkflowBench, name: str) -> None:
    await workflow.start(name)
    await workflow.bench.runtime.advance(60)
    assert await workflow.bench.claim(types=["nothing"]) == []


async def _skip(workflow: WorkflowBench, name: str) -> None:
    """Its own gate is given up, and it asked to be passed over."""
    await workflow.end(f"before-{name}", Move.FAIL)


async def _resolve(workflow: WorkflowBench, name: str) -> None:
    await workflow.bench.store.end("default", name, EndRequest())


async def _resolve_failed(workflow: WorkflowBench, name: str) -> None:
    await workflow.bench.store.end("default", name, EndRequest(error=BOOM))


async def _fail_and_delete(workflow: WorkflowBench, name: str) -> None:
    await workflow.end(name, Move.FAIL)
    await workflow.bench.store.delete("default", [name])


async def _complete_and_delete(workflow: WorkflowBench, name: str) -> None:
    await workflow.end(name)
    await workflow.bench.store.delete("default", [name])


WAYS: Final[dict[str, tuple[Callable[[WorkflowBench, str], Awaitable[None]], Ending]]] = {
    "completed": (_complete, Ending.COMPLETED),
    "failed": (_fail, Ending.FAILED),
    "dead_letter": (_bury, Ending.FAILED),
    "cancelled before it started": (_cancel_waiting, Ending.CANCELLED),
    "cancelled while it ran": (_cancel_running, Ending.CANCELLED),
    "expired": (_expire, Ending.FAILED),
    "expired in a claim": (_expire_in_the_claim, Ending.FAILED),
    "worker lost": (_lose, Ending.FAILED),
    "worker lost, found by a claim": (_lose_in_the_claim, Ending.FAILED),
    "skipped": (_skip, Ending.COMPLETED),
    "resolved": (_resolve, Ending.COMPLETED),
    "resolved as failed": (_resolve_failed, Ending.FAILED),
    "failed and deleted": (_fail_and_delete, Ending.FAILED),
    "completed and deleted": (_complete_and_delete, Ending.COMPLETED),
}
CONDITIONS: Final[list[NamedCondition | tuple[int, Of]]] = [
    "all_success",
    "all_done",
    "any_success",
    "any_done",
    (2, "success"),
    (2, "done"),
]
ENDS: Final[dict[Policy | None, str]] = {
    "fail": "failed",
    "cancel": "cancelled",
    "skip": "completed",
    "run": "scheduled",
}

every_way = pytest.mark.parametrize("way", list(WAYS))
every_condition = pytest.mark.parametrize("when", CONDITIONS, ids=str)


@needs(WORKFLOWS)
class GateContract(Contract):
    """A job starts only when its gate is open, and is settled at once when the gate can no longer open (safe-8,
    safe-9).
    """

    @every_way
    @every_condition
    async def test_a_gate_over_three_parents_decides_after_each_end(
        self, bench: Bench, when: NamedCondition | tuple[int, Of], way: str
    ) -> None:
        """One ends in this way, then one completes, then one fails: after each step the gate says what it must."""
        workflow = WorkflowBench(bench)
        await _submit(
            workflow, way, node("q"), node("r"), node("child", "p", "q", "r", gate={"when": when, "policy": "fail"})
        )
        end, ending = WAYS[way]
        await end(workflow, "p")
        assert await workflow.states("child") == [_expected(when, [ending])]
        await workflow.end("q")
        assert await workflow.states("child") == [_expected(when, [ending, Ending.COMPLETED])]
        await workflow.end("r", Move.FAIL)
        assert await workflow.states("child") == [_expected(when, [ending, Ending.COMPLETED, Ending.FAILED])]

    @every_way
    @pytest.mark.parametrize("policy", [None, *ENDS])
    async def test_a_gate_that_can_no_longer_open_follows_its_policy(
        self, bench: Bench, policy: Policy | None, way: str
    ) -> None:
        workflow = WorkflowBench(bench)
        await _submit(workflow, way, node("q"), node("child", "p", "q", gate={"policy": policy}))
        end, ending = WAYS[way]
        await end(workflow, "p")
        if ending is Ending.COMPLETED:
            assert await workflow.states("child") == ["pending"]
            return
        unnamed = "cancelled" if ending is Ending.CANCELLED else "failed"
        assert await workflow.states("child") == [ENDS.get(policy, unnamed)]
        child = await bench.job("child")
        assert bool(child.flags & SKIPPED) == (policy == "skip")
        reason = (await bench.history("child"))[-1].reason or ""
        assert "it depends on p" in reason
        if child.status.value == "failed":
            assert child.error is not None
            assert (child.error.code, child.error.context) == (
                "dependency_failed",
                {"parent": "p", "ending": ending.value},
            )
        await workflow.end("q")
        assert await workflow.states("child") == [ENDS.get(policy, unnamed)], "decided once"

    @every_way
    async def test_a_parent_that_ended_before_the_submission_counts(self, bench: Bench, way: str) -> None:
        """safe-9: the gate is decided when it is submitted."""
        workflow = WorkflowBench(bench)
        await _submit(workflow, way)
        end, ending = WAYS[way]
        await end(workflow, "p")
        if way.endswith("deleted"):
            return
        [answer] = await bench.submit(node("child", "p"))
        expected = {Ending.COMPLETED: "scheduled", Ending.FAILED: "failed", Ending.CANCELLED: "cancelled"}[ending]
        assert (answer.state.value, await workflow.states("child")) == (expected, [expected])

    async def test_a_pending_job_is_not_given_out_and_a_released_one_at_once(self, bench: Bench) -> None:
        workflow = WorkflowBench(bench)
        await workflow.submit(node("p"), node("child", "p", queue="q"))
        assert await bench.claim(9, types=["child"]) == []
        ended = await workflow.settle("p")
        assert (ended.consequences.ready, ended.consequences.moved) == (["q"], [])
        assert (await workflow.start("child")).rev == 2, "becoming ready is no move"

    async def test_the_answer_names_the_jobs_that_were_doomed(self, bench: Bench) -> None:
        workflow = WorkflowBench(bench)
        await workflow.submit(node("p"), node("child", "p"), node("grandchild", "child"))
        ended = await workflow.settle("p", Move.FAIL)
        assert [(moved.job.id, moved.move) for moved in ended.consequences.moved] == [
            ("child", Move.DOOM),
            ("grandchild", Move.DOOM),
        ]

    async def test_a_delay_still_holds_after_the_gate_has_opened(self, bench: Bench) -> None:
        workflow = WorkflowBench(bench)
        await workflow.submit(node("p"), node("child", "p", delay_us=HOUR))
        await workflow.end("p")
        assert await workflow.states("child") == ["delayed"]
        await bench.runtime.advance(hours=1)
        assert (await workflow.start("child")).id == "child"

    @pytest.mark.parametrize(("move", "state"), [(Move.COMPLETE, "scheduled"), (Move.FAIL, "failed")])
    async def test_parents_that_end_in_one_batch_all_count(self, bench: Bench, move: Move, state: str) -> None:
        """In one batch, and all before the job is submitted: each counts."""
        workflow = WorkflowBench(bench)
        names = ("p", "q", "r")
        await workflow.submit(*map(node, names), node("child", *names), node("all", *names, gate={"when": "all_done"}))
        jobs = [await workflow.running(name) for name in names]
        settled = await bench.settle_all("worker", [settlement(job, move, error=BOOM) for job in jobs])
        assert len(settled) == 3
        await workflow.submit(node("late", *names), node("late-all", *names, gate={"when": "all_done"}))
        assert await workflow.states("child", "late", "all", "late-all") == [state, state, "scheduled", "scheduled"]

    async def test_a_retried_parent_has_not_ended(self, bench: Bench) -> None:
        workflow = WorkflowBench(bench)
        await workflow.submit(node("p"), node("child", "p"))
        for move in (Move.RETRY, Move.DEFER, Move.RELEASE, Move.LOSE):
            await workflow.end("p", move)
            assert await workflow.states("child") == ["pending"]

    async def test_a_pending_job_can_be_cancelled_before_its_parents_end(self, bench: Bench) -> None:
        workflow = WorkflowBench(bench)
        await workflow.submit(node("p"), node("q"), node("child", "p", "q"), node("grandchild", "child"))
        await bench.cancel("child")
        assert await workflow.states("child", "grandchild") == ["cancelled", "cancelled"]
        await workflow.end("p")
        await workflow.end("q", Move.FAIL)
        assert (await bench.job("child")).last_move is Move.CANCEL


async def _submit(workflow: WorkflowBench, way: str, *others: NewJob) -> None:
    """These, and a job p that can end in this way."""
    fields: dict[str, Any] = {"max_crashes": 1}
    if way.startswith("expired"):
        fields["ttl_us"] = HOUR
    if way != "skipped":
        await workflow.submit(node("p", **fields), *others)
        return
    await workflow.submit(node("before-p"), node("p", "before-p", gate={"policy": "skip"}), *others)


def _expected(when: NamedCondition | tuple[int, Of], ended: list[Ending]) -> str:
    """The state of a job behind three parents of which these have ended."""
    good, open_ = ended.count(Ending.COMPLETED), 3 - len(ended)
    match when:
        case "all_success":
            holds, may_hold = good == 3, good + open_ == 3
        case "all_done":
            holds, may_hold = open_ == 0, True
        case "any_success":
            holds, may_hold = good > 0, good + open_ > 0
        case "any_done":
            holds, may_hold = bool(ended), True
        case (number, "success"):
            holds, may_hold = good >= number, good + open_ >= number
        case (number, "done"):
            holds, may_hold = len(ended) >= number, True
    if holds:
        return "scheduled"
    return "pending" if may_hold else "failed"
