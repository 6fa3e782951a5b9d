"""Firing schedules: schedulers that race, fires that were missed, and changes of local clocks."""

from __future__ import annotations

import asyncio
from collections import Counter
from zoneinfo import ZoneInfo

import pytest

from ropewalk.domain.schedules.due import advance, due
from ropewalk.domain.schedules.schedule import ByCron, Every, Missed, edit, fire_id, job_of, pause, resume
from ropewalk.domain.time import HOUR, MINUTE, SECOND, to_datetime
from ropewalk.ports.store.capabilities import SCHEDULES
from ropewalk.testing.clock import START, FakeRuntime
from ropewalk.testing.contract.base import Contract, needs
from ropewalk.testing.contract.bench import Bench
from ropewalk.testing.contract.builders import new_job
from ropewalk.testing.contract.races import in_threads
from ropewalk.testing.contract.store_scheduler import StoreScheduler, plan_of, shown

ROUNDS = 20


@needs(SCHEDULES)
class FireContract(Contract):
    """Each occurrence of a schedule makes at most one job, without a leader among the workers (T1, safe-11)."""

    async def test_racing_schedulers_fire_once(self, bench: Bench) -> None:
        """safe-11: many look at the same moment, on two stores; nothing is missing, nothing is double."""
        here, there = StoreScheduler(bench.store), StoreScheduler((await bench.second()).store)
        names = ("a", "b", "c")
        plans = {name: plan_of(Every(SECOND * number)) for number, name in enumerate(names, 1)}
        begun = [await here.create(name, plan) for name, plan in plans.items()]
        for _ in range(ROUNDS):
            await bench.runtime.advance(1)
            await asyncio.gather(*(each.fire_due() for each in [here, there] * 4))
        wanted = [
            fire_id(each.schedule, START_US + SECOND * number * times)
            for number, each in enumerate(begun, 1)
            for times in range(1, ROUNDS // number + 1)
        ]
        assert Counter(job.id for job in await here.jobs()) == Counter(wanted)

    async def test_racing_threads_fire_once(self, bench: Bench) -> None:
        """safe-11: with stores of their own, as processes have."""
        begun = await StoreScheduler(bench.store).create("s", plan_of(Every(SECOND), missed="all"))
        await bench.runtime.advance(50)

        async def work(_: int) -> int:
            return await StoreScheduler((await bench.second()).store).fire_due()

        assert sum(await in_threads(work)) == 1
        fires = [fire_id(begun.schedule, START_US + SECOND * number) for number in range(1, 51)]
        assert [job.id for job in await StoreScheduler(bench.store).jobs()] == fires

    async def test_a_scheduler_that_dies_before_it_fires_leaves_nothing_behind(self, bench: Bench) -> None:
        """safe-11: another one fires at once; and if the first was only asleep, it comes too late."""
        here, there = StoreScheduler(bench.store), StoreScheduler((await bench.second()).store)
        await here.create("s", plan_of(Every(SECOND)))
        await bench.runtime.advance(1)
        looked = await here.due_changes()
        assert [len(change.jobs) for change in looked] == [1]
        assert await there.fire_due() == 1
        assert await here.fire(looked) == 0
        assert len(await here.jobs()) == 1
        await bench.runtime.advance(1)
        assert await here.fire_due() == 1
        assert len(await here.jobs()) == 2

    async def test_a_pause_that_comes_first_wins(self, bench: Bench) -> None:
        """T3, safe-11: neither the fire nor the pause is lost to the other."""
        scheduler = StoreScheduler(bench.store)
        read = await scheduler.create("s", plan_of(Every(SECOND)))
        await bench.runtime.advance(1)
        looked = await scheduler.due_changes()
        await scheduler.put(read, pause(read.schedule))
        assert await scheduler.fire(looked) == 0
        assert await scheduler.jobs() == []
        await scheduler.fire_due()
        paused = await scheduler.read("s")
        assert paused.schedule.paused
        assert shown(paused.schedule.next_fire or 0) == ["01-01 00:00:02"]
        assert await scheduler.jobs() == []

    async def test_a_schedule_continues_after_a_pause(self, bench: Bench) -> None:
        """T3: what fell into it was not missed."""
        scheduler = StoreScheduler(bench.store)
        read = await scheduler.create("s", plan_of(Every(MINUTE), missed="all"))
        await scheduler.put(read, pause(read.schedule))
        await bench.runtime.advance(minutes=10, seconds=30)
        read = await scheduler.read("s")
        await scheduler.put(read, resume(read.schedule, bench.runtime.now()))
        assert await scheduler.fire_due() == 0
        await bench.runtime.advance(minutes=1)
        assert await scheduler.fire_due() == 1
        read = await scheduler.read("s")
        assert [job.id for job in await scheduler.jobs()] == [fire_id(read.schedule, START_US + 11 * MINUTE)]

    async def test_an_edit_first_fires_what_the_old_times_owe(self, bench: Bench) -> None:
        """T3: in the same change; what comes later has another generation."""
        scheduler = StoreScheduler(bench.store)
        read = await scheduler.create("s", plan_of(Every(MINUTE)))
        await bench.runtime.advance(minutes=1)
        now, was = bench.runtime.now(), read.schedule
        owed = due(was, now)
        edited = edit(advance(was, owed), plan_of(Every(HOUR)), now)
        assert await scheduler.put(read, edited, *(job_of(was, new_job(), fire) for fire in owed.fires)) is not None
        assert [job.id for job in await scheduler.jobs()] == [fire_id(was, now)]
        await bench.runtime.advance(minutes=59)
        assert await scheduler.fire_due() == 0
        await bench.runtime.advance(minutes=1)
        assert await scheduler.fire_due() == 1
        assert [job.id for job in await scheduler.jobs()][1:] == [fire_id(edited, now + HOUR)]

    async def test_a_deleted_schedule_fires_no_more(self, bench: Bench) -> None:
        """T3: not even where somebody has looked already."""
        scheduler = StoreScheduler(bench.store)
        read = await scheduler.create("s", plan_of(Every(MINUTE)))
        await bench.runtime.advance(minutes=1)
        looked = await scheduler.due_changes()
        await scheduler.put(read, None)
        assert await scheduler.fire(looked) == 0
        assert await scheduler.jobs() == []


@needs(SCHEDULES)
class MissedFireContract(Contract):
    """The policy of a schedule decides about fires for which no worker was there (T2)."""

    @pytest.mark.parametrize(
        ("missed", "asleep_seconds", "fires"),
        [
            ("skip", 5 * 3600 + 600, []),
            ("once", 5 * 3600 + 600, ["01-01 05:00:00"]),
            ("all", 5 * 3600 + 600, [f"01-01 0{hour}:00:00" for hour in range(1, 6)]),
            ("skip", 5 * 3600 + 59, ["01-01 05:00:00"]),
            ("once", 5 * 3600 + 59, ["01-01 05:00:00"]),
        ],
    )
    async def test_missed_fires_follow_the_policy_after_a_long_sleep(
        self, bench: Bench, missed: Missed, asleep_seconds: float, fires: list[str]
    ) -> None:
        """T2: skip leaves them out, once makes up with the newest, all with all; a minute late is on time."""
        scheduler = StoreScheduler(bench.store)
        begun = await scheduler.create("s", plan_of(Every(HOUR), missed=missed))
        await bench.runtime.advance(asleep_seconds)
        assert await scheduler.fire_due() == 1
        assert await scheduler.fire_due() == 0
        times = {fire_id(begun.schedule, START_US + hour * HOUR): hour for hour in range(1, 9)}
        assert [shown(START_US + times[job.id] * HOUR)[0] for job in await scheduler.jobs()] == fires
        assert shown((await scheduler.read("s")).schedule.next_fire or 0) == ["01-01 06:00:00"]

    async def test_at_most_a_hundred_missed_fires_are_made_up_for(self, bench: Bench) -> None:
        """T2: the newest hundred, in one change."""
        scheduler = StoreScheduler(bench.store)
        begun = await scheduler.create("s", plan_of(Every(MINUTE), missed="all"))
        await bench.runtime.advance(days=365)
        await scheduler.fire_due()
        newest = bench.runtime.now()
        wanted = [fire_id(begun.schedule, newest - number * MINUTE) for number in reversed(range(100))]
        assert [job.id for job in await scheduler.jobs()] == wanted


@needs(SCHEDULES)
class SummerTimeContract(Contract):
    """Schedules fire correctly when local clocks are put forward and back (T2)."""

    @pytest.mark.parametrize(
        ("days", "expression", "wanted"),
        [
            (87.5, "30 2 * * *", ["30 02:30+0100", "31 03:00+0200", "01 02:30+0200"]),
            (87.5, "30 * 31 3 *", ["31 00:30+0100", "31 01:30+0100", "31 03:30+0200", "31 04:30+0200"]),
            (297.5, "30 2 * * *", ["26 02:30+0200", "27 02:30+0200", "28 02:30+0100"]),
            (297.5, "30 * 27 10 *", ["27 00:30+0200", "27 01:30+0200", "27 02:30+0200", "27 02:30+0100"]),
        ],
    )
    async def test_fixed_times_fire_once_across_clock_changes_and_others_follow_the_clock(
        self, bench: Bench, days: float, expression: str, wanted: list[str]
    ) -> None:
        """T2: a scheduler that looks every half an hour, around 31 March and 27 October 2030 in Oslo."""
        scheduler = StoreScheduler(bench.store)
        await bench.runtime.advance(days=days)
        await scheduler.create("s", plan_of(ByCron(expression, "Europe/Oslo")))
        seen: list[str] = []
        for _ in range(3 * 48):
            await bench.runtime.advance(minutes=30)
            if await scheduler.fire_due():
                now = to_datetime(bench.runtime.now()).astimezone(ZoneInfo("Europe/Oslo"))
                seen.append(f"{now:%d %H:%M%z}")
        assert seen[: len(wanted)] == wanted
        assert len(await scheduler.jobs()) == len(seen)


START_US = FakeRuntime(START).now()
