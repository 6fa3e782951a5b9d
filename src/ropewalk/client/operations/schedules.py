"""People read, create, edit, pause, resume, trigger and delete schedules."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Final, Unpack

from msgspec import structs

from ropewalk.client.operations.base import TenantOperations
from ropewalk.client.schedules.fires import PlannedChange
from ropewalk.client.schedules.planner import TemplateChange
from ropewalk.client.views.jobs import JobInfo
from ropewalk.client.views.schedules import ScheduleInfo, info_of
from ropewalk.definitions.options import EnqueueOptions
from ropewalk.definitions.schedule import ScheduleOptions, check_options
from ropewalk.domain import checks
from ropewalk.domain.schedules.schedule import Schedule, job_of, pause, resume
from ropewalk.domain.time import Instant
from ropewalk.errors import Conflict, InvalidInput, NotFound
from ropewalk.ports.store.capabilities import SCHEDULES
from ropewalk.ports.store.schedules import ScheduleRecord
from ropewalk.ports.store.submission import Submission

LISTED_AT_ONCE: Final = 500
"""The store is asked for this many schedules at once."""
UPCOMING_MAX: Final = 1000
"""A schedule is shown with this many of its next fires at most."""


class ScheduleOperations(TenantOperations):
    """Reads and changes the schedules of a tenant."""

    async def schedules(self, *, upcoming: int = 1) -> list[ScheduleInfo]:
        """Return all schedules, ordered by name, each with this many of its next fires."""
        checks.between(upcoming, "upcoming", 0, UPCOMING_MAX)
        store, after, found = SCHEDULES.of(await self._store()), None, list[ScheduleInfo]()
        while True:
            page = (await store.list_schedules(self._tenant, after=after, limit=LISTED_AT_ONCE)).schedules
            found += [self._info(record.schedule, record.version, upcoming) for record in page]
            if len(page) < LISTED_AT_ONCE:
                return found
            after = page[-1].schedule.name

    async def get_schedule(self, name: str, *, upcoming: int = 5) -> ScheduleInfo:
        """Return one schedule with this many of its next fires. Raises NotFound."""
        checks.between(upcoming, "upcoming", 0, UPCOMING_MAX)
        record, _ = await self._scheduled(name)
        return self._info(record.schedule, record.version, upcoming)

    async def create_schedule(
        self, name: str, *, dry_run: bool = False, **options: Unpack[ScheduleOptions]
    ) -> ScheduleInfo:
        """Create a schedule, which the schedulers of all workers fire from now on. Raises Conflict if the name is
        taken.

        With `dry_run` nothing is stored, and the schedule is returned as it would be, with its next fires.

        >>> await app.create_schedule("pulse", every=10, job=ping())
        """
        checks.flag(dry_run, "dry_run")
        await self._app_state.open()
        return self._info(*await self._app_state.schedule_editor.create(self._tenant, name, options, dry_run=dry_run))

    async def edit_schedule(
        self,
        name: str,
        *,
        arguments: Mapping[str, object] | None = None,
        using: EnqueueOptions | None = None,
        if_rev: int | None = None,
        dry_run: bool = False,
        **changes: Unpack[ScheduleOptions],
    ) -> ScheduleInfo:
        """Change the options of a schedule that you pass. Fires that are due by its old times are enqueued together
        with the change. Afterwards, declaring the schedule in code no longer changes it.

        `job` replaces the whole job. `arguments` and `using` (the options of `Job.using`) change only the arguments and
        options that you pass. With `dry_run` nothing is stored, and the schedule is returned as it would be, with its
        next fires. `if_rev` is `ScheduleInfo.version` as you read it: if the schedule has changed since (each fire is a
        change), RevMismatch is raised and nothing changes.

        >>> await app.edit_schedule("nightly", cron="0 4 * * *", using={"queue": "slow", "priority": -5})
        """
        checks.flag(dry_run, "dry_run")
        checks.positive_or_none(if_rev, "if_rev")
        check_options(changes)
        template = TemplateChange.of(arguments, using)
        editor = self._app_state.schedule_editor

        async def decide(stored: Schedule, now: Instant) -> PlannedChange:
            if dry_run:
                return PlannedChange(editor.edited(stored, changes, now, template))
            return await editor.edit(stored, changes, now, template)

        return await self._changed(name, decide, dry_run=dry_run, if_version=if_rev)

    async def pause_schedule(self, name: str) -> ScheduleInfo:
        """Pause a schedule. Its times pass, and nothing is enqueued at them until it is resumed."""

        async def decide(stored: Schedule, _: Instant) -> PlannedChange:
            return PlannedChange(pause(stored))

        return await self._changed(name, decide)

    async def resume_schedule(self, name: str) -> ScheduleInfo:
        """Resume a schedule, which fires again from its next time on. Times during the pause do not count as missed."""

        async def decide(stored: Schedule, now: Instant) -> PlannedChange:
            return PlannedChange(resume(stored, now, functions=self._app_state.functions.following))

        return await self._changed(name, decide)

    async def trigger_schedule(
        self,
        name: str,
        *,
        id: str | None = None,  # noqa: A002  the word that enqueue uses
    ) -> JobInfo:
        """Enqueue the job of a schedule once, now, in addition to its times and even while it is paused. `id` is the id
        of the job, as for `enqueue`: if you repeat the call with it after an OutcomeUnknown, there is only one job.
        """
        checks.text_or_none(id, "id")
        record, now = await self._scheduled(name)
        schedule, fires = record.schedule, self._app_state.fires
        if not fires.can_make(schedule):
            raise InvalidInput(
                f"the jobs of schedule {name!r} are made by the function {schedule.plan.work!r}, "
                "which this app does not have: trigger it from an app that has it",
                field="name",
            )
        made = await fires.job(schedule, now)
        if made is None:
            raise Conflict(
                f"the function {schedule.plan.work!r} of schedule {name!r} returned no job: there is nothing to enqueue"
            )
        new = structs.replace(job_of(schedule, made, now), id=self._app_state.runtime.new_id() if id is None else id)
        [[accepted]] = await self._app_state.submit([Submission(jobs=[new])])
        return self._describe.job(*await self._record(accepted.id))

    async def delete_schedule(self, name: str) -> None:
        """Delete a schedule; its jobs stay. A schedule that code declares is stored again when the next worker starts,
        so pause it instead."""

        async def decide(_: Schedule, __: Instant) -> PlannedChange:
            return PlannedChange(None)

        await self._changed(name, decide)

    async def _changed(
        self,
        name: str,
        decide: Callable[[Schedule, Instant], Awaitable[PlannedChange]],
        *,
        dry_run: bool = False,
        if_version: int | None = None,
    ) -> ScheduleInfo:
        async def decided(stored: Schedule | None, now: Instant) -> PlannedChange:
            if stored is None:
                raise _missing(name)
            return await decide(stored, now)

        checks.text(name, "name")
        await self._app_state.open()
        editor = self._app_state.schedule_editor
        change = editor.preview if dry_run else editor.change
        return self._info(*await change(self._tenant, name, decided, if_version=if_version))

    async def _scheduled(self, name: str) -> tuple[ScheduleRecord, Instant]:
        checks.text(name, "name")
        read = await SCHEDULES.of(await self._store()).get_schedules(self._tenant, [name])
        if not read.schedules:
            raise _missing(name)
        return read.schedules[0], read.now

    def _info(self, schedule: Schedule, version: int | None, upcoming: int = 5) -> ScheduleInfo:
        return info_of(schedule, version, self._describe, self._app_state.functions.following, upcoming)


def _missing(name: str) -> NotFound:
    return NotFound(f"no schedule {name!r} for this tenant (those that code declares are stored when a worker starts)")
