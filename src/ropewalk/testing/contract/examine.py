"""The facts about jobs that an examination of a store returns."""

from __future__ import annotations

from ropewalk.domain.jobs.record import RECORD_FORMAT
from ropewalk.domain.jobs.states import Move
from ropewalk.domain.limits.fleet_limit import LaneName
from ropewalk.domain.time import SECOND
from ropewalk.ports.store.capabilities import DIAGNOSIS
from ropewalk.ports.store.diagnosis import Backlog, Work
from ropewalk.testing.contract.base import Contract, needs
from ropewalk.testing.contract.bench import Bench
from ropewalk.testing.contract.builders import LEASE

NOTHING = Work(backlog=[], paused=[], leases_over=0, oldest_lease_over_at=None, newer_records=0, dead_letters={})


@needs(DIAGNOSIS)
class ExamineContract(Contract):
    """An examination returns facts about the jobs of all tenants, counted as a claim would count them (H5)."""

    async def test_an_empty_store_has_nothing_to_report(self, bench: Bench) -> None:
        """H5: nothing is made up."""
        examination = await bench.store.examine()
        assert (examination.now, examination.work) == (bench.runtime.now(), NOTHING)

    async def test_the_jobs_that_could_start_now_are_counted(self, bench: Bench) -> None:
        """H5: of every tenant, what came due with nobody there to claim it too; not what waits, runs or has ended."""
        start = bench.runtime.now()
        await bench.finished()
        await bench.running()
        await bench.add("a", tenant="acme", queue="mail")
        await bench.add("a", limit_key="k")
        await bench.add("a", delay_us=5 * SECOND)
        await bench.add("a", delay_us=50 * SECOND)
        await bench.add("b", limit_key="l")
        await bench.runtime.advance(10)
        assert (await bench.store.examine()).work.backlog == [
            Backlog(lane=LaneName("acme", "mail", "a", ""), ready=1, oldest_ready_at=start),
            Backlog(lane=LaneName("default", "default", "a", ""), ready=2, oldest_ready_at=start),
            Backlog(lane=LaneName("default", "default", "b", ""), ready=1, oldest_ready_at=start),
        ]

    async def test_the_paused_queues_of_every_tenant_are_listed(self, bench: Bench) -> None:
        """R19, H5."""
        for tenant, queue, paused in (("b", "q", True), ("a", "q", True), ("a", "r", True), ("a", "r", False)):
            await bench.store.pause(tenant, queue, paused=paused)
        assert (await bench.store.examine()).work.paused == [("a", "q"), ("b", "q")]

    async def test_expired_leases_that_nobody_takes_back_are_counted(self, bench: Bench) -> None:
        """H5, live-2."""
        lost = [await bench.running(owner=owner) for owner in ("one", "two")]
        await bench.runtime.advance(LEASE / SECOND - 1)
        assert (await bench.store.examine()).work.leases_over == 0
        await bench.runtime.advance(5)
        await bench.running(owner="three", tenant="acme")
        work = (await bench.store.examine()).work
        assert (work.leases_over, work.oldest_lease_over_at) == (0, None), "a claim takes them back first"
        assert len(lost) == 2
        await bench.runtime.advance(LEASE / SECOND + 1)
        work = (await bench.store.examine()).work
        assert (work.leases_over, work.oldest_lease_over_at) == (1, bench.runtime.now() - SECOND)

    async def test_records_of_a_newer_release_are_counted(self, bench: Bench) -> None:
        """H5: live ones, wherever they stand."""
        ids = [await bench.add(), await bench.add(delay_us=SECOND), (await bench.running("b")).id]
        ending = await bench.running("c")
        for job_id in (*ids, ending.id):
            await bench.backend.set_format(bench.store, "default", job_id, RECORD_FORMAT + 1)
        await bench.settle(ending)
        assert (await bench.store.examine()).work.newer_records == 3

    async def test_dead_letters_are_counted_by_type(self, bench: Bench) -> None:
        """R12, H5: of every tenant, and no other endings."""
        for tenant in ("default", "acme"):
            await bench.finished(Move.BURY, tenant=tenant)
        await bench.finished(Move.BURY, type="b")
        await bench.finished(Move.FAIL)
        assert (await bench.store.examine(deep=True)).work.dead_letters == {"t": 2, "b": 1}
