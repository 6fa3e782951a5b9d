"""A row that cannot be decoded is set aside, and everything else goes on. Each column of a job is damaged in turn."""

from __future__ import annotations

from itertools import product
from typing import Final, get_type_hints

import pytest
from msgspec import structs

from ropewalk.domain.jobs.operations import RetryRequest, RetryStatus
from ropewalk.domain.jobs.record import DEFAULT_TENANT, CompensationSpec, JobRecord
from ropewalk.domain.jobs.states import Move, Status
from ropewalk.domain.limits.fleet_limit import FlowLimit
from ropewalk.domain.limits.quota import Quota
from ropewalk.domain.limits.rate import Rate
from ropewalk.domain.retention import Retention
from ropewalk.domain.schedules.schedule import Every, Schedule
from ropewalk.domain.search import Filter, Order
from ropewalk.domain.statistics.aggregation import StatsQuery
from ropewalk.domain.time import HOUR
from ropewalk.domain.why import explain
from ropewalk.domain.workflow.completion import StepRecord
from ropewalk.errors import StoreRefused
from ropewalk.observe.why_inputs import why_inputs
from ropewalk.ports.store.schedules import ScheduleChange
from ropewalk.testing.contract.bench import Bench, holder
from ropewalk.testing.contract.builders import gate_on, new_job, settlement, worker_card
from ropewalk.testing.contract.store_scheduler import plan_of
from tests.backends.damaging import Damaging, OnPostgres, OnSqlite, behind_it, check_set_aside

FOUND_BY: Final = frozenset({"seq", "id", "tenant", "format", "prio_key", "time_key"})
"""with junk in these a claim does not find the row at all"""
COLUMNS: Final = [field for field in structs.fields(JobRecord) if field.name not in FOUND_BY | {"damaged"}]
SIMPLE: Final = (str, str | None, int, int | None, bytes, bytes | None)
_PLAIN: Final = get_type_hints(JobRecord)
"""without the ranges of numbers"""
STRUCTURED: Final = [field.name for field in COLUMNS if _PLAIN[field.name] not in SIMPLE]
WRITTEN_BY_A_CLAIM: Final = frozenset(
    {"status", "last_move", "updated_at", "owner", "ticket", "lease_expires_at", "start_rev", "started_at"}
)
READ_BY_A_CLAIM: Final = [name for name in STRUCTURED if name not in WRITTEN_BY_A_CLAIM]
OTHER_COLUMNS: Final = (
    *(("worker", column) for column in ("types", "queues", "tenants", "unstarted", "unanswered")),
    *(("attempt", column) for column in ("error", "move")),
    *(("scope", column) for column in ("cancel", "value")),
    *(("edge", column) for column in ("parent_kind", "ending")),
    *(("counters", "counts"), ("counter_sums", "counts"), ("schedule", "plan"), ("step", "kind")),
    *(("fleet_limit", "algorithm"), ("fleet_rate", "state"), ("quota", "algorithm"), ("quota_charge", "charge")),
    *(("deferred_work", "item"), ("deferred_work", "kind"), ("outbox", "payload"), ("log", "fields")),
)
IMPOSSIBLE: Final[tuple[tuple[str, int | str], ...]] = (
    *(("type", "nosuch"), ("crashes", -1), ("flags", -1), ("attempt", -1), ("rev", -1), ("fence", -1)),
    *(("run", -5), ("max_crashes", -1), ("lease_us", -5), ("timeout_us", -5)),
    *(
        ("flags", 1 << 17),
        ("flags", (1 << 30) | 128),
        ("created_at", 1 << 62),
        ("deadline", 1 << 62),
        ("deadline", -(1 << 62)),
        ("wake_at", 1 << 62),
    ),
)
IMPOSSIBLE_FLAGS: Final = tuple(("flags", flags) for flags in (-1, 255, 4095, 65_535))
COUNTED_BY_A_CLAIM: Final = frozenset({"attempt", "rev", "fence"})
"""A claim in one statement adds to these before anybody reads them: one more than -1 is in range again."""
SHAPES: Final = ("junk", "[1]", '"text"', '{"a": ')


class DamagedRowContract(Damaging):
    async def test_junk_in_a_waiting_job_stops_nobody(self, bench: Bench) -> None:
        for number, (column, junk) in enumerate(product(READ_BY_A_CLAIM, SHAPES)):
            await bench.add(id=f"d{number}", tags={"a": "b"})
            healthy = await behind_it(bench, number)
            await self.damage_job(bench, column, junk, f"d{number}")
            assert (await bench.job(f"d{number}")).damaged == (column,), "who only looks is told, and changes nothing"
            claimed = await bench.claimed(50, first_ticket=1 + 50 * number)
            assert [job.id for job in claimed.jobs] == healthy, (column, junk)
            assert [(moved.job.id, moved.move) for moved in claimed.moved] == [(f"d{number}", Move.SET_ASIDE)]
            await check_set_aside(bench, column, f"d{number}")

    async def test_a_value_no_job_can_have_stops_nobody(self, bench: Bench) -> None:
        """A column that can be read, but is out of range or contradicts another one."""
        for number, (column, value) in enumerate(IMPOSSIBLE):
            await bench.add(id=f"d{number}")
            healthy = await behind_it(bench, number)
            await self.damage_job(bench, column, value, f"d{number}")
            first = await bench.claimed(50, first_ticket=1 + 100 * number)
            again = await bench.claimed(50, first_ticket=51 + 100 * number)
            claimed = [job.id for job in first.jobs + again.jobs]
            assert [job_id for job_id in claimed if job_id in healthy] == healthy, (column, value)
            if column not in COUNTED_BY_A_CLAIM:
                assert f"d{number}" not in claimed, (column, value)
                await check_set_aside(bench, column, f"d{number}")

    async def test_a_place_in_a_chain_without_a_scope_stops_nobody(self, bench: Bench) -> None:
        await bench.running("a", id="first")
        await bench.add("b", id="later", gate=gate_on("first"))
        await bench.add("b", id="healthy", gate=gate_on("first"))
        await self.damage_job(bench, "chain_index", 3, "first")
        first = await bench.job("first")
        assert (await bench.settle(first)).lost is None
        assert {job.id for job in await bench.claim(9, types=["b"])} == {"later", "healthy"}

    async def test_why_names_what_contradicts_itself(self, bench: Bench) -> None:
        for number, (column, value) in enumerate((IMPOSSIBLE[0], IMPOSSIBLE[1], IMPOSSIBLE_FLAGS[1])):
            await bench.add(id=f"d{number}")
            await self.damage_job(bench, column, value, f"d{number}")
            snapshot = await bench.store.get(DEFAULT_TENANT, [f"d{number}"])
            job = snapshot.jobs[f"d{number}"]
            why = explain(job, await why_inputs(bench.store, job, snapshot.now), snapshot.now)
            assert why.cause == "damaged"
            assert column in why.explanation

    async def test_a_running_job_with_an_impossible_value_ends(self, bench: Bench) -> None:
        for number, (column, value) in enumerate([*IMPOSSIBLE, *IMPOSSIBLE_FLAGS]):
            job = await bench.running("ab"[number % 2], id=f"d{number}")
            await self.damage_job(bench, column, value, job.id)
            if column != "fence":  # without it nobody can tell whose lease it is
                assert (await bench.settle(job, Move.FAIL)).lost is None, (column, value)
                assert (await bench.job(job.id)).terminal

    async def test_a_lost_job_with_an_impossible_value_stops_no_sweep(self, bench: Bench) -> None:
        for number, (column, value) in enumerate([*IMPOSSIBLE, *IMPOSSIBLE_FLAGS]):
            await bench.running(f"d{number}", id=f"d{number}", max_attempts=1)
            await bench.running(f"o{number}", id=f"o{number}", max_attempts=1)
            await self.damage_job(bench, column, value, f"d{number}")
            await bench.runtime.advance(60)
            assert f"o{number}" in {moved.job.id for moved in await bench.sweep(9)}, (column, value)
            await bench.sweep(9)

    async def test_many_are_cancelled_although_flags_contradict_the_rest(self, bench: Bench) -> None:
        for number, (column, value) in enumerate(IMPOSSIBLE_FLAGS):
            await bench.add(id=f"d{number}", delay_us=HOUR)
            await bench.add(id=f"o{number}", delay_us=HOUR)
            await self.damage_job(bench, column, value, f"d{number}")
            await bench.store.cancel(DEFAULT_TENANT, [f"d{number}", f"o{number}"], reason=None, force=False)
            assert (await bench.job(f"o{number}")).status is Status.CANCELLED, value
            assert (await bench.job(f"d{number}")).terminal, value

    async def test_an_instant_no_calendar_knows_hides_nothing(self, bench: Bench) -> None:
        for column, value in product(("created_at", "run_at", "updated_at", "deadline"), (1 << 62, -(1 << 62))):
            await bench.finished(id="damaged")
            await bench.finished(id="other")
            await self.damage_job(bench, column, value)
            page = await bench.store.search(DEFAULT_TENANT, Filter(), order=Order.CREATED_ASC, cursor=None, limit=9)
            assert {job.id: job.damaged for job in page.jobs} == {"damaged": (column,), "other": ()}
            await bench.store.delete(DEFAULT_TENANT, ["damaged", "other"])

    async def test_a_claim_does_not_read_what_it_writes(self, bench: Bench) -> None:
        for number, column in enumerate(sorted(WRITTEN_BY_A_CLAIM & set(STRUCTURED))):
            await bench.add(id=f"d{number}")
            healthy = await behind_it(bench, number)
            await self.damage_job(bench, column, "junk", f"d{number}")
            assert [job.id for job in await bench.claim(50)] == [f"d{number}", *healthy]
            assert (await bench.job(f"d{number}")).damaged == ()

    async def test_junk_in_a_claim_of_one_stream_stops_nobody(self, bench: Bench) -> None:
        """Where the store leases a whole stream in one statement and reads the rows afterwards."""
        for number, shape in enumerate(SHAPES):
            await bench.add(id=f"before-{number}")
            await bench.claim(1)
            await bench.add(id=f"d{number}")
            healthy = await behind_it(bench, number)
            await self.damage_job(bench, "tags", shape, f"d{number}")
            claimed = await bench.claimed(50, first_ticket=99)
            assert [job.id for job in claimed.jobs] == healthy
            await check_set_aside(bench, "tags", f"d{number}")

    async def test_junk_in_a_running_job_lets_it_end(self, bench: Bench) -> None:
        for number, column in enumerate(STRUCTURED):
            job = await bench.running("ab"[number % 2], id=f"d{number}")
            await self.damage_job(bench, column, "junk", job.id)
            if column != "status":  # whether it runs is what the status says
                assert (await bench.settle(job, Move.FAIL)).lost is None, column
            assert (await bench.job(job.id)).id == job.id

    async def test_junk_in_a_lost_job_stops_no_sweep(self, bench: Bench) -> None:
        for number, column in enumerate(STRUCTURED):
            await bench.running(id=f"d{number}", max_attempts=1)
            await bench.running(id=f"o{number}", max_attempts=1)
            await self.damage_job(bench, column, "junk", f"d{number}")
            await bench.runtime.advance(60)
            assert {moved.job.id for moved in await bench.sweep(9)} == {f"d{number}", f"o{number}"}, column
            assert await bench.sweep(9) == []

    async def test_junk_in_a_finished_job_hides_nothing(self, bench: Bench) -> None:
        for column in STRUCTURED:
            await bench.finished(id="damaged", tags={"a": "b"})
            await bench.finished(id="other", tags={"a": "b"})
            await self.damage_job(bench, column, "junk")
            for wanted in (Filter(tags={"a": "b"}), Filter(error_codes=("none",))):
                await bench.store.search(DEFAULT_TENANT, wanted, order=Order.CREATED_ASC, cursor=None, limit=9)
            page = await bench.store.search(DEFAULT_TENANT, Filter(), order=Order.CREATED_ASC, cursor=None, limit=9)
            assert {job.id: job.damaged for job in page.jobs} == {"damaged": (column,), "other": ()}
            await bench.store.delete(DEFAULT_TENANT, ["damaged", "other"])
            assert await bench.find("damaged") is None

    async def test_a_job_set_aside_is_not_retried_before_it_is_repaired(self, bench: Bench) -> None:
        await bench.add(id="damaged", tags={"a": "b"})
        await self.damage_job(bench, "tags", "junk")
        await bench.claim()
        [answer] = await bench.store.retry(DEFAULT_TENANT, ["damaged"], RetryRequest())
        assert (answer.status, answer.reason) == (RetryStatus.NOT_RETRIABLE, "damaged_row")
        await self.damage_job(bench, "tags", '{"a": "b"}')
        [answer] = await bench.store.retry(DEFAULT_TENANT, ["damaged"], RetryRequest())
        assert answer.status is RetryStatus.QUEUED
        assert (await bench.claim_one()).tags == {"a": "b"}

    async def test_what_a_job_set_aside_brings_is_brought(self, bench: Bench) -> None:
        """Its compensation is queued, and the key, the group and the counters hear of its end."""
        await bench.add(id="damaged", on_failure=CompensationSpec(type="undo"))
        await self.damage_job(bench, "tags", "junk")
        undo = await bench.claim_one()
        assert undo.origin is not None
        assert undo.origin.id == "damaged"

    async def test_operators_reach_a_damaged_job(self, bench: Bench) -> None:
        await bench.add(id="damaged", delay_us=HOUR)
        await self.damage_job(bench, "backoff", "junk")
        await bench.cancel("damaged")
        assert (await bench.job("damaged")).terminal
        assert (await bench.store.delete(DEFAULT_TENANT, ["damaged"]))["damaged"] == "deleted"

    async def test_junk_in_any_other_table_stops_nobody(self, bench: Bench) -> None:
        """Each verb that reads the table answers without the row."""
        await fill_every_table(bench)
        for number, ((table, column), junk) in enumerate(product(OTHER_COLUMNS, SHAPES[:2])):
            await bench.add("b", id=f"healthy-{number}", tenant="healthy")
            await self.damage(bench, table, column, junk, where="1 = 1")
            await use_every_table(bench)
            claimed = await bench.claim(99, types=["b"])
            assert f"healthy-{number}" in {job.id for job in claimed}, (table, column)
            await bench.settle_all("worker", [settlement(job) for job in claimed])

    async def test_the_examination_tells_of_damage(self, bench: Bench) -> None:
        await _schedule(bench, "one")
        await bench.add(id="damaged")
        await self.damage_job(bench, "tags", "junk")
        await self.damage(bench, "schedule", "plan", "junk", where="1 = 1")
        assert (await bench.store.examine()).work.set_aside == 0, "it has not come up yet"
        await bench.claim()
        work = (await bench.store.examine()).work
        assert (work.set_aside, work.unreadable) == (1, ["schedule"])

    async def test_a_group_whose_value_was_lost_does_not_succeed(self, bench: Bench) -> None:
        root = await bench.running(id="root")
        await bench.submit(new_job(spawn_key="k", group_id="root", parent_id="root"), under=holder(root))
        await self.damage(bench, "scope", "value", "junk", where="1 = 1")
        with pytest.raises(StoreRefused, match="group root"):
            await bench.store.groups(DEFAULT_TENANT, ["root"])

    async def test_a_step_that_cannot_be_read_is_not_run_again(self, bench: Bench) -> None:
        job = await bench.running()
        await bench.store.record_step(holder(job), StepRecord(position=0, name="s", kind="step", value=b"1"))
        await self.damage(bench, "step", "kind", "junk", where="1 = 1")
        with pytest.raises(StoreRefused, match="a stored step"):
            await bench.store.steps(job.seq)

    async def test_a_damaged_schedule_does_not_stop_the_others(self, bench: Bench) -> None:
        for name in ("one", "two", "three"):
            await _schedule(bench, name)
        await self.damage(bench, "schedule", "plan", "junk", where="name = 'two'")
        due = await bench.store.due_schedules(after=None, limit=9)
        assert {each.schedule.name for each in due.schedules} == {"one", "three"}

    async def test_a_page_of_schedules_is_full_although_some_are_damaged(self, bench: Bench) -> None:
        """A short page is taken for the last one."""
        for name in "abcdefg":
            await _schedule(bench, name)
        await self.damage(bench, "schedule", "plan", "junk", where="name IN ('a', 'b', 'c', 'f')")
        due = (await bench.store.due_schedules(after=None, limit=2)).schedules
        rest = (await bench.store.due_schedules(after=due[-1].schedule, limit=2)).schedules
        assert [each.schedule.name for each in [*due, *rest]] == ["d", "e", "g"]
        listed = (await bench.store.list_schedules(DEFAULT_TENANT, after=None, limit=2)).schedules
        assert [each.schedule.name for each in listed] == ["d", "e"]


async def _schedule(bench: Bench, name: str) -> None:
    schedule = Schedule(name=name, tenant=DEFAULT_TENANT, plan=plan_of(Every(HOUR)), generation=1, next_fire=7)
    await bench.store.change_schedules([ScheduleChange(before=None, after=schedule)])


async def fill_every_table(bench: Bench) -> None:
    store = bench.store
    await bench.finished(Move.FAIL, id="failed")
    await store.register(worker_card("w"))
    await store.put_limit(FlowLimit(tenant=DEFAULT_TENANT, kind="key", name="k", rate=Rate(9, per=10)))
    await store.put_quota(Quota(tenant="acme", submissions=Rate(9, per=10)))
    await _schedule(bench, "one")
    root = await bench.running(id="root", limit_key="k", report_orphan=True)
    await bench.submit(new_job(spawn_key="k", group_id="root", parent_id="root"), under=holder(root))
    await bench.add("a", id="child", gate=gate_on("root"))
    await bench.add(tenant="acme")
    await store.record_step(holder(root), StepRecord(position=0, name="s", kind="step", value=b"1"))
    await store.fold_counters(None, 9)


async def use_every_table(bench: Bench) -> None:
    store = bench.store
    await store.fold_counters(None, 99)
    await store.stats(DEFAULT_TENANT, StatsQuery(last_us=HOUR))
    await store.tenants_with(Status.FAILED, ["t"])
    await store.workers()
    await store.limits(DEFAULT_TENANT)
    await store.quotas()
    await store.quota_use("acme")
    await store.due_schedules(after=None, limit=9)
    await store.list_schedules(DEFAULT_TENANT, after=None, limit=9)
    await store.history(DEFAULT_TENANT, "failed")
    await store.log(DEFAULT_TENANT, "root")
    child = await bench.job("child")
    await store.edges([child.seq])
    await store.dependencies(child.seq)
    await store.cascade(9)
    await store.take_orphans(9, 1)
    await bench.add("a", tenant="acme")
    await bench.claim(9, types=["a"])
    await bench.runtime.advance(40)
    await bench.sweep(9)
    await store.prune(Retention(), 99)
    await store.examine()


class TestDamagedRowsOnSqlite(DamagedRowContract, OnSqlite):
    async def test_any_column_may_hold_what_is_not_of_its_type(self, bench: Bench) -> None:
        """SQLite keeps whatever it is given: bytes that are no text, in a column of numbers or of names."""
        for number, field in enumerate(COLUMNS):
            if field.name not in WRITTEN_BY_A_CLAIM and field.type not in (bytes, bytes | None):
                await bench.add(id=f"d{number}")
                healthy = await behind_it(bench, number)
                await self.damage_job(bench, field.name, b"\xff\xfe", f"d{number}")
                assert [job.id for job in await bench.claim(50)] == healthy, field.name
                await check_set_aside(bench, field.name, f"d{number}")


class TestDamagedRowsOnPostgres(DamagedRowContract, OnPostgres): ...
