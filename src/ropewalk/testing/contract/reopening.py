"""A finished job starts over: groups open again, and what it had doomed may wait again."""

from __future__ import annotations

import pytest

from ropewalk.domain.jobs.operations import RetryRequest, RetryStatus
from ropewalk.domain.jobs.states import Move
from ropewalk.domain.workflow.dependency import Policy
from ropewalk.ports.store.capabilities import WORKFLOWS
from ropewalk.testing.contract.base import Contract, needs
from ropewalk.testing.contract.bench import Bench
from ropewalk.testing.contract.build import chain, tree
from ropewalk.testing.contract.flow import Flow, closed_by, node, plan

CASCADE = RetryRequest(cascade=True)


@needs(WORKFLOWS)
class ReopenContract(Contract):
    """safe-10: once per reopening."""

    async def test_its_group_opens_and_closes_again(self, bench: Bench) -> None:
        flow = await _family(bench, "a", "b")
        await flow.end("a")
        assert closed_by(await flow.ended("b", Move.FAIL)) == ["root"]
        assert await flow.counts("root") == (0, 2, 1, 0)
        await _retry(bench, "b")
        group = await flow.group("root")
        assert (group.generation, group.closed_at) == (2, None)
        assert await flow.counts("root") == (1, 2, 0, 0)
        assert closed_by(await flow.ended("b")) == ["root"]
        assert await flow.counts("root") == (0, 3, 0, 0)

    async def test_an_open_group_stays_of_its_generation(self, bench: Bench) -> None:
        flow = await _family(bench, "a", "b")
        await flow.end("a", Move.FAIL)
        await _retry(bench, "a")
        assert (await flow.group("root")).generation == 1
        assert await flow.closings(("a",), ("b",)) == [[], ["root"]]

    async def test_every_level_above_opens_again(self, bench: Bench) -> None:
        """And a tree that had failed succeeds in the end."""
        flow = await _family(bench, "a")
        await flow.end("a", left=plan(node("aa")))
        await flow.end("aa", left=plan(node("aaa"), node("bbb")))
        await flow.end("bbb")
        assert closed_by(await flow.ended("aaa", Move.BURY)) == ["root"]
        await _retry(bench, "aaa")
        await flow.submit(node("after", tree("a")), node("whole", tree("root")))
        assert await flow.states("after", "whole") == ["pending", "pending"]
        assert closed_by(await flow.ended("aaa")) == ["root"]
        assert await flow.states("after", "whole") == ["scheduled", "scheduled"]

    async def test_a_root_that_failed_with_open_children(self, bench: Bench) -> None:
        flow = Flow(bench)
        await flow.submit(node("root"))
        await flow.spawn("root", node("a"))
        await flow.end("root", Move.FAIL)
        await _retry(bench, "root")
        assert await flow.counts("root") == (2, 0, 0, 0)
        assert await flow.closings(("a",), ("root",)) == [[], ["root"]]
        assert (await flow.group("root")).generation == 1

    async def test_a_root_that_failed_with_its_children_succeeds_with_them(self, bench: Bench) -> None:
        """What had broken the tree is counted once, and taken back once."""
        flow = Flow(bench)
        await flow.submit(node("root"))
        await flow.spawn("root", node("a"))
        await flow.end_all("a", "root", move=Move.FAIL)
        await _retry(bench, "root")
        await flow.end("root")
        await flow.submit(node("too-early", tree("root")))
        await _retry(bench, "a")
        await flow.end("a")
        await flow.submit(node("after", tree("root")))
        assert await flow.states("too-early", "after") == ["failed", "scheduled"]
        assert (await flow.group("root")).generation == 3

    async def test_a_cancelled_one_too(self, bench: Bench) -> None:
        flow = await _family(bench, "a")
        await bench.cancel("a")
        assert await flow.counts("root") == (0, 1, 0, 1)
        await _retry(bench, "a", RetryRequest(include_cancelled=True))
        assert await flow.counts("root") == (1, 1, 0, 0)
        assert closed_by(await flow.ended("a")) == ["root"]

    async def test_a_new_run_finds_what_the_old_one_spawned(self, bench: Bench) -> None:
        flow = Flow(bench)
        await flow.submit(node("root"))
        child = node("a", parent_id="root", spawn_key="k")
        await flow.spawn("root", child)
        await flow.end("root", Move.FAIL)
        await _retry(bench, "root")
        await flow.spawn("root", child)
        assert await flow.counts("root") == (2, 0, 0, 0)

    async def test_contributions_stay(self, bench: Bench) -> None:
        flow = await _family(bench, "a", "b")
        await flow.end("a", left=plan(value=b"1", reducer="sum"))
        await flow.end("b", Move.FAIL)
        await _retry(bench, "b")
        await flow.end("b", left=plan(value=b"2", reducer="sum"))
        assert await flow.value("root") == b"3"


@needs(WORKFLOWS)
class CascadeRetryContract(Contract):
    """storage.md, runs: resolved edges stay resolved, unless the doomed are retried with what doomed them."""

    async def test_without_cascade_the_doomed_stay_settled(self, bench: Bench) -> None:
        flow = Flow(bench)
        await flow.submit(node("p"), node("a", "p"), node("late", "p", gate={"policy": "skip"}))
        await flow.end("p", Move.FAIL)
        await _retry(bench, "p")
        await flow.end("p")
        assert await flow.states("a", "late") == ["failed", "completed"]

    @pytest.mark.parametrize("policy", ["fail", "cancel", "run"])
    async def test_the_doomed_wait_again(self, bench: Bench, policy: Policy) -> None:
        """One way through every kind of parent, transitively."""
        flow = Flow(bench)
        await flow.submit(
            node("p"), node("a", "p", gate={"policy": policy}), node("b", tree("a")), node("c", chain("b"))
        )
        await flow.end("p", Move.FAIL)
        await _retry(bench, "p", CASCADE)
        assert await flow.states("p", "a", "b", "c") == ["scheduled", "pending", "pending", "pending"]
        await flow.end_all("p", "a", "b", "c")
        assert await flow.states("p", "a", "b", "c") == ["completed"] * 4

    async def test_they_can_be_doomed_again(self, bench: Bench) -> None:
        flow = Flow(bench)
        await flow.submit(node("p"), node("a", "p"))
        for _ in range(3):
            await flow.end("p", Move.FAIL)
            assert await flow.states("a") == ["failed"]
            await _retry(bench, "p", CASCADE)
            assert await flow.states("a") == ["pending"]
        history = await bench.history("a")
        assert [entry.rev for entry in history] == list(range(1, (await bench.job("a")).rev + 1))

    async def test_parents_that_ended_in_the_meantime_count(self, bench: Bench) -> None:
        """live-3: a job that was settled already still learns how its other parents ended."""
        flow = Flow(bench)
        await flow.submit(node("p"), node("q"), node("a", "p", "q"), node("runs", "p", "q", gate={"policy": "run"}))
        await flow.end("p", Move.FAIL)
        await flow.end("q")
        await _retry(bench, "p", CASCADE)
        assert await flow.states("a", "runs") == ["pending", "pending"]
        await flow.end("p")
        assert await flow.states("a", "runs") == ["scheduled", "scheduled"]

    async def test_another_parent_that_failed_keeps_it_settled(self, bench: Bench) -> None:
        """Until that one is retried as well."""
        flow = Flow(bench)
        await flow.submit(node("p"), node("q"), node("a", "p", "q"))
        await flow.end_all("p", "q", move=Move.FAIL)
        await _retry(bench, "p", CASCADE)
        assert await flow.states("a") == ["failed"]
        await _retry(bench, "q", CASCADE)
        assert await flow.states("a") == ["pending"]
        await flow.end_all("q", "p")
        assert await flow.states("a") == ["scheduled"]

    async def test_an_open_gate_stays_open(self, bench: Bench) -> None:
        flow = Flow(bench)
        await flow.submit(node("p"), node("q"), node("a", "p", "q", gate={"when": "any_success"}))
        await flow.end("q")
        await flow.end("p", Move.FAIL)
        await _retry(bench, "p", CASCADE)
        assert await flow.states("a") == ["scheduled"]

    async def test_what_somebody_cancelled_stays_cancelled(self, bench: Bench) -> None:
        flow = Flow(bench)
        await flow.submit(node("p"), node("a", "p"), node("b", "p", gate={"when": "all_done"}))
        await bench.cancel("a", "b")
        await flow.end("p", Move.FAIL)
        await _retry(bench, "p", CASCADE)
        assert await flow.states("a", "b") == ["cancelled", "cancelled"]

    async def test_a_job_that_became_ready_stays_so(self, bench: Bench) -> None:
        flow = Flow(bench)
        await flow.submit(node("p"), node("a", "p", gate={"when": "all_done"}))
        await flow.end("p", Move.FAIL)
        await _retry(bench, "p", CASCADE)
        assert await flow.states("a") == ["scheduled"]

    async def test_what_had_started_is_left_alone(self, bench: Bench) -> None:
        flow = Flow(bench)
        await flow.submit(node("p"), node("a", "p", gate={"when": "all_done"}), node("b", "a"))
        await flow.end("p", Move.FAIL)
        await flow.end("a", Move.FAIL)
        await _retry(bench, "p", CASCADE)
        assert await flow.states("a", "b") == ["failed", "failed"]
        await flow.end("p")
        assert await flow.states("a", "b") == ["failed", "failed"]

    async def test_groups_of_the_doomed_open_again(self, bench: Bench) -> None:
        flow = Flow(bench)
        await flow.submit(node("root"))
        await flow.end("root", left=plan(node("a"), node("b", "a")))
        assert closed_by(await flow.ended("a", Move.FAIL)) == ["root"]
        await _retry(bench, "a", CASCADE)
        assert await flow.counts("root") == (2, 1, 0, 0)
        assert (await flow.group("root")).generation == 2
        assert await flow.closings(("a",), ("b",)) == [[], ["root"]]


async def _family(bench: Bench, *names: str) -> Flow:
    flow = Flow(bench)
    await flow.submit(node("root"))
    await flow.end("root", left=plan(*(node(name) for name in names)))
    return flow


async def _retry(bench: Bench, job_id: str, request: RetryRequest | None = None) -> None:
    [answer] = await bench.store.retry("default", [job_id], request or RetryRequest())
    assert answer.status is RetryStatus.QUEUED
