"""Cancelling groups, and recording groups that close while nobody waits for them."""

from __future__ import annotations

from ropewalk.domain.jobs.operations import EndRequest, RetryRequest
from ropewalk.domain.jobs.record import CompensationSpec
from ropewalk.domain.jobs.states import Move
from ropewalk.domain.time import DAY, MINUTE, SECOND
from ropewalk.ports.store.capabilities import WORKFLOWS
from ropewalk.testing.contract.base import Contract, needs
from ropewalk.testing.contract.bench import Bench, holder
from ropewalk.testing.contract.builders import BOOM
from ropewalk.testing.contract.workflow_bench import WorkflowBench, closed_by, node, plan


@needs(WORKFLOWS)
class CancelGroupContract(Contract):
    """Cancelling a group also cancels what is later written into it (R8, C2)."""

    async def test_children_written_later_are_born_cancelled(self, bench: Bench) -> None:
        workflow = WorkflowBench(bench)
        await workflow.submit(node("root"))
        await workflow.spawn("root", node("a"))
        assert await bench.store.cancel_group("default", "root", reason="enough", force=False)
        await workflow.spawn("root", node("b"), node("c", "b"), node("d", "a"))
        assert await workflow.states("b", "c", "d") == ["cancelled"] * 3
        cancel = (await bench.job("b")).cancel
        assert cancel is not None
        assert cancel.reason == "enough"
        ended = await workflow.settle("a", Move.COMPLETE, plan(node("aa"), then=node("next")))
        assert {moved.job.id for moved in ended.consequences.moved} == {"aa", "next"}
        assert await workflow.states("root", "a", "aa", "next") == ["running", "completed", "cancelled", "cancelled"]
        assert closed_by(await workflow.settle("root")) == ["root"]
        group = await workflow.group("root")
        assert group.cancelled_by is not None
        assert (group.cancelled_by.reason, group.cancelled) == ("enough", 5)

    async def test_cancelling_a_group_reaches_every_level(self, bench: Bench) -> None:
        workflow = WorkflowBench(bench)
        await workflow.submit(node("root"))
        await workflow.spawn("root", node("a"))
        await workflow.spawn("a", node("aa"))
        await bench.store.cancel_group("default", "root", reason=None, force=False)
        await workflow.spawn("aa", node("aaa"))
        await workflow.spawn("a", node("ab"))
        assert await workflow.states("aa", "aaa", "ab") == ["running", "cancelled", "cancelled"]

    async def test_a_group_of_only_its_root_can_be_cancelled(self, bench: Bench) -> None:
        """The mark must not get lost where there is no scope to put it on yet."""
        workflow = WorkflowBench(bench)
        await workflow.submit(node("root"))
        await workflow.start("root")
        assert await bench.store.cancel_group("default", "root", reason="enough", force=False)
        await workflow.spawn("root", node("a"))
        assert await workflow.states("a") == ["cancelled"]

    async def test_a_missing_group_cannot_be_cancelled(self, bench: Bench) -> None:
        assert not await bench.store.cancel_group("default", "missing", reason=None, force=False)

    async def test_cancelling_a_group_leaves_other_groups_alone(self, bench: Bench) -> None:
        workflow = WorkflowBench(bench)
        await workflow.submit(node("root"), node("other"))
        for name in ("root", "other"):
            await workflow.spawn(name, node(f"{name}-a"))
        await bench.store.cancel_group("default", "root", reason=None, force=False)
        await workflow.spawn("other", node("b"))
        assert await workflow.states("b", "root-a") == ["scheduled", "scheduled"]

    async def test_a_group_that_opens_again_is_not_cancelled_any_more(self, bench: Bench) -> None:
        workflow = WorkflowBench(bench)
        await workflow.submit(node("root"))
        await bench.store.cancel_group("default", "root", reason="enough", force=False)
        await bench.cancel("root")
        await bench.store.retry("default", ["root"], RetryRequest(include_cancelled=True))
        await workflow.spawn("root", node("a"))
        await workflow.end("root", left=plan(node("b"), then=node("next")))
        assert await workflow.states("a", "b", "next") == ["scheduled", "scheduled", "scheduled"]
        assert (await workflow.group("root")).cancelled_by is None

    async def test_a_job_that_is_retried_in_a_group_that_had_closed_may_queue_others(self, bench: Bench) -> None:
        workflow = WorkflowBench(bench)
        await workflow.submit(node("root"))
        await workflow.spawn("root", node("a"))
        await bench.store.cancel_group("default", "root", reason="enough", force=False)
        await workflow.end("root")
        await workflow.end("a", Move.FAIL)
        await bench.store.retry("default", ["a"], RetryRequest())
        await workflow.spawn("a", node("aa"))
        await workflow.end("a", left=plan(node("ab")))
        assert await workflow.states("aa", "ab") == ["scheduled", "scheduled"]

    async def test_a_group_that_has_ended_is_not_marked_as_cancelled(self, bench: Bench) -> None:
        workflow = WorkflowBench(bench)
        await workflow.submit(node("root"))
        await workflow.spawn("root", node("a"))
        await workflow.end("root", Move.FAIL)
        await workflow.end("a")
        assert await bench.store.cancel_group("default", "root", reason="enough", force=False)
        assert (await workflow.group("root")).cancelled_by is None
        await bench.store.retry("default", ["root"], RetryRequest())
        await workflow.spawn("root", node("b"))
        assert await workflow.states("b") == ["scheduled"]

    async def test_a_compensation_is_never_born_cancelled(self, bench: Bench) -> None:
        """safe-14: nor is what the compensation queues."""
        workflow = WorkflowBench(bench)
        undo = CompensationSpec(type="undo")
        await workflow.submit(node("root", on_failure=undo))
        await workflow.start("root")
        await bench.store.cancel_group("default", "root", reason="enough", force=False)
        await bench.store.end("default", "root", EndRequest(error=BOOM))
        started = await bench.claim_one(types=["undo"])
        assert started.origin is not None
        await bench.submit(node("step"), under=holder(started))
        assert await workflow.states("step") == ["scheduled"]
        await bench.settle(started)
        await workflow.end("step", left=plan(node("deeper")))
        assert await workflow.states("deeper") == ["scheduled"]

    async def test_what_a_compensation_queues_is_cancelled_by_a_later_call(self, bench: Bench) -> None:
        workflow = WorkflowBench(bench)
        await workflow.submit(node("root", on_failure=CompensationSpec(type="undo")))
        await workflow.end("root", Move.FAIL)
        started = await bench.claim_one(types=["undo"])
        await bench.submit(node("before"), under=holder(started))
        await bench.store.cancel_group("default", "root", reason="enough", force=False)
        await bench.submit(node("after"), under=holder(started))
        assert await workflow.states("before", "after") == ["scheduled", "cancelled"]


@needs(WORKFLOWS)
class OrphanContract(Contract):
    """A group that closes while nobody waits for it is reported at least once, always under the same id (C2)."""

    async def test_an_orphan_group_is_given_out_until_it_is_reported(self, bench: Bench) -> None:
        await _closed(bench, "root")
        [orphan] = await bench.store.take_orphans(9, MINUTE)
        assert (orphan.tenant, orphan.group_id, orphan.closed_at) == ("default", "root", bench.runtime.now())
        assert await bench.store.take_orphans(9, MINUTE) == []
        await bench.runtime.advance(60)
        assert await bench.store.take_orphans(9, MINUTE) == [orphan]
        await bench.store.orphan_reported(orphan.id)
        await bench.runtime.advance(hours=1)
        assert await bench.store.take_orphans(9, MINUTE) == []
        await bench.store.orphan_reported(orphan.id)

    async def test_an_orphan_group_is_given_out_although_the_clock_was_set_back(self, bench: Bench) -> None:
        """C2: it closed, and was given out once, while the clock was a day ahead."""
        for given_out in (False, True):
            bench.runtime.set_clock(ahead_seconds=DAY / SECOND)
            await _closed(bench, f"root-{given_out}")
            taken = await bench.store.take_orphans(9, MINUTE) if given_out else []
            bench.runtime.set_clock(back_seconds=DAY / SECOND)
            [orphan] = await bench.store.take_orphans(9, MINUTE)
            assert taken in ([], [orphan])
            assert await bench.store.take_orphans(9, MINUTE) == []
            await bench.store.orphan_reported(orphan.id)

    async def test_orphan_groups_are_given_out_oldest_first_up_to_the_limit(self, bench: Bench) -> None:
        for number in range(5):
            await _closed(bench, f"g{number}")
            await bench.runtime.advance(1)
        taken = [[each.group_id for each in await bench.store.take_orphans(2, MINUTE)] for _ in range(4)]
        assert taken == [["g0", "g1"], ["g2", "g3"], ["g4"], []]

    async def test_a_group_that_somebody_waits_for_is_no_orphan(self, bench: Bench) -> None:
        workflow = await _open(bench, "root")
        await bench.store.await_group("default", "root", MINUTE)
        await bench.runtime.advance(59)
        await workflow.end("root-child")
        assert await bench.store.take_orphans(9, MINUTE) == []

    async def test_a_group_is_an_orphan_when_its_waiter_has_given_up(self, bench: Bench) -> None:
        workflow = await _open(bench, "root")
        await bench.store.await_group("default", "root", MINUTE)
        await bench.runtime.advance(60)
        await workflow.end("root-child")
        assert len(await bench.store.take_orphans(9, MINUTE)) == 1

    async def test_no_orphan_group_is_recorded_when_nobody_takes_them(self, bench: Bench) -> None:
        await _closed(bench, "root", report_orphan=False)
        await bench.store.await_group("default", "missing", MINUTE)
        assert await bench.store.take_orphans(9, MINUTE) == []

    async def test_once_somebody_takes_orphan_groups_those_of_every_client_are_recorded(self, bench: Bench) -> None:
        await _closed(bench, "before", report_orphan=False)
        assert not await bench.store.orphans_are_taken()
        assert await bench.store.take_orphans(9, MINUTE) == []
        assert await bench.store.orphans_are_taken()
        await _closed(bench, "a", report_orphan=False)
        assert [each.group_id for each in await bench.store.take_orphans(9, MINUTE)] == ["a"]
        workflow = await _open(bench, "awaited", report_orphan=False)
        await bench.store.await_group("default", "awaited", MINUTE)
        await workflow.end("awaited-child")
        assert await bench.store.take_orphans(9, MINUTE) == []

    async def test_orphan_groups_are_recorded_for_days_while_nobody_takes_them(self, bench: Bench) -> None:
        """At least six days, at most a week; and taking them again begins another week."""
        await bench.store.take_orphans(9, MINUTE)
        await bench.runtime.advance(days=5, hours=23)
        await _closed(bench, "a", report_orphan=False)
        assert [each.group_id for each in await bench.store.take_orphans(9, MINUTE)] == ["a"]
        await bench.runtime.advance(days=6)
        await _closed(bench, "b", report_orphan=False)
        await bench.runtime.advance(days=1, seconds=1)
        assert not await bench.store.orphans_are_taken()
        await _closed(bench, "c", report_orphan=False)
        assert [each.group_id for each in await bench.store.take_orphans(9, MINUTE)] == ["a", "b"]

    async def test_an_orphan_group_is_recorded_once_each_time_it_closes(self, bench: Bench) -> None:
        workflow = await _open(bench, "root")
        await workflow.end("root-child", Move.FAIL)
        [first] = await bench.store.take_orphans(9, MINUTE)
        await bench.store.orphan_reported(first.id)
        await bench.store.retry("default", ["root-child"], RetryRequest())
        assert await bench.store.take_orphans(9, MINUTE) == []
        await workflow.end("root-child")
        [second] = await bench.store.take_orphans(9, MINUTE)
        assert (second.group_id, second.id != first.id) == ("root", True)

    async def test_a_tree_inside_a_group_is_no_orphan_group(self, bench: Bench) -> None:
        workflow = await _open(bench, "root")
        await workflow.end("root-child", left=plan(node("a", report_orphan=True)))
        await workflow.end("a", left=plan(node("b")))
        assert await bench.store.take_orphans(9, MINUTE) == []
        await workflow.end("b")
        assert [each.group_id for each in await bench.store.take_orphans(9, MINUTE)] == ["root"]


async def _open(bench: Bench, name: str, *, report_orphan: bool = True) -> WorkflowBench:
    """A group whose child is open."""
    workflow = WorkflowBench(bench)
    await workflow.submit(node(name, report_orphan=report_orphan))
    await workflow.end(name, left=plan(node(f"{name}-child")))
    return workflow


async def _closed(bench: Bench, name: str, *, report_orphan: bool = True) -> None:
    await (await _open(bench, name, report_orphan=report_orphan)).end(f"{name}-child")
