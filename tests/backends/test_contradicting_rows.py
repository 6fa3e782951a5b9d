"""A row whose columns can be read, and contradict one another or what any release writes."""

from __future__ import annotations

from itertools import product
from typing import Final

from ropewalk.domain.jobs.record import DEFAULT_TENANT, RECORD_FORMAT
from ropewalk.domain.jobs.states import Status
from ropewalk.domain.search import Filter, Order
from ropewalk.domain.time import HOUR
from ropewalk.testing.contract.bench import Bench
from tests.backends.damaging import Damaging, Junk, OnPostgres, OnSqlite, behind_it

INSTANTS: Final[tuple[Junk, ...]] = (-5, -(1 << 62), 1 << 62)


class ContradictionContract(Damaging):
    async def test_a_job_that_contradicts_its_lane_is_never_given(self, bench: Bench) -> None:
        """Whether one lane, some or many have ready jobs; also where the worker serves the other type as well."""
        for number, (column, others) in enumerate(product(("type", "queue", "tenant"), (0, 3, 20))):
            types = ["t", "other", *(f"o{other}" for other in range(others))]
            await bench.add("t", id=f"before-{number}")
            await bench.claim(1, types=types)
            await bench.add("t", id=f"d{number}")
            healthy = {*(await behind_it(bench, number))}
            healthy |= {await bench.add(name, id=f"{name}-{number}") for name in types[2:]}
            await self.damage_job(bench, column, "other", f"d{number}")
            given: set[str] = set()
            for turn in range(3):
                given |= {job.id for job in await bench.claim(50, types=types, first_ticket=1000 + 50 * turn)}
            assert given == healthy, (column, others)
            tenant = "other" if column == "tenant" else DEFAULT_TENANT
            assert await bench.status(f"d{number}", tenant=tenant) is Status.DEAD_LETTER, (column, others)

    async def test_damaged_instants_hide_no_healthy_job_from_whoever_turns_pages(self, bench: Bench) -> None:
        for column, value, order in product(("created_at", "updated_at"), INSTANTS + self.own_instants, Order):
            ids = [f"{number}" for number in range(7)]
            for job_id in ids:
                await bench.finished(id=job_id)
                await bench.runtime.advance(1)
            for job_id in ids[2:5:2]:
                await self.damage_job(bench, column, value, job_id)
            for limit in (1, 2, 3):
                seen = await _page_through(bench, order, limit, pages_max=len(ids))
                assert len(seen) == len(set(seen)), (column, value, order, limit)
                assert set(seen) >= {*ids} - {*ids[2:5:2]}, (column, value, order, limit)
            await bench.store.delete(DEFAULT_TENANT, ids)

    async def test_flags_that_only_a_newer_release_knows_are_no_damage_in_its_records(self, bench: Bench) -> None:
        await bench.add(id="newer", delay_us=HOUR)
        healthy = await behind_it(bench)
        await self.damage_job(bench, "format", RECORD_FORMAT + 1, "newer")
        await self.damage_job(bench, "flags", 1 << 20, "newer")
        await bench.runtime.advance(hours=2)
        assert [job.id for job in await bench.claim(50)] == healthy
        newer = await bench.job("newer")
        assert (newer.status, newer.flags, newer.damaged) == (Status.WAITING, 1 << 20, ())
        await bench.cancel("newer")
        assert (await bench.job("newer")).flags == 1 << 20, "what an older release writes back holds them"


async def _page_through(bench: Bench, order: Order, limit: int, *, pages_max: int) -> list[str]:
    seen: list[str] = []
    cursor: str | None = None
    for _ in range(pages_max + 1):
        page = await bench.store.search(DEFAULT_TENANT, Filter(), order=order, cursor=cursor, limit=limit)
        seen += [job.id for job in page.jobs]
        cursor = page.next_cursor
        if cursor is None:
            return seen
    raise AssertionError(f"{pages_max} pages of {order} had no end: {seen}")


class TestContradictionsOnSqlite(ContradictionContract, OnSqlite): ...


class TestContradictionsOnPostgres(ContradictionContract, OnPostgres): ...
