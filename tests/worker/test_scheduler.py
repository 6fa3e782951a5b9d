"""T1, T2: schedules that code declares are fired by workers, at their times, and made up for where nobody was there."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest

from ropewalk import App, Event, InvalidInput, schedule
from ropewalk.client.schedules.fires import Fires
from ropewalk.client.schedules.functions import ScheduleFunctions
from ropewalk.domain.time import SECOND
from ropewalk.testing import FakeRuntime
from ropewalk.worker.services.scheduler import Scheduler, SchedulerConfig
from tests.apps import MakeApp, embedded_store_kind
from tests.client.schedules import Clock, report, tides, write

store_kind = embedded_store_kind


async def test_a_worker_fires_at_the_times(make_app: MakeApp) -> None:
    """T1: within the spread of a fleet; the job runs, and hooks hear of it after the commit."""
    heard: list[Event] = []
    clock = Clock(make_app, schedules=[schedule("s", every=10, job=report("x"))], on_event=heard.append)
    app = clock.app
    async with app.running():
        await clock.pass_by(seconds=25)
        jobs = await app.search()
        info = await app.get_schedule("s")
    assert [(job.type, job.state, job.result) for job in jobs.jobs] == [("report", "completed", "x reported")] * 2
    fired = [event for event in heard if event.kind == "schedule_fired"]
    assert [event.schedule for event in fired] == ["s", "s"]
    assert [f"{event.fire_time:%H:%M:%S}" for event in fired] == ["00:00:10", "00:00:20"]
    assert all(event.at - event.fire_time < timedelta(seconds=0.05) for event in fired if event.fire_time)
    assert [event.kind for event in heard if event.job_id == fired[0].job_id][:2] == ["schedule_fired", "queued"]
    assert info.last_fire == fired[-1].fire_time


async def test_it_sleeps_until_the_next_fire(make_app: MakeApp, monkeypatch: pytest.MonkeyPatch) -> None:
    """T1: looking at most every few seconds, and at the fire itself."""
    looks: list[int] = []
    run_once = Scheduler.run_once

    async def counted(scheduler: Scheduler) -> bool:
        looks.append(clock.runtime.now())
        return await run_once(scheduler)

    monkeypatch.setattr(Scheduler, "run_once", counted)
    clock = Clock(make_app, schedules=[schedule("s", every=30, job=report())])
    async with clock.app.running():
        await clock.pass_by(seconds=20)
        assert 6 <= len(looks) <= 16, "every 1.5 to 3 seconds"
        assert max(later - earlier for earlier, later in pairwise(looks)) <= 3 * SECOND
        await clock.pass_by(seconds=10.02)
        assert len((await clock.app.search()).jobs) == 1


async def test_a_schedule_made_elsewhere_is_heard_of(make_app: MakeApp) -> None:
    """T3: a hint wakes the scheduler, without time passing."""
    clock = Clock(make_app)
    async with clock.app.running():
        await clock.pass_by(seconds=5)
        await clock.app.create_schedule("s", every=0.1, job=report())
        await clock.pass_by(seconds=0.15)
        assert len((await clock.app.search()).jobs) == 1


@pytest.mark.parametrize(
    ("missed", "made"),
    [
        ("skip", ["02 00:00:00"]),
        ("once", ["01 10:30:00", "02 00:00:00"]),
        ("all", ["01 10:30:00"] * 4 + ["02 00:00:00"]),
    ],
)
async def test_what_nobody_was_there_for(make_app: MakeApp, missed: Any, made: list[str]) -> None:
    """T2: the app was down from midnight to half past ten, then to the next midnight."""
    clock = Clock(make_app, schedules=[schedule("s", cron="0 0,2-8/2 * * *", job=report(), missed=missed)])
    await clock.work()
    await clock.pass_by(hours=10, minutes=30)
    await clock.work()
    await clock.pass_by(hours=13, minutes=30)
    await clock.work()
    assert await clock.made() == made


async def test_across_the_end_of_summer_time(make_app: MakeApp) -> None:
    """T2: 27 October 2030 in Oslo, half past two comes twice; once is enough."""
    clock = Clock(make_app, schedules=[schedule("s", cron="30 2 * * *", timezone="Europe/Oslo", job=report())])
    await clock.pass_by(days=298.5)
    await clock.work()
    for _ in range(48):
        await clock.pass_by(minutes=30)
        await clock.work()
    assert await clock.made() == ["27 00:30:00"]


async def test_functions_tell_times_and_make_jobs(make_app: MakeApp) -> None:
    """T1: by name; a function may want no job, and may come to an end."""
    clock = Clock(make_app, schedules=[schedule("s", next=tides, run=write, missed="all")])
    await clock.work()
    for _ in range(6):
        await clock.pass_by(hours=6)
        await clock.work()
    assert [job.arguments for job in await clock.jobs()] == [{"at": "01 06:00"}, {"at": "01 18:00"}]
    info = await clock.app.get_schedule("s")
    assert (info.ended, info.upcoming, info.next, info.run, info.when) == (
        True,
        (),
        "tides",
        "write",
        "at the times of tides",
    )
    assert clock.told == []


async def test_only_who_has_the_functions_goes_on(make_app: MakeApp) -> None:
    """T1: others leave the schedule alone, and it is not lost."""
    clock = Clock(make_app, schedules=[schedule("t", next=tides, job=report()), schedule("w", every=3600, run=write)])
    await clock.work()
    await clock.pass_by(hours=6)
    async with clock.app:
        assert not await _scheduler(clock.app, functions=ScheduleFunctions()).run_once()
    assert (await clock.made(), clock.told) == ([], [])
    await clock.work()
    assert await clock.made() == ["01 06:00:00"] * 2


async def test_a_function_that_raises_is_reported_and_left_alone_for_a_while(make_app: MakeApp) -> None:
    """O1: it disturbs neither the worker nor other schedules."""
    clock = Clock(make_app, schedules=[schedule("good", every=10, job=report())], functions=[broken])
    app = clock.app
    async with app:
        await app.create_schedule("bad", every=10, run=broken)
    async with app.running():
        await clock.pass_by(seconds=10.1)
        assert clock.told == [("schedule bad", "no ink")]
        await clock.pass_by(seconds=25)
        assert len(clock.told) == 1
        await clock.pass_by(seconds=10)
        assert len(clock.told) == 2
    assert len(await clock.made()) == 4


def broken(fire: datetime) -> None:
    raise ValueError("no ink")


async def test_a_zone_this_machine_does_not_have(make_app: MakeApp, monkeypatch: pytest.MonkeyPatch) -> None:
    """T2: is reported; another machine fires it."""
    clock = Clock(make_app, schedules=[schedule("s", cron="0 * * * *", timezone="Europe/Oslo", job=report())])
    await clock.work()
    await clock.pass_by(hours=1)
    with monkeypatch.context() as without:
        without.setattr("ropewalk.domain.schedules.schedule.zone_of", _no_zone)
        async with clock.app:
            [listed] = await clock.app.schedules(upcoming=3)
        assert len(listed.upcoming) == 1
        scheduler = _scheduler(clock.app)
        assert not await scheduler.run_once()
    assert clock.told == [("schedule s", "timezone='Europe/Oslo' is not here")]
    assert await clock.made() == []
    await clock.work()
    assert await clock.made() == ["01 01:00:00"]


def _no_zone(name: str) -> None:
    raise InvalidInput(f"timezone={name!r} is not here", field="timezone")


async def test_a_job_that_is_refused_is_reported_and_the_schedule_goes_on(make_app: MakeApp) -> None:
    """T1: what a template depends on may be gone."""
    clock = Clock(make_app, schedules=[schedule("s", every=60, job=report().using(depends_on="gone"))])
    await clock.work()
    for _ in range(2):
        await clock.pass_by(minutes=1)
        await clock.work()
    assert [phase for phase, _ in clock.told] == ["schedule s"] * 2
    assert "gone" in clock.told[0][1]
    assert await clock.made() == []


async def test_a_key_keeps_fires_from_piling_up(make_app: MakeApp) -> None:
    """T1, safe-12: while the last one is not finished, a fire is that one."""
    heard: list[Event] = []
    template = report().using(idempotency_key="one", queue="paused")
    clock = Clock(make_app, schedules=[schedule("s", every=60, job=template)], on_event=heard.append)
    async with clock.app:
        await clock.app.pause("paused")
    await clock.work()
    for _ in range(3):
        await clock.pass_by(minutes=1)
        await clock.work()
    assert len(await clock.made()) == 1
    fired = [event for event in heard if event.kind == "schedule_fired"]
    assert len(fired) == 3
    assert len({event.job_id for event in fired}) == 1
    assert sum(event.kind == "queued" for event in heard) == 1


async def test_a_worker_may_leave_schedules_to_others(make_app: MakeApp) -> None:
    """T1: it neither declares nor fires them."""
    clock = Clock(make_app, schedules=[schedule("s", every=60, job=report())])
    async with clock.app, clock.app.worker(scheduler=False, grace=0) as worker:
        await worker.idle()
        assert await clock.app.schedules() == []
    await clock.work()
    await clock.pass_by(minutes=1)
    async with clock.app, clock.app.worker(scheduler=False, grace=0) as worker:
        await worker.idle()
    assert await clock.made() == []
    await clock.work()
    assert len(await clock.made()) == 1


async def test_many_that_are_due_are_fired_page_by_page(make_app: MakeApp) -> None:
    """T1: also behind some that nobody here can go on with."""
    clock = Clock(make_app, functions=[broken])
    async with clock.app:
        for number in range(5):
            await clock.app.create_schedule(f"bad {number}", every=60, run=broken)
            await clock.app.create_schedule(f"good {number}", every=60, job=report())
        await clock.pass_by(minutes=1)
        scheduler = _scheduler(clock.app, SchedulerConfig(batch=2))
        assert await scheduler.run_once()
        assert not await scheduler.run_once()
    assert len(await clock.made()) == 5
    assert len(clock.told) == 5


async def test_a_clock_that_jumps_is_doubted(make_app: MakeApp) -> None:
    """A clock put forward by a day for a moment does not fire a day's worth."""
    clock = Clock(make_app, schedules=[schedule("s", every=60, job=report(), missed="all")])
    await clock.work()
    async with clock.app:
        scheduler = _scheduler(clock.app)
        assert isinstance(clock.runtime, FakeRuntime)
        clock.runtime._now += 86_400 * SECOND
        clock.runtime._start += 86_400 * SECOND
        assert not await scheduler.run_once()
    assert await clock.made() == []


def _scheduler(
    app: App, config: SchedulerConfig | None = None, functions: ScheduleFunctions | None = None
) -> Scheduler:
    core = app._app_state
    others = Fires(core.store, core.runtime, core.events, functions or core.functions, core._job_of_schedule)
    return Scheduler(app.worker()._make_worker_context(), others, config)


async def test_real_time(make_app: MakeApp) -> None:
    """T1: on the system's clock."""
    fired = asyncio.Queue[Event]()
    app = make_app(
        report,
        schedules=[schedule("s", every=0.1, job=report())],
        on_event=lambda event: fired.put_nowait(event) if event.kind == "schedule_fired" else None,
    )
    async with app.running(), asyncio.timeout(20):
        first, second = await fired.get(), await fired.get()
    assert first.fire_time is not None and second.fire_time is not None
    assert second.fire_time - first.fire_time >= timedelta(seconds=0.1)


async def test_fires_and_their_jobs_are_counted(make_app: MakeApp) -> None:
    """O6: by schedule and by type; a fire triggered by hand is an ordinary enqueue."""
    clock = Clock(make_app, schedules=[schedule("s", every=10, job=report("x"))])
    async with clock.app.running():
        await clock.pass_by(seconds=25)
        await clock.app.trigger_schedule("s")
        families = {each.name: each.samples for each in await clock.app.metrics.snapshot()}
    assert [(each.labels, each.value) for each in families["ropewalk_schedule_fires_total"]] == [({"schedule": "s"}, 2)]
    assert [(each.labels, each.value) for each in families["ropewalk_jobs_enqueued_total"]] == [({"type": "report"}, 3)]


async def test_a_next_function_that_raises_at_first_does_not_keep_the_worker_from_starting(make_app: MakeApp) -> None:
    """It is reported, the other schedules are stored and fire, and it is stored as soon as it answers."""
    broken = True

    def moody(after: datetime) -> datetime:
        if broken:
            raise RuntimeError("no calendar")
        return after + timedelta(seconds=10)

    clock = Clock(
        make_app,
        schedules=[schedule("moody", next=moody, job=report("m")), schedule("calm", every=10, job=report("c"))],
    )
    async with clock.app.running():
        assert clock.told == [("schedule moody", "no calendar")]
        await clock.pass_by(seconds=15)
        assert [job.result for job in (await clock.app.search()).jobs] == ["c reported"]
        broken = False
        await clock.pass_by(seconds=20)
        assert (await clock.app.get_schedule("moody")).name == "moody"
        assert len(clock.told) == 1, "it is left alone for half a minute"
