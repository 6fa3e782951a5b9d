"""T3: schedules are created, looked at, edited, paused, triggered and deleted at run time; code and people agree."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from ropewalk import App, Conflict, DefinitionError, Filter, InvalidInput, NotFound, ScheduleInfo, job, schedule
from ropewalk.client.schedules import editor
from ropewalk.domain.time import SECOND
from ropewalk.ports.store.schedules import ScheduleChange
from ropewalk.testing import FakeRuntime, Rehearsal
from tests.apps import MakeApp, embedded_store_kind
from tests.client.schedules import Clock, letter, report, tides, write

store_kind = embedded_store_kind

MIDNIGHT = datetime(2030, 1, 1, tzinfo=UTC)


@pytest.fixture
def clock(make_app: MakeApp) -> Clock:
    return Clock(make_app, functions=[tides, write])


async def test_a_schedule_as_people_see_it(clock: Clock) -> None:
    """T3."""
    async with clock.app as app:
        created = await app.create_schedule(
            "nightly", cron="30 3 * * *", timezone="Europe/Oslo", job=report("tax").using(queue="slow"), missed="once"
        )
        assert created == ScheduleInfo(
            name="nightly",
            tenant="default",
            cron="30 3 * * *",
            timezone="Europe/Oslo",
            every=None,
            next=None,
            job_type="report",
            queue="slow",
            arguments={"kind": "tax"},
            run=None,
            missed="once",
            next_fire=MIDNIGHT + timedelta(hours=2, minutes=30),
            last_fire=None,
            upcoming=tuple(MIDNIGHT + timedelta(days=day, hours=2, minutes=30) for day in range(5)),
            paused=False,
            overridden=False,
            generation=1,
            version=created.version,
        )
        assert (created.when, created.ended) == ("30 3 * * * (Europe/Oslo)", False)
        assert await app.get_schedule("nightly") == created
        assert len((await app.get_schedule("nightly", upcoming=40)).upcoming) == 40
        await app.create_schedule("a", every=timedelta(minutes=90), run="write")
        listed = await app.schedules()
        assert [(info.name, info.when, len(info.upcoming)) for info in listed] == [
            ("a", "every 90 min", 1),
            ("nightly", "30 3 * * * (Europe/Oslo)", 1),
        ]
        with pytest.raises(InvalidInput, match="upcoming=1001 must be between 0 and 1,000"):
            await app.get_schedule("a", upcoming=1001)


async def test_names_are_taken_and_missing(clock: Clock) -> None:
    """T3: errors name the schedule and what to do."""
    async with clock.app as app:
        await app.create_schedule("s", every=60, job=report())
        with pytest.raises(Conflict, match="there is a schedule 's' already: edit it, or delete it first"):
            await app.create_schedule("s", every=60, job=report())
        for verb in (
            app.get_schedule,
            app.edit_schedule,
            app.pause_schedule,
            app.trigger_schedule,
            app.delete_schedule,
        ):
            with pytest.raises(NotFound, match="no schedule 'nobody' for this tenant"):
                await verb("nobody")
        with pytest.raises(InvalidInput, match="name is empty"):
            await app.create_schedule("", every=60, job=report())
        with pytest.raises(InvalidInput, match="name has 257 characters, over name_chars_max=256"):
            await app.create_schedule("x" * 257, every=60, job=report())


@pytest.mark.parametrize(
    ("options", "told", "field"),
    [
        ({"job": report()}, "none of cron=, every= and next= is given", "cron"),
        ({"every": 60}, "none of job= and run= is given", "job"),
        ({"every": 60, "cron": "* * * * *", "job": report()}, "cron= and every= are both given", "every"),
        ({"every": 60, "job": report(), "run": write}, "job= and run= are both given", "run"),
        ({"every": 60, "job": report(), "timezone": "UTC"}, "timezone is given without cron", "timezone"),
        ({"cron": "61 * * * *", "job": report()}, "'61' at character 1 is out of range", "cron"),
        ({"cron": "* * * * *", "timezone": "Oslo", "job": report()}, "timezone='Oslo' is not in the tz", "timezone"),
        ({"every": 0.05, "job": report()}, "every=0.05 is too short: give at least 0.1 s", "every"),
        ({"every": 60, "job": report}, "is no job: call a job type, like job=report", "job"),
        ({"every": 60, "job": report(), "missed": "x"}, "missed='x' must be 'skip', 'once' or 'all'", "missed"),
        ({"every": 60, "job": report(), "evry": 1}, "'evry' is no option of a schedule; did you mean 'every'", "evry"),
        ({"next": lambda after: None, "job": report()}, "has no name to be stored by", "next"),
        ({"every": 60, "run": "unknown"}, r"run='unknown' is not registered with this app", "run"),
        ({"next": "unknown", "job": report()}, r"pass the function with App\(functions=\[", "next"),
        (
            {"every": 60, "job": report().using(run_at=MIDNIGHT)},
            "has run_at, which would be the same .* use delay",
            "run_at",
        ),
        (
            {"every": 60, "job": report().using(deadline=MIDNIGHT)},
            "has deadline, which would be the same .* use ttl",
            "deadline",
        ),
        (
            {"every": 60, "job": report().using(tenant="acme")},
            "has tenant='acme', but the schedule 'default'",
            "tenant",
        ),
    ],
)
async def test_what_cannot_work_is_refused(clock: Clock, options: Any, told: str, field: str) -> None:
    """T3: naming the option, its value and what to do."""
    async with clock.app as app:
        with pytest.raises(InvalidInput, match=told) as refused:
            await app.create_schedule("s", **options)
        assert refused.value.field == field
        assert await app.schedules() == []


async def test_an_edit_changes_what_is_given(clock: Clock) -> None:
    """T3: the time zone of an expression stays, and so do times that were not mentioned."""
    async with clock.app as app:
        await app.create_schedule("s", cron="0 3 * * *", timezone="Europe/Oslo", job=report())
        edited = await app.edit_schedule("s", cron="0 4 * * *")
        assert (edited.cron, edited.timezone, edited.job_type) == ("0 4 * * *", "Europe/Oslo", "report")
        assert (edited.generation, edited.overridden) == (2, True)
        edited = await app.edit_schedule("s", timezone="UTC", missed="all")
        assert (edited.cron, edited.timezone, edited.missed) == ("0 4 * * *", "UTC", "all")
        edited = await app.edit_schedule("s", run=write)
        assert (edited.run, edited.job_type, edited.cron) == ("write", None, "0 4 * * *")
        edited = await app.edit_schedule("s", every=60)
        assert (edited.when, edited.cron, edited.timezone) == ("every 1 min", None, None)
        with pytest.raises(InvalidInput, match="timezone is for schedules with cron"):
            await app.edit_schedule("s", timezone="UTC")
        with pytest.raises(InvalidInput, match="there is nothing to change in schedule 's'"):
            await app.edit_schedule("s")
        assert (await app.get_schedule("s")).generation == 5


async def test_an_edit_takes_along_what_is_owed(clock: Clock) -> None:
    """T3: under the times it was owed by, in the same change."""
    async with clock.app as app:
        await app.create_schedule("s", every=60, job=report("old"))
        await clock.pass_by(seconds=60)
        await app.edit_schedule("s", job=report("new"))
        assert await app.count() == 0, "the same times: the fire is still due"
        await app.edit_schedule("s", every=3600, job=report("newest"))
        assert [job.arguments for job in await clock.jobs()] == [{"kind": "new"}]
        assert (await app.get_schedule("s")).last_fire == MIDNIGHT + timedelta(seconds=60)
        await clock.pass_by(seconds=3600)
        await clock.work()
        assert [job.arguments for job in await clock.jobs()] == [{"kind": "new"}, {"kind": "newest"}]


async def test_an_edit_mends_what_is_broken(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    """T3: a function that is gone keeps nobody from giving the schedule other times; what is lost is told."""
    async with clock.app as app:
        await app.create_schedule("s", next=tides, job=report())
        await clock.pass_by(hours=6)
        monkeypatch.setattr(app._app_state.functions, "following", {})
        edited = await app.edit_schedule("s", every=60)
        assert (edited.when, await app.count()) == ("every 1 min", 0)
        [(phase, told)] = clock.told
        assert phase == "schedule s"
        assert "were changed while a fire was due, and this process lacks its function" in told


async def test_pause_and_resume(clock: Clock) -> None:
    """T3: nothing is made up for."""
    async with clock.app as app:
        await app.create_schedule("s", every=60, job=report(), missed="all")
        paused = await app.pause_schedule("s")
        assert (paused.paused, paused.overridden) == (True, False)
        assert await app.pause_schedule("s") == paused
        await clock.pass_by(minutes=5)
        await clock.work()
        assert await app.count() == 0
        resumed = await app.resume_schedule("s")
        assert (resumed.paused, resumed.next_fire) == (False, MIDNIGHT + timedelta(minutes=6))
        await clock.pass_by(minutes=1)
        await clock.work()
        assert await clock.made() == ["01 00:06:00"]


async def test_trigger(clock: Clock) -> None:
    """T3: a job of its own, now, paused or not; the times go on as they were."""
    async with clock.app as app:
        before = await app.create_schedule("s", every=60, job=report("x"))
        await app.pause_schedule("s")
        first, second = await app.trigger_schedule("s"), await app.trigger_schedule("s")
        assert first.id != second.id
        assert (first.type, first.arguments, first.state) == ("report", {"kind": "x"}, "scheduled")
        assert (await app.get_schedule("s")).upcoming == before.upcoming
        await app.create_schedule("w", every=60, run=write)
        assert (await app.trigger_schedule("w")).arguments == {"at": "01 00:00"}
        await clock.pass_by(hours=12)
        with pytest.raises(Conflict, match="the function 'write' of schedule 'w' returned no job"):
            await app.trigger_schedule("w")
        app._app_state.functions._functions.clear()
        with pytest.raises(InvalidInput, match="made by the function 'write', which this app does not have"):
            await app.trigger_schedule("w")


async def test_delete(clock: Clock) -> None:
    """T3: its jobs stay."""
    async with clock.app as app:
        await app.create_schedule("s", every=60, job=report())
        job = await app.trigger_schedule("s")
        await app.delete_schedule("s")
        assert await app.schedules() == []
        assert (await app.get(job.id)).id == job.id
        await clock.pass_by(minutes=2)
        await clock.work()
        assert await app.count() == 1


async def test_tenants_and_the_blocking_face(make_app: MakeApp) -> None:
    """T3, B4: every verb is there too, and a foreign schedule is a missing one."""
    app = make_app(report)
    acme = app.sync.tenant("acme")
    acme.create_schedule("s", every=60, job=report())
    assert [info.tenant for info in acme.schedules()] == ["acme"]
    assert app.sync.schedules() == []
    with pytest.raises(NotFound):
        app.sync.get_schedule("s")
    assert acme.edit_schedule("s", every=120).every == timedelta(minutes=2)
    assert acme.pause_schedule("s").paused
    assert not acme.resume_schedule("s").paused
    assert acme.trigger_schedule("s").tenant == "acme"
    assert acme.get_schedule("s").name == "s"
    acme.delete_schedule("s")
    assert acme.schedules() == []
    app.sync.close()


async def test_whoever_is_second_looks_again(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    """T3: no change is lost to another, and nobody tries for ever."""
    async with clock.app as app:
        for number in range(8):
            await app.create_schedule(f"{number}", every=60, job=report())
        await asyncio.gather(*(app.edit_schedule("0", missed="all") for _ in range(8)), app.pause_schedule("0"))
        info = await app.get_schedule("0")
        assert (info.generation, info.paused) == (9, True)

        async def nobody_wins(changes: list[ScheduleChange]) -> list[None]:
            return [None for _ in changes]

        monkeypatch.setattr(app._app_state.store, "change_schedules", nobody_wins)
        monkeypatch.setattr(editor, "TRIES_MAX", 3)
        with pytest.raises(Conflict, match="schedule '1' was changed by others again and again: try again"):
            await app.pause_schedule("1")


async def test_code_declares_until_somebody_edits(make_app: MakeApp, url: str) -> None:
    """T3: the same declaration changes nothing, another one does, and after an edit only with reset."""
    runtime = FakeRuntime()
    app = make_app(report, runtime=runtime)

    async def start(**options: Any) -> ScheduleInfo:
        app._app_state.declared[:] = [schedule("s", job=report(), **options)]
        async with app, app.worker(grace=0):
            return await app.get_schedule("s", upcoming=0)

    first = await start(every=60)
    assert await start(every=60) == first
    assert (await start(every=120)).generation == 2
    async with app:
        await app.edit_schedule("s", every=30)
    edited = await start(every=120)
    assert (edited.every, edited.generation, edited.overridden) == (timedelta(seconds=30), 3, True)
    again = await start(every=120, reset=True)
    assert (again.every, again.generation, again.overridden) == (timedelta(seconds=120), 4, False)


def test_declaring_in_code() -> None:
    """T1: app.schedule and App(schedules=...) are the same; names and functions must be told apart."""
    app = App("memory://", jobs=[report], schedules=[schedule("a", every=1, job=report())])
    app.schedule("b", next=tides, job=report(), tenant="acme")
    app.schedule("a", every=1, job=report(), tenant="acme")
    assert [(each.name, each.tenant) for each in app.declared] == [("a", "default"), ("b", "acme"), ("a", "acme")]
    with pytest.raises(DefinitionError, match="two schedules are named 'a'"):
        app.schedule("a", every=2, job=report())
    other: Any = lambda after: None  # noqa: E731  the name is what matters
    other.__name__ = "tides"
    with pytest.raises(DefinitionError, match="two functions of schedules are named 'tides'"):
        app.schedule("c", next=other, job=report())
    with pytest.raises(InvalidInput, match="none of job= and run= is given"):
        schedule("s", every=1)


async def test_a_rehearsal_has_the_schedules_too() -> None:
    """X1: an in-memory double fires them on its own clock."""
    app = App("sqlite:///never-made.db", jobs=[report, letter], schedules=[schedule("s", every=3600, run=write)])
    rehearsal = Rehearsal(app)
    await rehearsal.drain()
    await rehearsal.advance(hours=1)
    assert await rehearsal.drain() == 1
    await rehearsal.assert_enqueued(letter, at="01 01:00")


async def test_what_a_function_answers_is_checked(clock: Clock) -> None:
    """T1: a naive time, one that does not come later, something that is no job."""

    def naive(after: datetime) -> datetime:
        return after.replace(tzinfo=None)

    def backwards(after: datetime) -> datetime:
        return after - timedelta(microseconds=SECOND)

    async def no_job(fire: datetime) -> Any:
        return "a job"

    async with clock.app as app:
        for function in (naive, backwards, no_job):
            app._app_state.functions.add(function)
        with pytest.raises(InvalidInput, match=r"what next=naive answered=.* has no time zone"):
            await app.create_schedule("s", next=naive, job=report())
        with pytest.raises(InvalidInput, match=r"next='backwards' returned .* it must return a later time"):
            await app.create_schedule("s", next=backwards, job=report())
        await app.create_schedule("s", every=60, run=no_job)
        with pytest.raises(
            InvalidInput, match="run=no_job of schedule 's' returned 'a job': it must return a job or None"
        ):
            await app.trigger_schedule("s")
        assert await app.count(Filter()) == 0


async def test_an_edit_changes_a_part_of_the_job(clock: Clock) -> None:
    """T3: its arguments or some options, and the rest of the template stays."""
    async with clock.app as app:
        template = report("tax").using(queue="slow", priority=3, tags={"of": "tax"}, idempotency_key="tax")
        await app.create_schedule("s", every=60, job=template)
        edited = await app.edit_schedule("s", using={"priority": 7, "timeout": 30, "delay": 5})
        assert (edited.queue, edited.arguments) == ("slow", {"kind": "tax"})
        assert edited.options == {
            "priority": 7,
            "tags": {"of": "tax"},
            "delay": 5.0,
            "timeout": 30.0,
            "idempotency_key": "tax",
        }
        edited = await app.edit_schedule("s", arguments={"kind": "load"}, using={"queue": "fast"})
        assert (edited.queue, edited.arguments, edited.options["priority"]) == ("fast", {"kind": "load"}, 7)
        assert (edited.generation, edited.when) == (3, "every 1 min")
        fired = await app.trigger_schedule("s")
        assert (fired.queue, fired.priority, fired.arguments) == ("fast", 7, {"kind": "load"})


@job
async def bill(order: str, cents: int, currency: str = "EUR") -> None: ...


@job(name="bill")
async def bill_with_names(order: str, amount: int) -> None: ...


async def test_arguments_that_an_edit_does_not_name_stay_as_they_are(make_app: MakeApp) -> None:
    async with make_app(bill) as app:
        await app.create_schedule("s", every=60, job=bill("7", 500, currency="USD"))
        edited = await app.edit_schedule("s", arguments={"order": "8"})
        assert edited.arguments == {"order": "8", "cents": 500, "currency": "USD"}
        edited = await app.edit_schedule("s", arguments={"currency": "EUR"})
        assert edited.arguments == {"order": "8", "cents": 500, "currency": "EUR"}


async def test_an_update_replaces_all_arguments(make_app: MakeApp) -> None:
    async with make_app(bill) as app:
        waiting = await app.enqueue(bill("7", 500, currency="USD"), delay=60)
        updated = await app.update(waiting.id, arguments={"order": "8", "cents": 1})
        assert updated.arguments == {"order": "8", "cents": 1, "currency": "EUR"}


@pytest.mark.parametrize("store_kind", ["sqlite"], indirect=True)
async def test_arguments_that_no_longer_fit_the_code_are_given_as_a_whole(new_app: MakeApp) -> None:
    async with new_app(bill) as before:
        await before.create_schedule("s", every=60, job=bill("7", 500))
    async with new_app(bill_with_names) as app:
        with pytest.raises(InvalidInput, match="argument 'amount' is missing"):
            await app.edit_schedule("s", arguments={"order": "8"})
        edited = await app.edit_schedule("s", arguments={"order": "8", "amount": 5})
        assert edited.arguments == {"order": "8", "amount": 5}


@pytest.mark.parametrize(
    ("changes", "told", "field"),
    [
        ({"arguments": {"kin": 1}}, "kin", "kin"),
        ({"using": {"prioritty": 1}}, "did you mean 'priority'", "prioritty"),
        ({"using": {"priority": "high"}}, "priority='high'", "priority"),
        ({"using": {"priority": 10**9}}, "priority", "priority"),
        ({"using": {"run_at": MIDNIGHT}}, "run_at= cannot be changed alone: give job=", "run_at"),
        ({"using": {"idempotency_scope": "open"}}, "needs idempotency_key", "idempotency_scope"),
        ({"using": {"queue": ""}}, "queue", "queue"),
    ],
)
async def test_a_part_of_a_job_that_does_not_fit_is_refused(clock: Clock, changes: Any, told: str, field: str) -> None:
    """T3: naming the option, and the schedule stays as it is."""
    async with clock.app as app:
        created = await app.create_schedule("s", every=60, job=report())
        with pytest.raises(InvalidInput, match=told) as refused:
            await app.edit_schedule("s", **changes)
        assert refused.value.field == field
        assert await app.get_schedule("s") == created


async def test_a_function_has_no_arguments_to_change(clock: Clock) -> None:
    """T3."""
    async with clock.app as app:
        await app.create_schedule("s", every=60, run=write)
        with pytest.raises(InvalidInput, match=r"made by the function 'write', so arguments= cannot change them"):
            await app.edit_schedule("s", arguments={})
        with pytest.raises(InvalidInput, match=r"so using= cannot change them: give job="):
            await app.edit_schedule("s", using={"queue": "slow"})


async def test_a_dry_run_stores_nothing(clock: Clock) -> None:
    """T3: it answers with what would be stored, and refuses what would be refused."""
    async with clock.app as app:
        seen = await app.create_schedule("s", cron="0 4 * * *", job=report(), dry_run=True)
        assert seen.next_fire == MIDNIGHT + timedelta(hours=4)
        assert await app.schedules() == []
        created = await app.create_schedule("s", every=60, job=report())
        await clock.pass_by(seconds=90)
        seen = await app.edit_schedule("s", cron="0 4 * * *", timezone="UTC", using={"queue": "slow"}, dry_run=True)
        assert (seen.next_fire, seen.queue, seen.generation) == (MIDNIGHT + timedelta(hours=4), "slow", 2)
        assert len(seen.upcoming) == 5
        assert await app.count() == 0, "not even what the old times owe"
        assert (await app.get_schedule("s")).generation == created.generation
        with pytest.raises(Conflict, match="there is a schedule 's' already"):
            await app.create_schedule("s", every=60, job=report(), dry_run=True)
        with pytest.raises(NotFound, match="no schedule 'nobody'"):
            await app.edit_schedule("nobody", every=60, dry_run=True)


async def test_edits_of_different_parts_at_once_keep_one_another(clock: Clock) -> None:
    """T3: each is decided again over what the other one stored."""
    async with clock.app as app:
        await app.create_schedule("s", every=60, job=report())
        await asyncio.gather(
            app.edit_schedule("s", using={"queue": "slow"}),
            app.edit_schedule("s", using={"priority": 4}),
            app.edit_schedule("s", arguments={"kind": "load"}),
            app.edit_schedule("s", missed="all"),
        )
        info = await app.get_schedule("s")
        assert (info.queue, info.options, info.arguments) == ("slow", {"priority": 4}, {"kind": "load"})
        assert (info.missed, info.generation) == ("all", 5)
