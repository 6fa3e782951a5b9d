"""Schedulers on a store: each occurrence is one job, however many look, and whatever happened while nobody did."""

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
from ropewalk.testing.contract.build import new_job
from ropewalk.testing.contract.clockwork import Clockwork, plan_of, shown
from ropewalk.testing.contract.races import in_threads

ROUNDS = 20


@needs(SCHEDULES)
class FireContract(Contract):
    """T1, safe-11: at most one job per schedule and fire time, with no leader."""

    async def test_racing_schedulers_fire_once(self, bench: Bench) -> None:
        """safe-11: many look at the same moment, on two stores; nothing is missing, nothing is double."""
        here, there = Clockwork(bench.store), Clockwork((await bench.second()).store)
        names = ("a", "b", "c")
        plans = {name: plan_of(Every(SECOND * number)) for number, name in enumerate(names, 1)}
        begun = [await here.create(name, plan) for name, plan in plans.items()]
        for _ in range(ROUNDS):
            await bench.runtime.advance(1)
            await asyncio.gather(*(each.tick() for each in [here, there] * 4))
        wanted = [
            fire_id(each.schedule, START_US + SECOND * number * times)
            for number, each in enumerate(begun, 1)
            for times in range(1, ROUNDS // number + 1)
        ]
        assert Counter(job.id for job in await here.jobs()) == Counter(wanted)

    async def test_racing_threads_fire_once(self, bench: Bench) -> None:
        """safe-11: with stores of their own, as processes have."""
        begun = await Clockwork(bench.store).create("s", plan_of(Every(SECOND), missed="all"))
        await bench.runtime.advance(50)

        async def work(_: int) -> int:
            return await Clockwork((await bench.second()).store).tick()

        assert sum(await in_threads(work)) == 1
        fires = [fire_id(begun.schedule, START_US + SECOND * number) for number in range(1, 51)]
        assert [job.id for job in await Clockwork(bench.store).jobs()] == fires

    async def test_who_dies_between_looking_and_firing_leaves_nothing_behind(self, bench: Bench) -> None:
        """safe-11: another one fires at once; and if the first was only asleep, it comes too late."""
        here, there = Clockwork(bench.store), Clockwork((await bench.second()).store)
        await here.create("s", plan_of(Every(SECOND)))
        await bench.runtime.advance(1)
        looked = await here.look()
        assert [len(change.jobs) for change in looked] == [1]
        assert await there.tick() == 1
        assert await here.fire(looked) == 0
        assert len(await here.jobs()) == 1
        await bench.runtime.advance(1)
        assert await here.tick() == 1
        assert len(await here.jobs()) == 2

    async def test_a_pause_that_comes_first_wins(self, bench: Bench) -> None:
        """T3, safe-11: neither the fire nor the pause is lost to the other."""
        clockwork = Clockwork(bench.store)
        read = await clockwork.create("s", plan_of(Every(SECOND)))
        await bench.runtime.advance(1)
        looked = await clockwork.look()
        await clockwork.put(read, pause(read.schedule))
        assert await clockwork.fire(looked) == 0
        assert await clockwork.jobs() == []
        await clockwork.tick()
        paused = await clockwork.read("s")
        assert paused.schedule.paused
        assert shown(paused.schedule.next_fire or 0) == ["01-01 00:00:02"]
        assert await clockwork.jobs() == []

    async def test_it_goes_on_after_a_pause(self, bench: Bench) -> None:
        """T3: what fell into it was not missed."""
        clockwork = Clockwork(bench.store)
        read = await clockwork.create("s", plan_of(Every(MINUTE), missed="all"))
        await clockwork.put(read, pause(read.schedule))
        await bench.runtime.advance(minutes=10, seconds=30)
        read = await clockwork.read("s")
        await clockwork.put(read, resume(read.schedule, bench.runtime.now()))
        assert await clockwork.tick() == 0
        await bench.runtime.advance(minutes=1)
        assert await clockwork.tick() == 1
        read = await clockwork.read("s")
        assert [job.id for job in await clockwork.jobs()] == [fire_id(read.schedule, START_US + 11 * MINUTE)]

    async def test_an_edit_takes_along_what_the_old_times_owe(self, bench: Bench) -> None:
        """T3: in the same change; what comes later has another generation."""
        clockwork = Clockwork(bench.store)
        read = await clockwork.create("s", plan_of(Every(MINUTE)))
        await bench.runtime.advance(minutes=1)
        now, was = bench.runtime.now(), read.schedule
        owed = due(was, now)
        edited = edit(advance(was, owed), plan_of(Every(HOUR)), now)
        assert await clockwork.put(read, edited, *(job_of(was, new_job(), fire) for fire in owed.fires)) is not None
        assert [job.id for job in await clockwork.jobs()] == [fire_id(was, now)]
        await bench.runtime.advance(minutes=59)
        assert await clockwork.tick() == 0
        await bench.runtime.advance(minutes=1)
        assert await clockwork.tick() == 1
        assert [job.id for job in await clockwork.jobs()][1:] == [fire_id(edited, now + HOUR)]

    async def test_a_deleted_one_fires_no_more(self, bench: Bench) -> None:
        """T3: not even where somebody has looked already."""
        clockwork = Clockwork(bench.store)
        read = await clockwork.create("s", plan_of(Every(MINUTE)))
        await bench.runtime.advance(minutes=1)
        looked = await clockwork.look()
        await clockwork.put(read, None)
        assert await clockwork.fire(looked) == 0
        assert await clockwork.jobs() == []


@needs(SCHEDULES)
class MissedFireContract(Contract):
    """T2: what becomes of fires that nobody was there for."""

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
    async def test_after_a_long_sleep(
        self, bench: Bench, missed: Missed, asleep_seconds: float, fires: list[str]
    ) -> None:
        """T2: skip leaves them out, once makes up with the newest, all with all; a minute late is on time."""
        clockwork = Clockwork(bench.store)
        begun = await clockwork.create("s", plan_of(Every(HOUR), missed=missed))
        await bench.runtime.advance(asleep_seconds)
        assert await clockwork.tick() == 1
        assert await clockwork.tick() == 0
        times = {fire_id(begun.schedule, START_US + hour * HOUR): hour for hour in range(1, 9)}
        assert [shown(START_US + times[job.id] * HOUR)[0] for job in await clockwork.jobs()] == fires
        assert shown((await clockwork.read("s")).schedule.next_fire or 0) == ["01-01 06:00:00"]

    async def test_a_year_asleep_is_no_flood(self, bench: Bench) -> None:
        """T2: the newest hundred, in one change."""
        clockwork = Clockwork(bench.store)
        begun = await clockwork.create("s", plan_of(Every(MINUTE), missed="all"))
        await bench.runtime.advance(days=365)
        await clockwork.tick()
        newest = bench.runtime.now()
        wanted = [fire_id(begun.schedule, newest - number * MINUTE) for number in reversed(range(100))]
        assert [job.id for job in await clockwork.jobs()] == wanted


@needs(SCHEDULES)
class SummerTimeContract(Contract):
    """T2: across changes of the clock, on whatever store."""

    @pytest.mark.parametrize(
        ("days", "expression", "wanted"),
        [
            (87.5, "30 2 * * *", ["30 02:30+0100", "31 03:00+0200", "01 02:30+0200"]),
            (87.5, "30 * 31 3 *", ["31 00:30+0100", "31 01:30+0100", "31 03:30+0200", "31 04:30+0200"]),
            (297.5, "30 2 * * *", ["26 02:30+0200", "27 02:30+0200", "28 02:30+0100"]),
            (297.5, "30 * 27 10 *", ["27 00:30+0200", "27 01:30+0200", "27 02:30+0200", "27 02:30+0100"]),
        ],
    )
    async def test_fixed_times_fire_once_and_others_follow_the_clock(
        self, bench: Bench, days: float, expression: str, wanted: list[str]
    ) -> None:
        """T2: a scheduler that looks every half an hour, around 31 March and 27 October 2030 in Oslo."""
        clockwork = Clockwork(bench.store)
        await bench.runtime.advance(days=days)
        await clockwork.create("s", plan_of(ByCron(expression, "Europe/Oslo")))
        seen: list[str] = []
        for _ in range(3 * 48):
            await bench.runtime.advance(minutes=30)
            if await clockwork.tick():
                now = to_datetime(bench.runtime.now()).astimezone(ZoneInfo("Europe/Oslo"))
                seen.append(f"{now:%d %H:%M%z}")
        assert seen[: len(wanted)] == wanted
        assert len(await clockwork.jobs()) == len(seen)


START_US = FakeRuntime(START).now()
