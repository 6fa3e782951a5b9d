"""The editor changes stored schedules: it reads a schedule, the domain decides how to change it, and the store writes
the change if the schedule is still the one that was read. Otherwise the editor begins again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias

from ropewalk.client.schedules.fires import Fires, PlannedChange
from ropewalk.client.schedules.functions import ScheduleFunctions
from ropewalk.client.schedules.planner import Planner, TemplateChange
from ropewalk.definitions.schedule import DeclaredSchedule, ScheduleOptions
from ropewalk.domain.schedules.schedule import Plan, Schedule, begin, declare, edit
from ropewalk.domain.time import Instant
from ropewalk.domain.user_calls import guarded_await
from ropewalk.errors import Conflict, RevMismatch
from ropewalk.observe.events import EventHub
from ropewalk.ports.notifier import Hint
from ropewalk.ports.store.capabilities import SCHEDULES
from ropewalk.ports.store.core import Store
from ropewalk.ports.store.schedules import ScheduleChange, ScheduleRecord

Decide: TypeAlias = Callable[[Schedule | None, Instant], Awaitable[PlannedChange]]
"""A function that decides how to change a schedule. It gets the stored one, or None if there is none, and the time."""

Versioned: TypeAlias = tuple[Schedule, int | None]
"""A schedule and its version, which is None if the schedule is not stored."""

TRIES_MAX: Final = 100
"""A change is given up after this many tries, if others change the schedule each time."""


class ScheduleEditor:
    """Declares, creates, edits and previews schedules of the store."""

    def __init__(
        self, store: Store, events: EventHub, functions: ScheduleFunctions, fires: Fires, planner: Planner
    ) -> None:
        self._store = store
        self._events = events
        self._functions = functions
        self._fires = fires
        self._planner = planner

    def plan_of(self, declared: DeclaredSchedule) -> Plan:
        """Returns the plan of a declared schedule. Raises InvalidInput, which names the option that does not fit."""
        return self._planner.plan(declared.options, declared.tenant, declared.name)

    async def declare(self, declared: DeclaredSchedule) -> None:
        """Stores a schedule that code declares, or changes the stored one to match the code unless it was edited at run
        time.

        Raises what a function of the schedule raises.
        """
        tenant, name, plan = declared.tenant, declared.name, self.plan_of(declared)

        async def decide(stored: Schedule | None, now: Instant) -> PlannedChange:
            if stored is None:
                return self._begun(tenant, name, plan, now)
            following = self._functions.following
            return await self._replanned(
                stored, now, lambda before: declare(before, plan, now, functions=following, reset=declared.reset)
            )

        await self.change(tenant, name, decide)

    async def create(self, tenant: str, name: str, options: ScheduleOptions, *, dry_run: bool = False) -> Versioned:
        """Creates a schedule and returns it. With `dry_run` nothing is stored. Raises Conflict if the name is taken."""
        plan = self._planner.plan(options, tenant, name)

        async def decide(stored: Schedule | None, now: Instant) -> PlannedChange:
            if stored is not None:
                raise Conflict(f"there is a schedule {name!r} already: edit it, or delete it first")
            return self._begun(tenant, name, plan, now)

        return await (self.preview if dry_run else self.change)(tenant, name, decide)

    async def edit(
        self, stored: Schedule, options: ScheduleOptions, now: Instant, template: TemplateChange | None = None
    ) -> PlannedChange:
        """Returns the change by an edit at run time, which changes only the options that are passed."""
        return await self._replanned(stored, now, lambda before: self.edited(before, options, now, template))

    def edited(
        self, stored: Schedule, options: ScheduleOptions, now: Instant, template: TemplateChange | None = None
    ) -> Schedule:
        """Returns the schedule with these options changed, without the fires that are due by its old times."""
        plan = self._planner.plan(options, stored.tenant, stored.name, stored.plan, template)
        return edit(stored, plan, now, functions=self._functions.following)

    async def preview(self, tenant: str, name: str, decide: Decide, *, if_version: int | None = None) -> Versioned:
        """Returns the schedule as `change` would store it now, and the version that it has now. Writes nothing."""
        read = await SCHEDULES.of(self._store).get_schedules(tenant, [name])
        record = next(iter(read.schedules), None)
        _check_version(name, record, if_version)
        planned = await decide(None if record is None else record.schedule, read.now)
        assert planned.after is not None, "a deletion has no preview"
        return planned.after, None if record is None else record.version

    async def change(self, tenant: str, name: str, decide: Decide, *, if_version: int | None = None) -> Versioned:
        """Changes a schedule and returns it as it is then; a deleted one is returned as it was.

        Raises RevMismatch if its version is not `if_version`. The store compares the version in the transaction that
        changes the schedule.
        """
        store = SCHEDULES.of(self._store)
        for _ in range(TRIES_MAX):
            read = await store.get_schedules(tenant, [name])
            record = next(iter(read.schedules), None)
            _check_version(name, record, if_version)
            stored = None if record is None else record.schedule
            planned = await decide(stored, read.now)
            left = stored if planned.after is None else planned.after
            assert left is not None, "a change needs a schedule before it or after it"
            if planned.after == stored:
                return left, None if record is None else record.version
            change = ScheduleChange(before=record, after=planned.after, jobs=planned.jobs)
            [changed] = await store.change_schedules([change])
            if changed is not None:
                self._store.notifier.publish(Hint(control=True))
                self._fires.publish(left, planned, changed)
                return left, changed.version
        raise Conflict(f"schedule {name!r} was changed by others again and again: try again")

    def _begun(self, tenant: str, name: str, plan: Plan, now: Instant) -> PlannedChange:
        return PlannedChange(begin(name, plan, now, tenant=tenant, functions=self._functions.following))

    async def _replanned(self, stored: Schedule, now: Instant, replan: Callable[[Schedule], Schedule]) -> PlannedChange:
        """Returns the change by `replan`. If it changes the times, fires that are due by the old times come with it."""
        after = replan(stored)
        if after.plan.timing == stored.plan.timing:
            return PlannedChange(after)
        owed = await self._owed(stored, now)
        assert owed.after is not None, "no fire deletes its schedule"
        return PlannedChange(replan(owed.after), owed.fires)

    async def _owed(self, stored: Schedule, now: Instant) -> PlannedChange:
        """Returns the change by the fires that are due now. Fires whose jobs cannot be made here are given up and
        reported, because the edit may be meant to repair the schedule."""
        try:
            planned = await guarded_await(self._fires.take(stored, now))
        except Exception as error:
            self._events.report(error, f"schedule {stored.name}")
            return PlannedChange(stored)
        if planned is not None:
            return planned
        if stored.next_fire is not None and stored.next_fire <= now and not stored.paused:
            given_up = (
                f"the times of schedule {stored.name!r} were changed while a fire was due, "
                "and this process lacks its function"
            )
            self._events.report(Conflict(given_up), f"schedule {stored.name}")
        return PlannedChange(stored)


def _check_version(name: str, record: ScheduleRecord | None, expected: int | None) -> None:
    """Raises RevMismatch if the schedule has another version than the one that the caller has read."""
    if expected is not None and record is not None and record.version != expected:
        message = (
            f"schedule {name!r} has version {record.version}, not if_rev={expected}: it has changed; read it again"
        )
        raise RevMismatch(message, expected=expected, current=record.version)
