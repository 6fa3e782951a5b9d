"""Removing waiting and finished jobs in one call."""

from __future__ import annotations

import asyncio

from ropewalk.domain.jobs.states import Move, State, Status
from ropewalk.domain.time import HOUR
from ropewalk.ports.store.capabilities import WORKFLOWS
from ropewalk.ports.store.operations import Deletion, Purged
from ropewalk.testing.contract.base import Contract, needs
from ropewalk.testing.contract.bench import Bench
from ropewalk.testing.contract.builders import keyed
from ropewalk.testing.contract.workflow_bench import WorkflowBench, closed_by, node, plan


class PurgeContract(Contract):
    """A purge removes waiting and finished jobs with everything about them, and no running job (safe-2, safe-13)."""

    async def test_a_purge_removes_waiting_and_finished_jobs(self, bench: Bench) -> None:
        done = await bench.finished(Move.FAIL)
        ids = [done.id, await bench.add(delay_us=HOUR), await bench.add(), await bench.add(queue="other")]
        answer = await bench.store.purge("default", [*ids, "missing"])
        assert answer.answers == {**dict.fromkeys(ids, Deletion.DELETED), "missing": Deletion.NOT_FOUND}
        assert [job.id for job in answer.cancelled] == ids[1:]
        assert {job.status for job in answer.cancelled} == {Status.CANCELLED}
        assert (await bench.store.get("default", ids)).jobs == {}
        assert await bench.claim(9) == []
        assert await bench.store.queues("default") == []
        for each in ids:
            assert await bench.store.history("default", each) is None

    async def test_a_purge_leaves_running_jobs_alone(self, bench: Bench) -> None:
        """safe-5: its worker hears of nothing and completes it."""
        running = await bench.running()
        waiting = await bench.add()
        answer = await bench.store.purge("default", [running.id, waiting])
        assert answer.answers == {running.id: Deletion.NOT_TERMINAL, waiting: Deletion.DELETED}
        assert await bench.job(running.id) == running
        assert (await bench.settle(running)).lost is None

    async def test_a_purge_together_removes_nothing_if_a_job_runs(self, bench: Bench) -> None:
        running = await bench.running()
        waiting = await bench.add()
        before = await bench.store.get("default", [running.id, waiting])
        answer = await bench.store.purge("default", [running.id, waiting], together=True)
        assert answer == Purged(answers={running.id: Deletion.NOT_TERMINAL})
        assert await bench.store.get("default", [running.id, waiting]) == before
        await bench.settle(running)
        answer = await bench.store.purge("default", [running.id, waiting], together=True)
        assert set(answer.answers.values()) == {Deletion.DELETED}

    @needs(WORKFLOWS)
    async def test_dependants_of_a_purged_job_are_settled(self, bench: Bench) -> None:
        """safe-9: as after any cancellation."""
        workflow = WorkflowBench(bench)
        await workflow.submit(node("a"), node("b", "a"), node("c", "b"), node("other"))
        answer = await bench.store.purge("default", ["a"])
        assert answer.answers == {"a": Deletion.DELETED}
        assert [moved.job.id for moved in answer.consequences.moved] == ["b", "c"]
        assert await workflow.states("b", "c", "other") == ["cancelled", "cancelled", "scheduled"]

    @needs(WORKFLOWS)
    async def test_a_whole_graph_is_purged_at_once(self, bench: Bench) -> None:
        workflow = WorkflowBench(bench)
        await workflow.submit(node("a"), node("b", "a"), node("c", "a", "b"))
        answer = await bench.store.purge("default", ["a", "c", "b"])
        assert set(answer.answers.values()) == {Deletion.DELETED}
        assert sorted(job.id for job in answer.cancelled) == ["a", "b", "c"]

    @needs(WORKFLOWS)
    async def test_the_group_of_purged_jobs_closes(self, bench: Bench) -> None:
        """safe-10."""
        workflow = WorkflowBench(bench)
        await workflow.submit(node("root"))
        await workflow.end("root", left=plan(node("x"), node("y")))
        await workflow.end("x")
        answer = await bench.store.purge("default", ["y"])
        assert closed_by(answer.consequences) == ["root"]
        assert (await bench.store.purge("default", ["root", "x"])).answers == dict.fromkeys(
            ("root", "x"), Deletion.DELETED
        )

    @needs(WORKFLOWS)
    async def test_a_purge_keeps_jobs_that_others_need(self, bench: Bench) -> None:
        workflow = WorkflowBench(bench)
        await workflow.submit(node("a"), node("q"), node("after", "a", "q"))
        await workflow.end("a")
        assert (await bench.store.purge("default", ["a"])).answers == {"a": Deletion.IN_USE}
        assert await bench.state("after") is State.PENDING
        assert (await bench.store.purge("default", ["a", "after"])).answers["a"] is Deletion.DELETED

    async def test_the_key_of_a_purged_job_is_free_again(self, bench: Bench) -> None:
        """safe-12."""
        [first] = await bench.submit(keyed("k", scope="any", window=3600))
        await bench.store.purge("default", [first.id])
        [second] = await bench.submit(keyed("k", scope="any", window=3600))
        assert not second.duplicate

    async def test_a_purge_does_not_find_jobs_of_another_tenant(self, bench: Bench) -> None:
        """safe-15."""
        theirs = await bench.add(tenant="acme")
        assert (await bench.store.purge("default", [theirs])).answers == {theirs: Deletion.NOT_FOUND}
        assert await bench.state(theirs, tenant="acme") is State.SCHEDULED

    async def test_a_job_is_either_claimed_or_purged_but_never_both(self, bench: Bench) -> None:
        """safe-13: what was claimed is there, what was purged was never given out."""
        other = await bench.second()
        ids = [await bench.add() for _ in range(40)]
        claims = [other.claim(5) for _ in range(8)]
        purges = [bench.store.purge("default", ids[start::4]) for start in range(4)]
        purged, claimed = await asyncio.gather(asyncio.gather(*purges), asyncio.gather(*claims))
        gone = {each for one in purged for each, answer in one.answers.items() if answer is Deletion.DELETED}
        given = {job.id for jobs in claimed for job in jobs}
        assert gone | given == set(ids)
        assert not gone & given
        for jobs in claimed:
            for job in jobs:
                assert (await bench.settle(job)).lost is None
