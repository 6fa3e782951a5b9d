"""What may be deleted while other jobs depend on it, and which tenants see which dependencies."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from ropewalk.domain.jobs.flags import CONTINUED
from ropewalk.domain.jobs.operations import EndRequest
from ropewalk.domain.jobs.states import Move, State
from ropewalk.domain.retention import Retention
from ropewalk.domain.time import SECOND
from ropewalk.errors import NotFound
from ropewalk.ports.store.capabilities import WORKFLOWS, CompleteStore
from ropewalk.ports.store.maintenance import Pruned
from ropewalk.ports.store.operations import Deletion
from ropewalk.testing.contract.base import Contract, needs
from ropewalk.testing.contract.bench import Bench
from ropewalk.testing.contract.builders import chain, new_job, tree
from ropewalk.testing.contract.workflow_bench import WorkflowBench, closed_by, node, plan

NO_RESULTS = Retention(results_us=0)
AT_ONCE = Retention(completed_us=0, failed_us=0, dead_letter_us=0, cancelled_us=0)


@needs(WORKFLOWS)
class InUseContract(Contract):
    """A job that others still depend on cannot be deleted, purged or pruned (C5)."""

    @pytest.mark.parametrize("ref", [tree, chain])
    async def test_a_parent_that_somebody_waits_for_cannot_be_deleted(self, bench: Bench, ref: object) -> None:
        """It has completed, its tree and chain have not."""
        assert callable(ref)
        workflow = WorkflowBench(bench)
        await workflow.submit(node("a"), node("after", ref("a")))
        await workflow.end("a", left=plan(then=node("b")))
        assert await _delete(bench, "a") == [Deletion.IN_USE]
        await bench.runtime.advance(1)
        assert await bench.store.prune(AT_ONCE, 9) == Pruned(jobs=0, results=0, keys=0)
        await workflow.end("b")
        assert await workflow.states("after") == ["scheduled"]

    async def test_a_job_whose_tree_is_open_cannot_be_deleted(self, bench: Bench) -> None:
        workflow = WorkflowBench(bench)
        await workflow.submit(node("root"))
        await workflow.end("root", left=plan(node("a"), node("b")))
        assert await _delete(bench, "root") == [Deletion.IN_USE]
        await workflow.end("a")
        assert await _delete(bench, "root", "b") == [Deletion.IN_USE, Deletion.NOT_TERMINAL]
        await workflow.end("b")
        assert await _delete(bench, "root") == [Deletion.DELETED]
        assert await bench.store.groups("default", ["root"]) == {}
        assert await bench.store.contributions("default", "root") == []

    async def test_a_parent_of_a_job_that_has_not_ended_cannot_be_deleted(self, bench: Bench) -> None:
        workflow = WorkflowBench(bench)
        await workflow.submit(node("a"), node("q"), node("after", "a", "q"))
        await workflow.end("a")
        assert await _delete(bench, "a") == [Deletion.IN_USE], "its result may be read"
        await workflow.end_all("q", "after")
        assert await _delete(bench, "a") == [Deletion.DELETED]

    async def test_the_end_of_a_chain_that_somebody_waits_for_cannot_be_deleted(self, bench: Bench) -> None:
        """Its last member holds the result, and those before it say which one that is."""
        workflow = await _chain_and_waiter(bench, chain("b"))
        assert await _delete(bench, "c") == [Deletion.IN_USE]
        assert await _delete(bench, "b", "c") == [Deletion.IN_USE] * 2
        assert await _delete(bench, "a") == [Deletion.IN_USE]
        await bench.runtime.advance(1)
        assert await bench.store.prune(AT_ONCE, 9) == Pruned(jobs=0, results=0, keys=0)
        assert await _waits_for(bench, "after") == [("c", b"3"), ("q", None)]
        await workflow.end_all("q", "after")
        assert await _delete(bench, "a", "b", "c") == [Deletion.DELETED] * 3

    async def test_the_end_of_a_chain_is_kept_for_dependants_when_its_beginning_is_gone(self, bench: Bench) -> None:
        workflow = WorkflowBench(bench)
        await workflow.submit(node("a"))
        await workflow.end("a", left=plan(then=node("b")))
        await workflow.end("b", left=plan(then=node("c")))
        await workflow.end("c", result=b"3")
        assert await _delete(bench, "a") == [Deletion.DELETED]
        assert [job.id for job in await bench.store.chain("default", "a")] == ["b", "c"], "found by the chain's name"
        await workflow.submit(node("q"), node("after", chain("b"), "q"))
        assert await _delete(bench, "c") == [Deletion.IN_USE]
        assert await _waits_for(bench, "after") == [("c", b"3"), ("q", None)]
        await workflow.end_all("q", "after")
        assert await _delete(bench, "b", "c") == [Deletion.DELETED] * 2
        assert await bench.store.chain("default", "a") == []

    async def test_a_chain_whose_end_is_gone_cannot_be_waited_for(self, bench: Bench) -> None:
        """What is left of it completed, but that is not how the chain ended."""
        workflow = WorkflowBench(bench)
        await workflow.submit(node("a"))
        await workflow.end("a", left=plan(then=node("b")))
        await workflow.end("b", Move.FAIL)
        assert await _delete(bench, "b") == [Deletion.DELETED]
        assert (await bench.job("a")).flags & CONTINUED
        assert isinstance(await bench.answer(node("after", chain("a"))), NotFound)
        [accepted] = await bench.submit(node("after", chain("a"), gate={"allow_missing": True}))
        assert accepted.state is State.SCHEDULED

    @pytest.mark.parametrize("ref", [str, tree, chain])
    async def test_a_result_that_somebody_waits_for_is_not_pruned(self, bench: Bench, ref: object) -> None:
        assert callable(ref)
        workflow = WorkflowBench(bench)
        await workflow.submit(node("a"), node("q"), node("after", ref("a"), "q"), node("plain"))
        await workflow.end("a", result=b"1")
        await workflow.end("plain", result=b"2")
        await bench.runtime.advance(1)
        assert await bench.store.prune(NO_RESULTS, 9) == Pruned(jobs=0, results=1, keys=0)
        assert [(await bench.job(name)).result for name in ("a", "plain")] == [b"1", None]
        await workflow.end_all("q", "after")
        assert await bench.store.prune(NO_RESULTS, 9) == Pruned(jobs=0, results=1, keys=0)
        assert (await bench.job("a")).result is None

    async def test_the_result_of_a_chain_that_somebody_waits_for_is_not_pruned(self, bench: Bench) -> None:
        workflow = await _chain_and_waiter(bench, chain("a"))
        await bench.runtime.advance(1)
        assert await bench.store.prune(NO_RESULTS, 9) == Pruned(jobs=0, results=0, keys=0)
        await workflow.end_all("q", "after")
        assert await bench.store.prune(NO_RESULTS, 9) == Pruned(jobs=0, results=1, keys=0)
        assert (await bench.job("c")).result is None

    async def test_a_whole_graph_can_be_deleted_in_one_call(self, bench: Bench) -> None:
        """A dependant among them does not protect."""
        workflow = WorkflowBench(bench)
        await workflow.submit(node("a"), node("b", "a"), node("c", tree("b")))
        await workflow.end_all("a", "b", "c")
        assert await _delete(bench, "a", "b", "c") == [Deletion.DELETED] * 3
        assert [await bench.find(name) for name in "abc"] == [None] * 3

    async def test_a_group_continues_when_members_are_deleted(self, bench: Bench) -> None:
        workflow = WorkflowBench(bench)
        await workflow.submit(node("root"))
        await workflow.end("root", left=plan(node("a"), node("b")))
        await workflow.end("a")
        assert await _delete(bench, "a") == [Deletion.DELETED]
        assert await workflow.counts("root") == (1, 2, 0, 0)
        assert closed_by(await workflow.settle("b")) == ["root"]

    async def test_a_finished_graph_is_pruned_after_its_retention(self, bench: Bench) -> None:
        """live-8."""
        workflow = WorkflowBench(bench)
        await workflow.submit(node("root"), node("after", tree("root")))
        await workflow.end("root", left=plan(node("a"), then=node("next"), value=b"1", reducer="list"))
        await workflow.end_all("a", "next", "after")
        await bench.runtime.advance(1)
        for _ in range(4):
            await bench.store.prune(AT_ONCE, 99)
        assert (await bench.store.get("default", ["root", "a", "next", "after"])).jobs == {}
        assert await bench.store.groups("default", ["root"]) == {}
        assert await bench.store.contributions("default", "root") == []

    async def test_a_deleted_id_can_be_used_again(self, bench: Bench) -> None:
        workflow = WorkflowBench(bench)
        await workflow.submit(node("root"))
        await workflow.end("root", left=plan(node("a"), value=b"1"))
        await workflow.end("a")
        await _delete(bench, "root", "a")
        await workflow.submit(node("root"))
        await workflow.end("root", left=plan(node("a")))
        group = await workflow.group("root")
        assert (group.generation, group.value.contributions, group.completed) == (1, 0, 1)


VERBS: dict[str, Callable[[CompleteStore, str, str], Awaitable[object]]] = {
    "resolve": lambda store, tenant, job_id: store.end(tenant, job_id, EndRequest()),
    "signal": lambda store, tenant, job_id: store.signal(tenant, job_id, "ring", b"1"),
    "cancel_group": lambda store, tenant, job_id: store.cancel_group(tenant, job_id, reason=None, force=True),
    "await_group": lambda store, tenant, job_id: store.await_group(tenant, job_id, SECOND),
    "groups": lambda store, tenant, job_id: store.groups(tenant, [job_id]),
    "contributions": lambda store, tenant, job_id: store.contributions(tenant, job_id),
    "chain": lambda store, tenant, job_id: store.chain(tenant, job_id),
}


@needs(WORKFLOWS)
class TenantGraphContract(Contract):
    """Dependencies and groups never reach jobs of another tenant (safe-15)."""

    @pytest.mark.parametrize("verb", list(VERBS))
    async def test_a_foreign_group_answers_like_a_missing_one(self, bench: Bench, verb: str) -> None:
        workflow = WorkflowBench(bench)
        root = node("secret-7f3a", tenant="acme")
        await workflow.submit(root)
        job = await bench.claim_one(types=[root.type])
        children = plan(node("a", tenant="acme"), then=node("b", tenant="acme"), value=b"1", reducer="list")
        await bench.settle(job, plan=children)
        before = await bench.store.groups("acme", [root.id])
        foreign = await VERBS[verb](bench.store, "zeta", root.id)
        missing = await VERBS[verb](bench.store, "zeta", "job-that-never-was")
        assert repr(foreign).replace(root.id, "job-that-never-was") == repr(missing)
        assert await bench.store.groups("acme", [root.id]) == before

    async def test_a_foreign_parent_is_unknown(self, bench: Bench) -> None:
        await bench.submit(node("p", tenant="acme"))
        assert isinstance(await bench.answer(node("a", "p", tenant="zeta")), NotFound)
        [accepted] = await bench.submit(node("a", "p", tenant="zeta", gate={"allow_missing": True}))
        assert accepted.state is State.SCHEDULED

    async def test_the_same_ids_in_two_tenants_are_different_graphs(self, bench: Bench) -> None:
        for tenant in ("acme", "zeta"):
            await bench.submit(node("p", tenant=tenant), node("a", "p", tenant=tenant))
        job = await bench.claim_one(types=["p"], tenants=("acme",))
        await bench.settle(job, Move.FAIL)
        assert [await bench.state("a", tenant=tenant) for tenant in ("acme", "zeta")] == [State.FAILED, State.PENDING]

    async def test_one_submission_may_serve_two_tenants(self, bench: Bench) -> None:
        await bench.submit(
            new_job(id="x", tenant="acme"), node("y", "x", tenant="acme"), new_job(id="x", tenant="zeta")
        )
        assert await bench.state("y", tenant="acme") is State.PENDING


async def _chain_and_waiter(bench: Bench, waited_for: object) -> WorkflowBench:
    """A chain of a, b and c that ended with the result 3, and `after`, which waits for it and for `q`."""
    workflow = WorkflowBench(bench)
    await workflow.submit(node("a"))
    await workflow.end("a", left=plan(then=node("b")))
    await workflow.submit(node("q"), node("after", waited_for, "q"))
    await workflow.end("b", left=plan(then=node("c")))
    await workflow.end("c", result=b"3")
    return workflow


async def _waits_for(bench: Bench, name: str) -> list[tuple[str, bytes | None]]:
    """The jobs behind its dependencies, and their results."""
    found = await bench.store.dependencies((await bench.job(name)).seq)
    return [(each.job.id, each.job.result) for each in found if each.job is not None]


async def _delete(bench: Bench, *ids: str) -> list[Deletion]:
    return list((await bench.store.delete("default", ids)).values())
