"""Statistics: what happened, how long it took, and how many jobs there are."""

from __future__ import annotations

from typing import Any

from ropewalk.domain.jobs.operations import EndRequest, RetryRequest
from ropewalk.domain.jobs.states import Move, State, Status
from ropewalk.domain.jobs.transition import AttemptTiming
from ropewalk.domain.retention import Retention
from ropewalk.domain.search import Filter, Order
from ropewalk.domain.statistics.aggregation import StatsQuery
from ropewalk.domain.statistics.statistics import Flow, Statistics
from ropewalk.domain.time import DAY, HOUR, MINUTE, SECOND
from ropewalk.errors import Conflict
from ropewalk.ports.store.capabilities import STATISTICS
from ropewalk.testing.contract.base import Contract, needs
from ropewalk.testing.contract.bench import Bench, holder
from ropewalk.testing.contract.builders import BOOM, LEASE, gate_on, new_job, settlement

KEEP = 30 * DAY
FRESH = RetryRequest(include_cancelled=True)


async def stats(bench: Bench, *, tenant: str = "default", last_us: int = HOUR, **asked: Any) -> Statistics:
    return await bench.store.stats(tenant, StatsQuery(last_us=last_us, **asked))


async def flow(bench: Bench, **asked: Any) -> Flow:
    return (await stats(bench, **asked)).flow


async def fold(bench: Bench) -> int:
    return await bench.store.fold_counters(KEEP, 10_000)


@needs(STATISTICS)
class PeriodStatisticsContract(Contract):
    """Statistics count what happened in a period of time, and how long it took (O4)."""

    async def test_statistics_of_an_empty_store_are_complete(self, bench: Bench) -> None:
        """O4: an empty answer is a whole one."""
        told = await stats(bench)
        assert told.flow == Flow()
        assert told.finished_per_second == 0
        assert (told.shares, told.standing, told.states) == ((), (), {})
        assert {each.flow for each in told.line} == {Flow()}

    async def test_every_way_in_which_a_job_can_end_is_counted(self, bench: Bench) -> None:
        """O4: by its state, whoever ended it."""
        await bench.finished()
        for move in (Move.FAIL, Move.BURY, Move.CANCEL):
            await bench.settle(await bench.running(), move, error=BOOM)
        await bench.cancel(await bench.add())
        await bench.store.end("default", await bench.add(), EndRequest(error=BOOM))
        await bench.add(ttl_us=SECOND)
        await bench.runtime.advance(1)
        await bench.sweep()
        told = await flow(bench)
        assert (told.submitted, told.completed, told.failed, told.dead_letter, told.cancelled) == (7, 1, 2, 2, 2)
        assert told.finished == told.total.count == 7
        assert told.run.count == 4, "those that never started have not run"

    async def test_wait_run_and_total_times_are_measured(self, bench: Bench) -> None:
        """O4: from ready to start, from start to end, from submission to end; by the store's clock."""
        await bench.add(delay_us=4 * SECOND)
        await bench.runtime.advance(6)
        job = await bench.claim_one()
        await bench.runtime.advance(3)
        await bench.settle(job)
        told = await flow(bench)
        assert [each.max_us for each in (told.wait, told.run, told.total)] == [2 * SECOND, 3 * SECOND, 9 * SECOND]
        assert [each.mean_us for each in (told.wait, told.run, told.total)] == [2 * SECOND, 3 * SECOND, 9 * SECOND]
        assert abs(told.run.p95_us - 3 * SECOND) <= 3 * SECOND / 16

    async def test_times_that_the_worker_measured_are_used(self, bench: Bench) -> None:
        """O4: of what it held the job, how much that waited for a slot and how much its handler ran; not how long the
        settlement took. However it ends, and whoever else has to hear of it."""
        parent = await bench.running()
        await bench.submit(new_job(id="member", parent_id=parent.id, spawn_key="s"), under=holder(parent))
        await bench.submit(new_job(id="awaited"), new_job(id="alone"), new_job(id="failing"))
        await bench.submit(new_job(gate=gate_on("awaited")))
        jobs = {job.id: job for job in await bench.claim(4)}
        await bench.runtime.advance(7)
        timing = AttemptTiming(2 * SECOND, 4 * SECOND)
        failed = settlement(jobs.pop("failing"), Move.RETRY, error=BOOM, timing=timing)
        await bench.settle_all("worker", [failed, *(settlement(job, timing=timing) for job in jobs.values())])
        told = await flow(bench)
        for each, took in ((told.wait, 2 * SECOND), (told.run, 4 * SECOND)):
            assert (each.count, each.mean_us, each.max_us) == (4, took, took)
        assert (told.total.count, told.total.mean_us) == (3, 7 * SECOND)

    async def test_without_times_of_the_worker_a_job_ran_since_its_claim(self, bench: Bench) -> None:
        """O4: in one batch with others that do, of which one began at once and took no time."""
        says = [AttemptTiming(3 * SECOND, SECOND), AttemptTiming(0, 0), None]
        jobs = [await bench.running() for _ in says]
        await bench.runtime.advance(2)
        ends = [settlement(job, timing=timing) for job, timing in zip(jobs, says, strict=True)]
        await bench.settle_all("worker", ends)
        told = await flow(bench)
        assert (told.run.count, told.run.mean_us, told.run.max_us) == (3, SECOND, 2 * SECOND)
        assert (told.wait.count, told.wait.mean_us, told.wait.max_us) == (3, SECOND, 3 * SECOND)

    async def test_an_attempt_that_will_be_retried_is_measured(self, bench: Bench) -> None:
        """O4: measured like every other, its wait from when it could have started; retried, not finished."""
        await bench.add()
        await bench.runtime.advance(1)
        await bench.settle(await bench.claim_one(), Move.RETRY, error=BOOM, delay_us=5 * SECOND)
        await bench.runtime.advance(7)
        await bench.claim_one()
        await bench.runtime.advance(LEASE / SECOND)
        await bench.sweep()
        told = await flow(bench)
        assert (told.retried, told.finished, told.total.count) == (2, 0, 0)
        assert (told.wait.count, told.wait.mean_us, told.wait.max_us) == (2, 1_500_000, 2 * SECOND)
        assert (told.run.count, told.run.max_us) == (2, LEASE)

    async def test_an_attempt_that_was_given_back_is_not_measured(self, bench: Bench) -> None:
        """O4: deferred, suspended or released, it says nothing about how long the job takes."""
        job = await bench.running()
        for move in (Move.DEFER, Move.SUSPEND, Move.RELEASE):
            await bench.settle(job, move)
            job = await bench.claim_one()
        told = await flow(bench)
        assert (told.wait.count, told.run.count, told.retried) == (0, 0, 0)

    async def test_a_submission_that_is_not_accepted_is_not_counted(self, bench: Bench) -> None:
        """O4, safe-11: neither a repeated submission nor a refused one."""
        await bench.submit(new_job(id="x"), new_job(id="y"))
        await bench.submit(new_job(id="x"), new_job(id="z"))
        assert isinstance(await bench.answer(new_job(id="z", input=b"[]"), new_job(id="new")), Conflict)
        assert (await flow(bench)).submitted == 3

    async def test_a_stale_settlement_is_not_counted(self, bench: Bench) -> None:
        """O4, safe-4: nor the second one of the same lease."""
        job, other = await bench.running(), await bench.running()
        await bench.settle_all("worker", [settlement(job), settlement(job, Move.FAIL, error=BOOM), settlement(job)])
        await bench.settle(job)
        await bench.settle(other, owner="somebody else")
        told = await flow(bench)
        assert (told.finished, told.completed, told.run.count) == (1, 1, 1)

    async def test_a_batch_of_several_types_is_counted(self, bench: Bench) -> None:
        """O4: a batch of several types, some of which the long way."""
        await bench.submit(*(new_job(("t", "a", "b")[n % 3], limit_key="k" if n % 2 else None) for n in range(90)))
        jobs = await bench.claim(90)
        await bench.runtime.advance(1)
        ends = [settlement(job, Move.FAIL if n % 9 == 0 else Move.COMPLETE) for n, job in enumerate(jobs)]
        await bench.settle_all("worker", ends)
        told = await stats(bench)
        assert (told.flow.submitted, told.flow.completed, told.flow.failed) == (90, 80, 10)
        assert (told.flow.run.count, told.flow.run.mean_us) == (90, SECOND)
        assert [(share.type, share.flow.finished) for share in told.shares] == [("a", 30), ("b", 30), ("t", 30)]

    async def test_children_are_counted_like_all_other_jobs(self, bench: Bench) -> None:
        """O4: spawned, compensating, and ended as members of a group."""
        parent = await bench.running()
        children = [new_job("a", parent_id=parent.id, spawn_key=str(n)) for n in range(3)]
        await bench.submit(*children, under=holder(parent))
        await bench.submit(*children, under=holder(parent))
        await bench.settle_all("worker", [settlement(job) for job in await bench.claim(3)])
        await bench.settle(parent)
        told = await stats(bench)
        assert [(share.type, share.flow.submitted, share.flow.run.count) for share in told.shares] == [
            ("a", 3, 3),
            ("t", 1, 1),
        ]


@needs(STATISTICS)
class StatisticsGroupingContract(Contract):
    """Statistics can be divided by time and grouped by queue and type, and cover one tenant (O4)."""

    async def test_a_timeline_has_slices_of_whole_minutes(self, bench: Bench) -> None:
        """O4: slices of whole minutes in order, gaps filled, the last one under way."""
        await bench.finished()
        await bench.runtime.advance(150)
        await bench.finished()
        now = bench.runtime.now()
        told = await stats(bench, last_us=10 * MINUTE, slices=10)
        assert (told.until, told.slice_us) == (now, MINUTE)
        assert [each.at for each in told.line] == list(range(told.since, now, MINUTE))
        assert [each.flow.completed for each in told.line][-3:] == [1, 0, 1]
        assert told.finished_per_second == 2 / told.seconds

    async def test_a_period_of_the_past_can_be_asked_for(self, bench: Bench) -> None:
        """O4: what came before and after is not in it."""
        for _ in range(3):
            await bench.finished()
            await bench.runtime.advance(600)
        told = await stats(bench, last_us=5 * MINUTE, until=bench.runtime.now() - 900 * SECOND)
        assert told.flow.completed == 1
        assert told.until == bench.runtime.now() - 900 * SECOND

    async def test_statistics_can_be_grouped_by_type_queue_or_both(self, bench: Bench) -> None:
        """O4: most finished first."""
        for job_type, queue in (("a", "mail"), ("b", "mail"), ("b", "maps")):
            await bench.settle(await bench.running(job_type, queue=queue))
        by = {kind: (await stats(bench, by=kind)).shares for kind in ("type", "queue", "both")}
        assert [(each.type, each.queue, each.flow.completed) for each in by["type"]] == [("b", None, 2), ("a", None, 1)]
        assert [(each.type, each.queue) for each in by["queue"]] == [(None, "mail"), (None, "maps")]
        assert [(each.queue, each.type) for each in by["both"]] == [("mail", "a"), ("mail", "b"), ("maps", "b")]

    async def test_statistics_can_be_restricted_to_a_queue_type_or_tenant(self, bench: Bench) -> None:
        """O4, safe-15: and nothing of any other."""
        for tenant in ("acme", "zeta"):
            for job_type, queue in (("a", "mail"), ("b", "mail"), ("b", "maps")):
                await bench.add(job_type, queue=queue, tenant=tenant)
        asked = (None, None), ("mail", None), (None, "b"), ("mail", "b"), (None, "missing")
        found = [await stats(bench, tenant="acme", queue=queue, type=job_type) for queue, job_type in asked]
        assert [told.flow.submitted for told in found] == [3, 2, 2, 1, 0]
        assert [told.states.get(State.SCHEDULED, 0) for told in found] == [3, 2, 2, 1, 0]


@needs(STATISTICS)
class StandingContract(Contract):
    """Statistics count how many jobs are in each state now (O4)."""

    async def test_jobs_of_every_state_are_counted(self, bench: Bench) -> None:
        """O4: those that wait, run, and have finished and are kept."""
        await bench.finished()
        await bench.settle(await bench.running(), Move.FAIL, error=BOOM)
        await bench.settle(await bench.running(), Move.RETRY, error=BOOM, delay_us=HOUR)
        await bench.cancel(await bench.add())
        await bench.running()
        waits = await bench.add(delay_us=HOUR)
        await bench.store.end("default", await bench.add(), EndRequest())
        await bench.add(delay_us=SECOND)
        await bench.add("a", queue="mail")
        await bench.runtime.advance(1)
        told = await stats(bench)
        assert [(each.queue, each.type) for each in told.standing] == [("default", "t"), ("mail", "a")]
        assert told.standing[1].states == {State.SCHEDULED: 1}
        assert told.states == {
            State.DELAYED: 1,
            State.RETRYING: 1,
            State.SCHEDULED: 2,
            State.RUNNING: 1,
            State.COMPLETED: 2,
            State.FAILED: 1,
            State.CANCELLED: 1,
        }
        await bench.runtime.advance(HOUR / SECOND)
        assert await bench.state(waits) is State.SCHEDULED
        assert (await stats(bench)).states[State.SCHEDULED] == 4

    async def test_jobs_that_are_gone_are_not_counted_as_standing(self, bench: Bench) -> None:
        """O4: retried, deleted, or past its retention."""
        jobs = [await bench.finished(move) for move in (Move.COMPLETE, Move.COMPLETE, Move.FAIL, Move.BURY)]
        await bench.store.delete("default", [jobs[0].id])
        await bench.store.retry("default", [jobs[2].id], FRESH)
        assert (await stats(bench)).states == {State.SCHEDULED: 1, State.COMPLETED: 1, State.DEAD_LETTER: 1}
        await bench.store.prune(Retention(completed_us=0), 99)
        told = await stats(bench)
        assert told.states == {State.SCHEDULED: 1, State.DEAD_LETTER: 1}
        assert (told.flow.completed, told.flow.failed) == (2, 1), "what happened stays so"


@needs(STATISTICS)
class TenantsWithContract(Contract):
    """A worker that redrives dead letters learns which tenants have some (O4, R16)."""

    async def test_no_tenant_is_named_without_such_jobs(self, bench: Bench) -> None:
        """R16: on an empty store, and where nothing ended so."""
        assert await bench.store.tenants_with(Status.DEAD_LETTER, ["t"]) == []
        await bench.finished()
        await bench.finished(Move.FAIL)
        await bench.running()
        await bench.add()
        assert await bench.store.tenants_with(Status.DEAD_LETTER, ["t"]) == []

    async def test_the_tenants_with_such_jobs_of_these_types_are_named(self, bench: Bench) -> None:
        """R16: by name, each once, whatever the queue and the limit key; folded or not."""
        for tenant in ("zeta", "default", "acme", "acme"):
            await bench.finished(Move.BURY, tenant=tenant)
        await bench.finished(Move.BURY, type="b", tenant="beta", queue="mail", limit_key="k")
        await bench.finished(Move.BURY, type="c", tenant="gamma")
        await bench.finished(Move.FAIL, tenant="delta")
        for _ in range(2):
            assert await bench.store.tenants_with(Status.DEAD_LETTER, ["t"]) == ["acme", "default", "zeta"]
            assert await bench.store.tenants_with(Status.DEAD_LETTER, ["b", "t"]) == ["acme", "beta", "default", "zeta"]
            assert await bench.store.tenants_with(Status.FAILED, ["t", "c"]) == ["delta"]
            assert await bench.store.tenants_with(Status.DEAD_LETTER, []) == []
            await fold(bench)

    async def test_tenants_whose_jobs_are_gone_are_not_named(self, bench: Bench) -> None:
        """R16: retried, deleted, or past their retention; not while one is left."""
        for tenant in ("acme", "acme", "beta"):
            job = await bench.finished(Move.BURY, tenant=tenant)
        await bench.store.retry("beta", [job.id], FRESH)
        assert await bench.store.tenants_with(Status.DEAD_LETTER, ["t"]) == ["acme"]
        await fold(bench)
        left = (await bench.store.search("acme", Filter(), order=Order.CREATED_ASC, cursor=None, limit=9)).jobs
        await bench.store.delete("acme", [left[0].id])
        assert await bench.store.tenants_with(Status.DEAD_LETTER, ["t"]) == ["acme"]
        await bench.store.prune(Retention(dead_letter_us=0), 99)
        assert await bench.store.tenants_with(Status.DEAD_LETTER, ["t"]) == []


@needs(STATISTICS)
class FoldContract(Contract):
    """Folding the counters into sums changes no answer (O4)."""

    async def test_folding_changes_no_answer(self, bench: Bench) -> None:
        """O4: by minute, by hour, and what stands; done twice, by two, or in part."""
        for seconds in (1, 30, 3600, 20):
            await bench.settle(await bench.running(), Move.FAIL if seconds == 30 else Move.COMPLETE, error=BOOM)
            await bench.runtime.advance(seconds)
        ranges = (HOUR, 2 * HOUR, DAY)
        before = [await stats(bench, last_us=last_us) for last_us in ranges]
        other = await bench.second()
        folded = [await store.fold_counters(KEEP, 2) for store in (bench.store, other.store, bench.store)]
        assert [await stats(bench, last_us=last_us) for last_us in ranges] == before
        assert folded[0] == 2
        while await fold(bench):
            assert [await stats(other, last_us=last_us) for last_us in ranges] == before
        assert [await stats(bench, last_us=last_us) for last_us in ranges] == before
        await bench.finished()
        await fold(bench)
        assert (await flow(bench)).completed == before[0].flow.completed + 1

    async def test_old_statistics_are_given_by_the_hour(self, bench: Bench) -> None:
        """O4: and still told whole."""
        start = bench.runtime.now()
        await bench.finished()
        await fold(bench)
        await bench.runtime.advance(2 * DAY / SECOND)
        await fold(bench)
        told = await stats(bench, last_us=5 * MINUTE, until=start + MINUTE)
        assert (told.slice_us, told.flow.completed, told.flow.run.count) == (HOUR, 1, 1)

    async def test_statistics_older_than_their_retention_are_forgotten(self, bench: Bench) -> None:
        """O4: but for how many jobs there are."""
        await bench.finished()
        await fold(bench)
        await bench.runtime.advance(31 * DAY / SECOND)
        await bench.store.fold_counters(None, 99)
        assert (await flow(bench, last_us=40 * DAY)).completed == 1
        await fold(bench)
        told = await stats(bench, last_us=40 * DAY)
        assert told.flow == Flow()
        assert told.states == {State.COMPLETED: 1}
