"""Cancelling a group, and hearing of groups nobody waits for."""

from __future__ import annotations

from ropewalk.domain.jobs.operations import EndRequest, RetryRequest
from ropewalk.domain.jobs.record import CompensationSpec
from ropewalk.domain.jobs.states import Move
from ropewalk.domain.time import DAY, MINUTE, SECOND
from ropewalk.ports.store.capabilities import WORKFLOWS
from ropewalk.testing.contract.base import Contract, needs
from ropewalk.testing.contract.bench import Bench, holder
from ropewalk.testing.contract.build import BOOM
from ropewalk.testing.contract.flow import Flow, closed_by, node, plan


@needs(WORKFLOWS)
class CancelGroupContract(Contract):
    """R8, C2: what is written into a cancelled group later is born cancelled."""

    async def test_children_written_later_are_born_cancelled(self, bench: Bench) -> None:
        flow = Flow(bench)
        await flow.submit(node("root"))
        await flow.spawn("root", node("a"))
        assert await bench.store.cancel_group("default", "root", reason="enough", force=False)
        await flow.spawn("root", node("b"), node("c", "b"), node("d", "a"))
        assert await flow.states("b", "c", "d") == ["cancelled"] * 3
        cancel = (await bench.job("b")).cancel
        assert cancel is not None
        assert cancel.reason == "enough"
        ended = await flow.ended("a", Move.COMPLETE, plan(node("aa"), then=node("next")))
        assert {moved.job.id for moved in ended.consequences.moved} == {"aa", "next"}
        assert await flow.states("root", "a", "aa", "next") == ["running", "completed", "cancelled", "cancelled"]
        assert closed_by(await flow.ended("root")) == ["root"]
        group = await flow.group("root")
        assert group.cancelled_by is not None
        assert (group.cancelled_by.reason, group.cancelled) == ("enough", 5)

    async def test_it_reaches_every_level(self, bench: Bench) -> None:
        flow = Flow(bench)
        await flow.submit(node("root"))
        await flow.spawn("root", node("a"))
        await flow.spawn("a", node("aa"))
        await bench.store.cancel_group("default", "root", reason=None, force=False)
        await flow.spawn("aa", node("aaa"))
        await flow.spawn("a", node("ab"))
        assert await flow.states("aa", "aaa", "ab") == ["running", "cancelled", "cancelled"]

    async def test_a_group_that_is_only_its_root(self, bench: Bench) -> None:
        """The mark must not get lost where there is no scope to put it on yet."""
        flow = Flow(bench)
        await flow.submit(node("root"))
        await flow.start("root")
        assert await bench.store.cancel_group("default", "root", reason="enough", force=False)
        await flow.spawn("root", node("a"))
        assert await flow.states("a") == ["cancelled"]

    async def test_a_group_that_is_not_there(self, bench: Bench) -> None:
        assert not await bench.store.cancel_group("default", "missing", reason=None, force=False)

    async def test_other_groups_go_on(self, bench: Bench) -> None:
        flow = Flow(bench)
        await flow.submit(node("root"), node("other"))
        for name in ("root", "other"):
            await flow.spawn(name, node(f"{name}-a"))
        await bench.store.cancel_group("default", "root", reason=None, force=False)
        await flow.spawn("other", node("b"))
        assert await flow.states("b", "root-a") == ["scheduled", "scheduled"]

    async def test_a_group_that_opens_again_is_not_cancelled_any_more(self, bench: Bench) -> None:
        flow = Flow(bench)
        await flow.submit(node("root"))
        await bench.store.cancel_group("default", "root", reason="enough", force=False)
        await bench.cancel("root")
        await bench.store.retry("default", ["root"], RetryRequest(include_cancelled=True))
        await flow.spawn("root", node("a"))
        await flow.end("root", left=plan(node("b"), then=node("next")))
        assert await flow.states("a", "b", "next") == ["scheduled", "scheduled", "scheduled"]
        assert (await flow.group("root")).cancelled_by is None

    async def test_a_job_that_is_retried_in_a_group_that_had_closed_may_queue_others(self, bench: Bench) -> None:
        flow = Flow(bench)
        await flow.submit(node("root"))
        await flow.spawn("root", node("a"))
        await bench.store.cancel_group("default", "root", reason="enough", force=False)
        await flow.end("root")
        await flow.end("a", Move.FAIL)
        await bench.store.retry("default", ["a"], RetryRequest())
        await flow.spawn("a", node("aa"))
        await flow.end("a", left=plan(node("ab")))
        assert await flow.states("aa", "ab") == ["scheduled", "scheduled"]

    async def test_a_group_that_has_ended_is_not_marked(self, bench: Bench) -> None:
        flow = Flow(bench)
        await flow.submit(node("root"))
        await flow.spawn("root", node("a"))
        await flow.end("root", Move.FAIL)
        await flow.end("a")
        assert await bench.store.cancel_group("default", "root", reason="enough", force=False)
        assert (await flow.group("root")).cancelled_by is None
        await bench.store.retry("default", ["root"], RetryRequest())
        await flow.spawn("root", node("b"))
        assert await flow.states("b") == ["scheduled"]

    async def test_a_compensation_is_never_born_cancelled(self, bench: Bench) -> None:
        """safe-14: nor is what the compensation queues."""
        flow = Flow(bench)
        undo = CompensationSpec(type="undo")
        await flow.submit(node("root", on_failure=undo))
        await flow.start("root")
        await bench.store.cancel_group("default", "root", reason="enough", force=False)
        await bench.store.end("default", "root", EndRequest(error=BOOM))
        started = await bench.claim_one(types=["undo"])
        assert started.origin is not None
        await bench.submit(node("step"), under=holder(started))
        assert await flow.states("step") == ["scheduled"]
        await bench.settle(started)
        await flow.end("step", left=plan(node("deeper")))
        assert await flow.states("deeper") == ["scheduled"]

    async def test_what_a_compensation_queues_is_cancelled_by_a_later_call(self, bench: Bench) -> None:
        flow = Flow(bench)
        await flow.submit(node("root", on_failure=CompensationSpec(type="undo")))
        await flow.end("root", Move.FAIL)
        started = await bench.claim_one(types=["undo"])
        await bench.submit(node("before"), under=holder(started))
        await bench.store.cancel_group("default", "root", reason="enough", force=False)
        await bench.submit(node("after"), under=holder(started))
        assert await flow.states("before", "after") == ["scheduled", "cancelled"]


@needs(WORKFLOWS)
class OrphanContract(Contract):
    """C2: a group that closes with nobody waiting is told at least once, under one id."""

    async def test_it_is_told_until_somebody_says_so(self, bench: Bench) -> None:
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

    async def test_it_is_told_although_the_clock_was_set_back(self, bench: Bench) -> None:
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

    async def test_oldest_first_and_no_more_than_asked_for(self, bench: Bench) -> None:
        for number in range(5):
            await _closed(bench, f"g{number}")
            await bench.runtime.advance(1)
        taken = [[each.group_id for each in await bench.store.take_orphans(2, MINUTE)] for _ in range(4)]
        assert taken == [["g0", "g1"], ["g2", "g3"], ["g4"], []]

    async def test_who_waits_is_no_orphan(self, bench: Bench) -> None:
        flow = await _open(bench, "root")
        await bench.store.await_group("default", "root", MINUTE)
        await bench.runtime.advance(59)
        await flow.end("root-child")
        assert await bench.store.take_orphans(9, MINUTE) == []

    async def test_who_gave_up_waiting_makes_one(self, bench: Bench) -> None:
        flow = await _open(bench, "root")
        await bench.store.await_group("default", "root", MINUTE)
        await bench.runtime.advance(60)
        await flow.end("root-child")
        assert len(await bench.store.take_orphans(9, MINUTE)) == 1

    async def test_nobody_asked(self, bench: Bench) -> None:
        await _closed(bench, "root", report_orphan=False)
        await bench.store.await_group("default", "missing", MINUTE)
        assert await bench.store.take_orphans(9, MINUTE) == []

    async def test_whoever_takes_them_hears_of_groups_of_every_client_from_then_on(self, bench: Bench) -> None:
        await _closed(bench, "before", report_orphan=False)
        assert not await bench.store.orphans_are_taken()
        assert await bench.store.take_orphans(9, MINUTE) == []
        assert await bench.store.orphans_are_taken()
        await _closed(bench, "a", report_orphan=False)
        assert [each.group_id for each in await bench.store.take_orphans(9, MINUTE)] == ["a"]
        flow = await _open(bench, "awaited", report_orphan=False)
        await bench.store.await_group("default", "awaited", MINUTE)
        await flow.end("awaited-child")
        assert await bench.store.take_orphans(9, MINUTE) == []

    async def test_groups_are_recorded_for_days_while_whoever_takes_them_is_away(self, bench: Bench) -> None:
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

    async def test_once_for_each_generation(self, bench: Bench) -> None:
        flow = await _open(bench, "root")
        await flow.end("root-child", Move.FAIL)
        [first] = await bench.store.take_orphans(9, MINUTE)
        await bench.store.orphan_reported(first.id)
        await bench.store.retry("default", ["root-child"], RetryRequest())
        assert await bench.store.take_orphans(9, MINUTE) == []
        await flow.end("root-child")
        [second] = await bench.store.take_orphans(9, MINUTE)
        assert (second.group_id, second.id != first.id) == ("root", True)

    async def test_only_the_whole_group_is_one(self, bench: Bench) -> None:
        flow = await _open(bench, "root")
        await flow.end("root-child", left=plan(node("a", report_orphan=True)))
        await flow.end("a", left=plan(node("b")))
        assert await bench.store.take_orphans(9, MINUTE) == []
        await flow.end("b")
        assert [each.group_id for each in await bench.store.take_orphans(9, MINUTE)] == ["root"]


async def _open(bench: Bench, name: str, *, report_orphan: bool = True) -> Flow:
    """A group whose child is open."""
    flow = Flow(bench)
    await flow.submit(node(name, report_orphan=report_orphan))
    await flow.end(name, left=plan(node(f"{name}-child")))
    return flow


async def _closed(bench: Bench, name: str, *, report_orphan: bool = True) -> None:
    await (await _open(bench, name, report_orphan=report_orphan)).end(f"{name}-child")
