"""A scheduler in a few lines, over the verbs of a store alone: look, decide by the domain, compare and set."""

from __future__ import annotations

from collections.abc import Sequence

from ropewalk.domain.jobs.record import DEFAULT_TENANT, JobRecord, NewJob
from ropewalk.domain.schedules.due import advance, due
from ropewalk.domain.schedules.schedule import Missed, Plan, Schedule, Timing, begin, job_of
from ropewalk.domain.search import Filter, Order
from ropewalk.domain.time import Instant, to_datetime
from ropewalk.ports.store.capabilities import DatabaseStore
from ropewalk.ports.store.schedules import ScheduleChange, ScheduleChanged, ScheduleRecord
from ropewalk.testing.contract.build import new_job

MANY = 10_000


def plan_of(timing: Timing, *, missed: Missed = "skip", work: NewJob | str | None = None) -> Plan:
    return Plan(timing=timing, work=new_job(id="") if work is None else work, missed=missed)


class Clockwork:
    def __init__(self, store: DatabaseStore) -> None:
        self._store = store

    async def create(self, name: str, plan: Plan, *, tenant: str = DEFAULT_TENANT) -> ScheduleRecord:
        schedule = begin(name, plan, await self._store.clock(), tenant=tenant)
        assert await self.put(None, schedule) is not None, f"there is a schedule {name!r} already"
        return await self.read(name, tenant=tenant)

    async def put(self, before: ScheduleRecord | None, after: Schedule | None, *jobs: NewJob) -> ScheduleChanged | None:
        [changed] = await self._store.change_schedules([ScheduleChange(before=before, after=after, jobs=jobs)])
        return changed

    async def read(self, name: str, *, tenant: str = DEFAULT_TENANT) -> ScheduleRecord:
        [record] = (await self._store.get_schedules(tenant, [name])).schedules
        return record

    async def look(self) -> list[ScheduleChange]:
        """What is to be done now; nothing is done yet."""
        found = await self._store.due_schedules(after=None, limit=MANY)
        return [taken(record, found.now) for record in found.schedules]

    async def fire(self, changes: Sequence[ScheduleChange]) -> int:
        """How many of them were ours."""
        return sum(changed is not None for changed in await self._store.change_schedules(changes))

    async def tick(self) -> int:
        return await self.fire(await self.look())

    async def jobs(self, *, tenant: str = DEFAULT_TENANT) -> list[JobRecord]:
        """Everything that was enqueued, in order."""
        page = await self._store.search(tenant, Filter(), order=Order.CREATED_ASC, cursor=None, limit=MANY)
        return page.jobs


def taken(record: ScheduleRecord, now: Instant) -> ScheduleChange:
    """The change that fires what is due."""
    schedule = record.schedule
    owed = due(schedule, now)
    assert isinstance(schedule.plan.work, NewJob)
    template = schedule.plan.work
    jobs = [job_of(schedule, template, fire) for fire in owed.fires]
    return ScheduleChange(before=record, after=advance(schedule, owed), jobs=jobs)


def shown(*fires: Instant) -> list[str]:
    return [f"{to_datetime(fire):%m-%d %H:%M:%S}" for fire in fires]
