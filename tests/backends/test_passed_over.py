"""A record that makes the rules of the domain raise stays behind alone: everything else of its batch goes on."""

from __future__ import annotations

import pytest

from ropewalk.domain.jobs.record import CompensationSpec
from ropewalk.domain.jobs.states import Move, State, Status
from ropewalk.domain.time import HOUR, MINUTE
from ropewalk.ports.store.consequences import Consequences
from ropewalk.testing.contract.bench import Bench, holder
from ropewalk.testing.contract.builders import gate_on, new_job, settlement
from ropewalk.testing.contract.workflow_bench import closed_by
from tests.backends.damaging import Damaging, OnPostgres, OnSqlite, behind_it

RAISES_AT_ITS_END = CompensationSpec(type="undo", accepts=("x",), defaults=b"junk")
"""Its arguments are put together when the job fails, which raises."""


class PassedOverContract(Damaging):
    @pytest.fixture(autouse=True)
    def expected(self, bench: Bench) -> None:
        bench.passes_over = True

    async def test_a_wait_that_cannot_end_stops_no_sweep(self, bench: Bench) -> None:
        await _waiting_for_a_minute(bench, "damaged", "other")
        await bench.running("b", id="lost", max_attempts=1)
        await self.damage_job(bench, "gate", None)
        await bench.runtime.advance(minutes=2)
        swept = await bench.store.sweep(9)
        assert {moved.job.id for moved in swept.moved} == {"other", "lost"}
        assert _told(swept).keys() == {"job damaged"}
        assert "waits for nothing" in _told(swept)["job damaged"]
        assert await bench.state("damaged") is State.PENDING
        assert await bench.store.sweep(9) == Consequences(), "it is told now and then, not with every sweep"
        await bench.runtime.advance(minutes=2)
        assert _told(await bench.store.sweep(9)).keys() == {"job damaged"}

    async def test_a_wait_that_cannot_end_stops_no_claim(self, bench: Bench) -> None:
        await _waiting_for_a_minute(bench, "damaged", "other")
        await self.damage_job(bench, "gate", None)
        await bench.runtime.advance(minutes=2)
        healthy = await behind_it(bench)
        claimed = await bench.claimed(50)
        assert [job.id for job in claimed.jobs] == healthy
        assert [moved.job.id for moved in claimed.moved] == ["other"]
        assert [passed.name for passed in claimed.passed_over] == ["job damaged"]
        assert claimed.next_due is None or claimed.next_due > claimed.now, "nobody looks again without a pause"

    async def test_a_deadline_that_cannot_be_met_stops_no_claim(self, bench: Bench) -> None:
        await bench.add(id="damaged", ttl_us=MINUTE, on_failure=RAISES_AT_ITS_END)
        await bench.add(id="other", ttl_us=MINUTE)
        healthy = await behind_it(bench)
        await bench.runtime.advance(minutes=2)
        assert [job.id for job in await bench.claim(50)] == healthy
        assert await bench.status("other") is Status.DEAD_LETTER
        assert await bench.status("damaged") is Status.WAITING

    async def test_a_damaged_job_that_cannot_be_set_aside_stops_no_claim(self, bench: Bench) -> None:
        await bench.add(id="damaged", on_failure=RAISES_AT_ITS_END)
        await self.damage_job(bench, "tags", "junk")
        for limit in (1, 50):
            healthy = await behind_it(bench, limit)
            given = [job.id for _ in healthy for job in await bench.claim(limit)]
            assert given == healthy
        assert await bench.status("damaged") is Status.WAITING

    async def test_a_leased_job_that_cannot_be_set_aside_is_not_given(self, bench: Bench) -> None:
        """Where the store leases all that is ready in one statement, and reads the rows afterwards."""
        await bench.add(id="before")
        await bench.claim(1)
        await bench.add(id="damaged", on_failure=RAISES_AT_ITS_END)
        await self.damage_job(bench, "type", "other")
        healthy = await behind_it(bench)
        assert [job.id for job in await bench.claim(50, types=["t", "other"], first_ticket=99)] == healthy

    async def test_a_lost_job_that_cannot_end_stops_no_sweep(self, bench: Bench) -> None:
        await bench.running("a", id="damaged", max_attempts=1, on_failure=RAISES_AT_ITS_END)
        await bench.running("b", id="other", max_attempts=1)
        await bench.runtime.advance(60)
        swept = await bench.store.sweep(9)
        assert [moved.job.id for moved in swept.moved] == ["other"]
        assert _told(swept).keys() == {"job damaged"}

    async def test_a_child_that_cannot_be_told_does_not_keep_its_parent_from_ending(self, bench: Bench) -> None:
        parent = await bench.running("a", id="parent")
        for name in ("before", "damaged", "behind"):
            await bench.add("b", id=name, gate=gate_on("parent"))
        await self.damage_job(bench, "gate", '{"total":1,"need":5,"of":"success"}')
        assert (await bench.settle(parent)).move is Move.COMPLETE
        assert [await bench.state(name) for name in ("before", "damaged", "behind")] == [
            State.SCHEDULED,
            State.PENDING,
            State.SCHEDULED,
        ]
        left = await bench.store.cascade(9)
        assert not left.more, "nobody goes on without a pause"
        await self.damage_job(bench, "gate", '{"total":1,"need":1,"of":"success"}')
        assert not (await bench.store.cascade(9)).more
        assert await bench.state("damaged") is State.SCHEDULED, "repaired, it is told what it missed"

    async def test_a_group_that_cannot_be_counted_does_not_hold_up_its_members_or_others(self, bench: Bench) -> None:
        for name in ("damaged", "other"):
            root = await bench.running(name, id=name)
            children = [new_job(f"of-{name}", spawn_key=key, group_id=name, parent_id=name) for key in "abc"]
            await bench.submit(*children, under=holder(root))
            await bench.settle(root)
        await self.damage(bench, "scope", "open", 0, where="group_id = 'damaged'")
        members = await bench.claim(9, types=["of-damaged", "of-other"])
        settled = await bench.store.settle("worker", [settlement(job) for job in members])
        assert [each.move for each in settled.settled] == [Move.COMPLETE] * 6
        assert closed_by(settled) == ["other"]
        assert not settled.consequences.more
        assert closed_by(await bench.store.cascade(9)) == []
        await self.damage(bench, "scope", "open", 3, where="group_id = 'damaged'")
        assert closed_by(await bench.store.cascade(9)) == ["damaged"]


async def _waiting_for_a_minute(bench: Bench, *names: str) -> None:
    await bench.add(id="parent", delay_us=9 * HOUR)
    for name in names:
        await bench.add(id=name, gate=gate_on("parent", timeout_us=MINUTE))


def _told(swept: Consequences) -> dict[str, str]:
    return {passed.name: str(passed.error) for passed in swept.passed_over}


class TestPassedOverOnSqlite(PassedOverContract, OnSqlite): ...


class TestPassedOverOnPostgres(PassedOverContract, OnPostgres): ...
