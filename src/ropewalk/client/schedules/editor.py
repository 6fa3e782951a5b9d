"""How stored schedules are changed: one is read, the domain decides, and the store compares and sets.

This is repeated while somebody else changes the schedule in between.
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
"""Decides what becomes of a schedule, or whether there is to be one where there is none."""

Versioned: TypeAlias = tuple[Schedule, int | None]
"""A schedule and its version; None where it is not stored."""

TRIES_MAX: Final = 100


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
        """Raises InvalidInput naming the option that does not fit."""
        return self._planner.plan(declared.options, declared.tenant, declared.name)

    async def declare(self, declared: DeclaredSchedule) -> None:
        """As code says it at a start: unless it was edited at run time, what is stored follows the code.

        Raises what a function of the schedule raises.
        """
        tenant, name, plan = declared.tenant, declared.name, self.plan_of(declared)

        async def decide(held: Schedule | None, now: Instant) -> PlannedChange:
            if held is None:
                return self._begun(tenant, name, plan, now)
            following = self._functions.following
            return await self._replanned(
                held, now, lambda was: declare(was, plan, now, functions=following, reset=declared.reset)
            )

        await self.change(tenant, name, decide)

    async def create(self, tenant: str, name: str, options: ScheduleOptions, *, dry_run: bool = False) -> Versioned:
        """With `dry_run` nothing is stored: the answer is what would be."""
        plan = self._planner.plan(options, tenant, name)

        async def decide(held: Schedule | None, now: Instant) -> PlannedChange:
            if held is not None:
                raise Conflict(f"there is a schedule {name!r} already: edit it, or delete it first")
            return self._begun(tenant, name, plan, now)

        return await (self.preview if dry_run else self.change)(tenant, name, decide)

    async def edit(
        self, held: Schedule, options: ScheduleOptions, now: Instant, template: TemplateChange | None = None
    ) -> PlannedChange:
        """At run time: only what is given changes."""
        return await self._replanned(held, now, lambda was: self.edited(was, options, now, template))

    def edited(
        self, held: Schedule, options: ScheduleOptions, now: Instant, template: TemplateChange | None = None
    ) -> Schedule:
        """The schedule with what is given changed, leaving aside what its old times still owe."""
        plan = self._planner.plan(options, held.tenant, held.name, held.plan, template)
        return edit(held, plan, now, functions=self._functions.following)

    async def preview(self, tenant: str, name: str, decide: Decide, *, if_version: int | None = None) -> Versioned:
        """What `change` would make of the schedule now, and the version it has now. Writes nothing."""
        read = await SCHEDULES.of(self._store).get_schedules(tenant, [name])
        record = next(iter(read.schedules), None)
        _check_version(name, record, if_version)
        planned = await decide(None if record is None else record.schedule, read.now)
        assert planned.after is not None, "nobody asks what a deleted schedule would be"
        return planned.after, None if record is None else record.version

    async def change(self, tenant: str, name: str, decide: Decide, *, if_version: int | None = None) -> Versioned:
        """The schedule as it is then; where it is deleted, as it was.

        Raises RevMismatch where its version is not `if_version`. The store compares the version in the transaction that
        changes the schedule.
        """
        stored = SCHEDULES.of(self._store)
        for _ in range(TRIES_MAX):
            read = await stored.get_schedules(tenant, [name])
            record = next(iter(read.schedules), None)
            _check_version(name, record, if_version)
            held = None if record is None else record.schedule
            planned = await decide(held, read.now)
            left = held if planned.after is None else planned.after
            assert left is not None, "what is changed is there, or will be"
            if planned.after == held:
                return left, None if record is None else record.version
            change = ScheduleChange(before=record, after=planned.after, jobs=planned.jobs)
            [changed] = await stored.change_schedules([change])
            if changed is not None:
                self._store.notifier.publish(Hint(control=True))
                self._fires.publish(left, planned, changed)
                return left, changed.version
        raise Conflict(f"schedule {name!r} was changed by others again and again: try again")

    def _begun(self, tenant: str, name: str, plan: Plan, now: Instant) -> PlannedChange:
        return PlannedChange(begin(name, plan, now, tenant=tenant, functions=self._functions.following))

    async def _replanned(self, held: Schedule, now: Instant, replan: Callable[[Schedule], Schedule]) -> PlannedChange:
        """Where its times become others, what the old ones still owe comes with the change."""
        after = replan(held)
        if after.plan.timing == held.plan.timing:
            return PlannedChange(after)
        owed = await self._owed(held, now)
        assert owed.after is not None, "no fire deletes its schedule"
        return PlannedChange(replan(owed.after), owed.fires)

    async def _owed(self, held: Schedule, now: Instant) -> PlannedChange:
        """What cannot be made here is given up, loudly: this change may be what mends the schedule."""
        try:
            planned = await guarded_await(self._fires.take(held, now))
        except Exception as error:
            self._events.report(error, f"schedule {held.name}")
            return PlannedChange(held)
        if planned is not None:
            return planned
        if held.next_fire is not None and held.next_fire <= now and not held.paused:
            given_up = (
                f"the times of schedule {held.name!r} were changed while a fire was due, "
                "and this process lacks its function"
            )
            self._events.report(Conflict(given_up), f"schedule {held.name}")
        return PlannedChange(held)


def _check_version(name: str, record: ScheduleRecord | None, expected: int | None) -> None:
    if expected is not None and record is not None and record.version != expected:
        told = f"schedule {name!r} has version {record.version}, not if_rev={expected}: it has changed; read it again"
        raise RevMismatch(told, expected=expected, current=record.version)
