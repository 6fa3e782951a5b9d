"""Stored schedules: whoever changes one has read its newest state, and the jobs come with the change or not at all."""

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
from ropewalk.testing.contract.build import gate_on, new_job
from ropewalk.testing.contract.clockwork import Clockwork, plan_of

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
    """T1, T3, safe-11: compare and set."""

    @pytest.mark.parametrize(
        "timing", [ByCron("30 2 * * *", "Europe/Oslo"), Every(HOUR, 5), ByFunction("tides")], ids=str
    )
    async def test_a_schedule_is_kept_as_it_is(self, bench: Bench, timing: Timing) -> None:
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
        clockwork = Clockwork(bench.store)
        await clockwork.put(None, schedule)
        assert (await clockwork.read(schedule.name, tenant="acme")).schedule == schedule

    async def test_one_that_makes_its_jobs_itself_and_one_that_ended(self, bench: Bench) -> None:
        """T1."""
        schedule = Schedule(name="s", plan=plan_of(Every(HOUR, 5), work="make"), next_fire=None)
        clockwork = Clockwork(bench.store)
        await clockwork.put(None, schedule)
        assert (await clockwork.read("s")).schedule == schedule

    async def test_a_name_is_taken_once(self, bench: Bench) -> None:
        """safe-11: who comes second changes nothing, and its jobs are not there."""
        clockwork = Clockwork(bench.store)
        first = await clockwork.create("s", HOURLY)
        assert await clockwork.put(None, pause(first.schedule), new_job(id="late")) is None
        assert await clockwork.read("s") == first
        assert await bench.find("late") is None

    async def test_what_was_changed_meanwhile_is_not_overwritten(self, bench: Bench) -> None:
        """safe-11: neither set nor deleted, and its jobs are not there."""
        clockwork = Clockwork(bench.store)
        read = await clockwork.create("s", HOURLY)
        changed = await clockwork.put(read, pause(read.schedule))
        now = await clockwork.read("s")
        assert changed is not None
        assert now.version == changed.version
        assert now.version != read.version
        assert await clockwork.put(read, structs.replace(read.schedule, next_fire=9), new_job(id="late")) is None
        assert await clockwork.put(read, None, new_job(id="late")) is None
        assert await clockwork.read("s") == now
        assert await bench.find("late") is None

    async def test_one_deleted_and_made_anew_is_another(self, bench: Bench) -> None:
        """safe-11: even at the same moment and with the same content."""
        clockwork = Clockwork(bench.store)
        old = await clockwork.create("s", HOURLY)
        deleted = await clockwork.put(old, None)
        assert deleted is not None
        assert deleted.version is None
        assert (await bench.store.get_schedules("default", ["s"])).schedules == []
        assert await clockwork.put(old, old.schedule) is None, "what is deleted cannot be changed"
        new = await clockwork.create("s", HOURLY)
        assert new.schedule == old.schedule
        assert await clockwork.put(old, pause(old.schedule)) is None

    async def test_changes_of_one_call_are_independent(self, bench: Bench) -> None:
        """safe-3: one that comes too late keeps nobody back; the second change of the same schedule comes too late."""
        clockwork = Clockwork(bench.store)
        names = ["c", "a", "b"]
        read = [await clockwork.create(name, HOURLY) for name in names]
        await clockwork.put(read[1], pause(read[1].schedule))
        again = [*read, read[0]]
        changes = [
            ScheduleChange(before=each, after=pause(each.schedule), jobs=[new_job(id=f"job-of-{number}")])
            for number, each in enumerate(again)
        ]
        answers = await bench.store.change_schedules(changes)
        assert [answer is not None for answer in answers] == [True, False, True, False]
        assert [job.id for job in await clockwork.jobs()] == ["job-of-0", "job-of-2"]
        assert await bench.store.change_schedules([]) == []

    async def test_a_refused_job_keeps_nothing_back(self, bench: Bench) -> None:
        """T1: a schedule goes on although one of its jobs cannot be; the others are there."""
        clockwork = Clockwork(bench.store)
        read = await clockwork.create("s", HOURLY)
        await bench.add(id="taken")
        jobs = [new_job(id="before"), new_job("b", id="taken"), new_job(gate=gate_on("nobody")), new_job(id="after")]
        changed = await clockwork.put(read, pause(read.schedule), *jobs)
        assert changed is not None
        assert [_told(answer) for answer in changed.answers] == ["before", Conflict, NotFound, "after"]
        assert (await clockwork.read("s")).schedule.paused
        assert await bench.find("before") is not None

    async def test_a_template_is_submitted_like_any_job(self, bench: Bench) -> None:
        """T1: keys, delays and dependencies hold for the jobs of schedules."""
        clockwork = Clockwork(bench.store)
        read = await clockwork.create("s", HOURLY)
        await bench.add(id="parent")
        key = IdempotencyKey(key="one-at-a-time")
        jobs = [
            new_job(id="first", key=key),
            new_job(id="second", key=key),
            new_job(id="later", delay_us=HOUR),
            new_job(id="child", gate=gate_on("parent")),
        ]
        changed = await clockwork.put(read, pause(read.schedule), *jobs)
        assert changed is not None
        assert [_told(answer) for answer in changed.answers] == ["first", "first", "later", "child"]
        assert await bench.find("second") is None
        assert [await bench.state(each) for each in ("later", "child")] == [State.DELAYED, State.PENDING]

    async def test_an_id_that_is_there_already_is_the_same_job(self, bench: Bench) -> None:
        """safe-11: whatever happened to the schedule's row, a fire is one job."""
        clockwork = Clockwork(bench.store)
        read = await clockwork.create("s", HOURLY)
        fire = new_job(id="the-fire")
        await bench.submit(fire)
        changed = await clockwork.put(read, pause(read.schedule), fire, new_job(id="another"))
        assert changed is not None
        [first], [second] = (answer for answer in changed.answers if not isinstance(answer, RopewalkError))
        assert (first.duplicate, second.duplicate) == (True, False)

    async def test_a_schedule_that_others_see(self, bench: Bench) -> None:
        """T1: another process finds it, and what it changes is seen here."""
        here, there = Clockwork(bench.store), Clockwork((await bench.second()).store)
        read = await here.create("s", HOURLY)
        assert await there.read("s") == read
        await there.put(read, edit(read.schedule, plan_of(Every(MINUTE)), bench.runtime.now()))
        assert (await here.read("s")).schedule.generation == 2


@needs(SCHEDULES)
class ScheduleReadingContract(Contract):
    """T1, T3: by name, by page, by time."""

    async def test_listed_by_name(self, bench: Bench) -> None:
        """T3: in pages, ordered by the bytes of their names whatever the language of the machine."""
        clockwork = Clockwork(bench.store)
        for name in ("b", "é", "a", "Z", "a b", "_"):
            await clockwork.create(name, HOURLY)
        await clockwork.create("foreign", HOURLY, tenant="acme")
        listed = await bench.store.list_schedules("default", after=None, limit=99)
        assert listed.now == bench.runtime.now()
        names = [record.schedule.name for record in listed.schedules]
        assert names == ["Z", "_", "a", "a b", "b", "é"]
        page = await bench.store.list_schedules("default", after="_", limit=2)
        assert [record.schedule.name for record in page.schedules] == ["a", "a b"]
        wanted = await bench.store.get_schedules("default", ["b", "nobody", "a", "b", "foreign"])
        assert [record.schedule.name for record in wanted.schedules] == ["a", "b"]

    async def test_due_by_time(self, bench: Bench) -> None:
        """T1: of every tenant, paused ones too, the ended never; and when to look again."""
        clockwork = Clockwork(bench.store)
        now = bench.runtime.now()
        for name, tenant, next_fire in (
            ("late", "default", now - 5),
            ("exactly", "zeta", now),
            ("exactly", "acme", now),
            ("soon", "default", now + 1),
            ("later", "default", now + 2),
            ("ended", "default", None),
        ):
            await clockwork.put(
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

    async def test_nothing_due(self, bench: Bench) -> None:
        """T1."""
        due = await bench.store.due_schedules(after=None, limit=9)
        assert (due.schedules, due.next_fire) == ([], None)

    async def test_tenants_are_apart(self, bench: Bench) -> None:
        """safe-15: the same name is another schedule, and a foreign one is like a missing one."""
        clockwork = Clockwork(bench.store)
        mine = await clockwork.create("s", HOURLY, tenant="acme")
        assert (await bench.store.get_schedules("zeta", ["s"])).schedules == []
        assert (await bench.store.list_schedules("zeta", after=None, limit=9)).schedules == []
        yours = await clockwork.create("s", plan_of(Every(MINUTE)), tenant="zeta")
        await clockwork.put(yours, None)
        assert await clockwork.read("s", tenant="acme") == mine
        await bench.runtime.advance(hours=1)
        await clockwork.tick()
        assert await clockwork.jobs(tenant="zeta") == []
        assert [job.tenant for job in await clockwork.jobs(tenant="acme")] == ["acme"]


def _told(answer: SubmitAnswer) -> object:
    return type(answer) if isinstance(answer, RopewalkError) else answer[0].id
