"""Storing and reading schedules."""

from __future__ import annotations

import pytest
from msgspec import structs

from ropewalk.domain.failure import Category, ErrorInfo
from ropewalk.domain.jobs.record import CompensatedJob, CompensationSpec, IdempotencyKey
from ropewalk.domain.jobs.retry import Backoff
from ropewalk.domain.jobs.states import State
from ropewalk.domain.schedules.schedule import ByCron, ByFunction, Every, Schedule, Timing, edit, pause
from ropewalk.domain.time import HOUR, MINUTE, SECOND
from ropewalk.errors import Conflict, NotFound, RopewalkError
from ropewalk.ports.store.capabilities import SCHEDULES
from ropewalk.ports.store.schedules import ScheduleChange
from ropewalk.ports.store.submission import SubmitAnswer
from ropewalk.testing.contract.base import Contract, needs
from ropewalk.testing.contract.bench import Bench
from ropewalk.testing.contract.builders import gate_on, new_job
from ropewalk.testing.contract.store_scheduler import StoreScheduler, plan_of

HOURLY = plan_of(Every(HOUR))
FULL = new_job(
    id="",
    input=b'{"text": "\xc3\xa9\\u0000"}',
    queue="mail",
    priority=-7,
    delay_us=5,
    max_attempts=None,
    timeout_us=SECOND,
    backoff=Backoff.constant(3),
    ttl_us=HOUR,
    key=IdempotencyKey(key="k", scope="any", window_us=MINUTE),
    tags={"colour": "red"},
    workflow_id="w",
    gate=gate_on("parent", allow_missing=True),
    on_failure=CompensationSpec(type="undo", input=b"\x00\xff"),
    origin=CompensatedJob(
        id="o", run=1, type="t", input=b"{}", error=ErrorInfo(category=Category.TEMPORARY, message="m"), started=True
    ),
    report_orphan=True,
)


@needs(SCHEDULES)
class ScheduleContract(Contract):
    """A change of a schedule takes effect only if its author had read the newest version (T1, T3, safe-11)."""

    @pytest.mark.parametrize(
        "timing", [ByCron("30 2 * * *", "Europe/Oslo"), Every(HOUR, 5), ByFunction("tides")], ids=str
    )
    async def test_a_schedule_is_stored_as_it_was_put(self, bench: Bench, timing: Timing) -> None:
        """T1: every field, in the template, too."""
        schedule = Schedule(
            name="a 'name' with é",
            tenant="acme",
            plan=plan_of(timing, work=FULL, missed="all"),
            generation=3,
            next_fire=7,
            last_fire=5,
            paused=True,
            overridden=True,
        )
        scheduler = StoreScheduler(bench.store)
        await scheduler.put(None, schedule)
        assert (await scheduler.read(schedule.name, tenant="acme")).schedule == schedule

    async def test_a_schedule_without_a_template_and_one_that_ended_are_stored(self, bench: Bench) -> None:
        """T1."""
        schedule = Schedule(name="s", plan=plan_of(Every(HOUR, 5), work="make"), next_fire=None)
        scheduler = StoreScheduler(bench.store)
        await scheduler.put(None, schedule)
        assert (await scheduler.read("s")).schedule == schedule

    async def test_a_name_of_a_schedule_is_taken_once(self, bench: Bench) -> None:
        """safe-11: who comes second changes nothing, and its jobs are not there."""
        scheduler = StoreScheduler(bench.store)
        first = await scheduler.create("s", HOURLY)
        assert await scheduler.put(None, pause(first.schedule), new_job(id="late")) is None
        assert await scheduler.read("s") == first
        assert await bench.find("late") is None

    async def test_a_schedule_that_was_changed_meanwhile_is_not_overwritten(self, bench: Bench) -> None:
        """safe-11: neither set nor deleted, and its jobs are not there."""
        scheduler = StoreScheduler(bench.store)
        read = await scheduler.create("s", HOURLY)
        changed = await scheduler.put(read, pause(read.schedule))
        now = await scheduler.read("s")
        assert changed is not None
        assert now.version == changed.version
        assert now.version != read.version
        assert await scheduler.put(read, structs.replace(read.schedule, next_fire=9), new_job(id="late")) is None
        assert await scheduler.put(read, None, new_job(id="late")) is None
        assert await scheduler.read("s") == now
        assert await bench.find("late") is None

    async def test_a_schedule_deleted_and_created_again_is_another(self, bench: Bench) -> None:
        """safe-11: even at the same moment and with the same content."""
        scheduler = StoreScheduler(bench.store)
        old = await scheduler.create("s", HOURLY)
        deleted = await scheduler.put(old, None)
        assert deleted is not None
        assert deleted.version is None
        assert (await bench.store.get_schedules("default", ["s"])).schedules == []
        assert await scheduler.put(old, old.schedule) is None, "what is deleted cannot be changed"
        new = await scheduler.create("s", HOURLY)
        assert new.schedule == old.schedule
        assert await scheduler.put(old, pause(old.schedule)) is None

    async def test_schedule_changes_of_one_call_are_independent(self, bench: Bench) -> None:
        """safe-3: one that comes too late keeps nobody back; the second change of the same schedule comes too late."""
        scheduler = StoreScheduler(bench.store)
        names = ["c", "a", "b"]
        read = [await scheduler.create(name, HOURLY) for name in names]
        await scheduler.put(read[1], pause(read[1].schedule))
        again = [*read, read[0]]
        changes = [
            ScheduleChange(before=each, after=pause(each.schedule), jobs=[new_job(id=f"job-of-{number}")])
            for number, each in enumerate(again)
        ]
        answers = await bench.store.change_schedules(changes)
        assert [answer is not None for answer in answers] == [True, False, True, False]
        assert [job.id for job in await scheduler.jobs()] == ["job-of-0", "job-of-2"]
        assert await bench.store.change_schedules([]) == []

    async def test_a_refused_job_does_not_stop_its_schedule(self, bench: Bench) -> None:
        """T1: a schedule goes on although one of its jobs cannot be; the others are there."""
        scheduler = StoreScheduler(bench.store)
        read = await scheduler.create("s", HOURLY)
        await bench.add(id="taken")
        jobs = [new_job(id="before"), new_job("b", id="taken"), new_job(gate=gate_on("nobody")), new_job(id="after")]
        changed = await scheduler.put(read, pause(read.schedule), *jobs)
        assert changed is not None
        assert [_told(answer) for answer in changed.answers] == ["before", Conflict, NotFound, "after"]
        assert (await scheduler.read("s")).schedule.paused
        assert await bench.find("before") is not None

    async def test_a_template_is_submitted_like_any_job(self, bench: Bench) -> None:
        """T1: keys, delays and dependencies hold for the jobs of schedules."""
        scheduler = StoreScheduler(bench.store)
        read = await scheduler.create("s", HOURLY)
        await bench.add(id="parent")
        key = IdempotencyKey(key="one-at-a-time")
        jobs = [
            new_job(id="first", key=key),
            new_job(id="second", key=key),
            new_job(id="later", delay_us=HOUR),
            new_job(id="child", gate=gate_on("parent")),
        ]
        changed = await scheduler.put(read, pause(read.schedule), *jobs)
        assert changed is not None
        assert [_told(answer) for answer in changed.answers] == ["first", "first", "later", "child"]
        assert await bench.find("second") is None
        assert [await bench.state(each) for each in ("later", "child")] == [State.DELAYED, State.PENDING]

    async def test_a_fire_whose_job_exists_already_adds_no_second_job(self, bench: Bench) -> None:
        """safe-11: whatever happened to the schedule's row, a fire is one job."""
        scheduler = StoreScheduler(bench.store)
        read = await scheduler.create("s", HOURLY)
        fire = new_job(id="the-fire")
        await bench.submit(fire)
        changed = await scheduler.put(read, pause(read.schedule), fire, new_job(id="another"))
        assert changed is not None
        [first], [second] = (answer for answer in changed.answers if not isinstance(answer, RopewalkError))
        assert (first.duplicate, second.duplicate) == (True, False)

    async def test_a_schedule_is_seen_by_every_store_on_the_data(self, bench: Bench) -> None:
        """T1: another process finds it, and what it changes is seen here."""
        here, there = StoreScheduler(bench.store), StoreScheduler((await bench.second()).store)
        read = await here.create("s", HOURLY)
        assert await there.read("s") == read
        await there.put(read, edit(read.schedule, plan_of(Every(MINUTE)), bench.runtime.now()))
        assert (await here.read("s")).schedule.generation == 2


@needs(SCHEDULES)
class ScheduleReadingContract(Contract):
    """Schedules are listed by name, page by page, and by the time at which they are due (T1, T3)."""

    async def test_schedules_are_listed_by_name(self, bench: Bench) -> None:
        """T3: in pages, ordered by the bytes of their names whatever the language of the machine."""
        scheduler = StoreScheduler(bench.store)
        for name in ("b", "é", "a", "Z", "a b", "_"):
            await scheduler.create(name, HOURLY)
        await scheduler.create("foreign", HOURLY, tenant="acme")
        listed = await bench.store.list_schedules("default", after=None, limit=99)
        assert listed.now == bench.runtime.now()
        names = [record.schedule.name for record in listed.schedules]
        assert names == ["Z", "_", "a", "a b", "b", "é"]
        page = await bench.store.list_schedules("default", after="_", limit=2)
        assert [record.schedule.name for record in page.schedules] == ["a", "a b"]
        wanted = await bench.store.get_schedules("default", ["b", "nobody", "a", "b", "foreign"])
        assert [record.schedule.name for record in wanted.schedules] == ["a", "b"]

    async def test_due_schedules_are_given_in_order_of_time(self, bench: Bench) -> None:
        """T1: of every tenant, paused ones too, the ended never; and when to look again."""
        scheduler = StoreScheduler(bench.store)
        now = bench.runtime.now()
        for name, tenant, next_fire in (
            ("late", "default", now - 5),
            ("exactly", "zeta", now),
            ("exactly", "acme", now),
            ("soon", "default", now + 1),
            ("later", "default", now + 2),
            ("ended", "default", None),
        ):
            await scheduler.put(
                None, Schedule(name=name, tenant=tenant, plan=HOURLY, next_fire=next_fire, paused=name == "late")
            )
        due = await bench.store.due_schedules(after=None, limit=9)
        found = [(record.schedule.name, record.schedule.tenant) for record in due.schedules]
        assert found == [("late", "default"), ("exactly", "acme"), ("exactly", "zeta")]
        assert (due.now, due.next_fire) == (now, now + 1)
        first = await bench.store.due_schedules(after=None, limit=1)
        rest = await bench.store.due_schedules(after=first.schedules[0].schedule, limit=9)
        assert first.schedules + rest.schedules == due.schedules
        assert rest.next_fire == now + 1

    async def test_no_schedule_is_due_on_an_empty_store(self, bench: Bench) -> None:
        """T1."""
        due = await bench.store.due_schedules(after=None, limit=9)
        assert (due.schedules, due.next_fire) == ([], None)

    async def test_schedules_of_tenants_are_separate(self, bench: Bench) -> None:
        """safe-15: the same name is another schedule, and a foreign one is like a missing one."""
        scheduler = StoreScheduler(bench.store)
        mine = await scheduler.create("s", HOURLY, tenant="acme")
        assert (await bench.store.get_schedules("zeta", ["s"])).schedules == []
        assert (await bench.store.list_schedules("zeta", after=None, limit=9)).schedules == []
        yours = await scheduler.create("s", plan_of(Every(MINUTE)), tenant="zeta")
        await scheduler.put(yours, None)
        assert await scheduler.read("s", tenant="acme") == mine
        await bench.runtime.advance(hours=1)
        await scheduler.fire_due()
        assert await scheduler.jobs(tenant="zeta") == []
        assert [job.tenant for job in await scheduler.jobs(tenant="acme")] == ["acme"]


def _told(answer: SubmitAnswer) -> object:
    return type(answer) if isinstance(answer, RopewalkError) else answer[0].id
