"""A small scheduler that uses only the verbs of a store and the rules of the domain."""

from __future__ import annotations

from collections.abc import Sequence

from ropewalk.domain.jobs.record import DEFAULT_TENANT, JobRecord, NewJob
from ropewalk.domain.schedules.due import advance, due
from ropewalk.domain.schedules.schedule import Missed, Plan, Schedule, Timing, begin, job_of
from ropewalk.domain.search import Filter, Order
from ropewalk.domain.time import Instant, to_datetime
from ropewalk.ports.store.capabilities import DatabaseStore
from ropewalk.ports.store.schedules import ScheduleChange, ScheduleChanged, ScheduleRecord
from ropewalk.testing.contract.builders import new_job

MANY = 10_000


def plan_of(timing: Timing, *, missed: Missed = "skip", work: NewJob | str | None = None) -> Plan:
    """Build a plan that submits a plain job, or `work`, at these times."""
    return Plan(timing=timing, work=new_job(id="") if work is None else work, missed=missed)


class StoreScheduler:
    """A scheduler reads schedules, lets the domain compute their fires, and stores both by compare and set."""

    def __init__(self, store: DatabaseStore) -> None:
        self._store = store

    async def create(self, name: str, plan: Plan, *, tenant: str = DEFAULT_TENANT) -> ScheduleRecord:
        """Store a new schedule and return it as it is stored."""
        schedule = begin(name, plan, await self._store.clock(), tenant=tenant)
        assert await self.put(None, schedule) is not None, f"there is a schedule {name!r} already"
        return await self.read(name, tenant=tenant)

    async def put(self, before: ScheduleRecord | None, after: Schedule | None, *jobs: NewJob) -> ScheduleChanged | None:
        """Replace the state `before` by `after` together with these jobs; None means that `before` was outdated."""
        [changed] = await self._store.change_schedules([ScheduleChange(before=before, after=after, jobs=jobs)])
        return changed

    async def read(self, name: str, *, tenant: str = DEFAULT_TENANT) -> ScheduleRecord:
        """Return a schedule as it is stored."""
        [record] = (await self._store.get_schedules(tenant, [name])).schedules
        return record

    async def due_changes(self) -> list[ScheduleChange]:
        """Return the changes that fire every schedule that is due, without making them."""
        found = await self._store.due_schedules(after=None, limit=MANY)
        return [firing_change(record, found.now) for record in found.schedules]

    async def fire(self, changes: Sequence[ScheduleChange]) -> int:
        """Make these changes, and return how many of them nobody else had made before."""
        return sum(changed is not None for changed in await self._store.change_schedules(changes))

    async def fire_due(self) -> int:
        """Fire every schedule that is due, and return how many were fired."""
        return await self.fire(await self.due_changes())

    async def jobs(self, *, tenant: str = DEFAULT_TENANT) -> list[JobRecord]:
        """Return every job of the tenant in order of submission."""
        page = await self._store.search(tenant, Filter(), order=Order.CREATED_ASC, cursor=None, limit=MANY)
        return page.jobs


def firing_change(record: ScheduleRecord, now: Instant) -> ScheduleChange:
    """Return the change that submits the jobs a schedule owes and sets its next fire."""
    schedule = record.schedule
    owed = due(schedule, now)
    assert isinstance(schedule.plan.work, NewJob)
    template = schedule.plan.work
    jobs = [job_of(schedule, template, fire) for fire in owed.fires]
    return ScheduleChange(before=record, after=advance(schedule, owed), jobs=jobs)


def shown(*fires: Instant) -> list[str]:
    """Return these instants as short texts in UTC, to compare them readably."""
    return [f"{to_datetime(fire):%m-%d %H:%M:%S}" for fire in fires]
