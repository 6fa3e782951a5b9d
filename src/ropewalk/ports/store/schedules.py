"""The capability to keep schedules.

A schedule is read with its version. Whoever changes it names that version, and the change is written, together with the
jobs that the schedule fires, only if the version is still the newest one. The domain decides which fires are due and
what becomes of them; a store decides only whose change comes first.

The rules for every verb are in core.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from ropewalk.domain.jobs.record import NewJob
from ropewalk.domain.schedules.schedule import Schedule
from ropewalk.domain.time import Instant
from ropewalk.ports.store.submission import SubmitAnswer


class ScheduleRecord(Struct, frozen=True, kw_only=True):
    """A schedule with its version."""

    schedule: Schedule
    version: int
    """The store's number for this state of the schedule. It is never used again, even if the schedule is deleted and
    created anew."""


class ScheduleChange(Struct, frozen=True, kw_only=True):
    """The change of one schedule, with the jobs that are submitted with it. `before` and `after` have the same tenant
    and name, and at least one of them is not None."""

    before: ScheduleRecord | None
    """The schedule as it was read; None if it does not exist yet."""
    after: Schedule | None
    """The schedule as it is to be stored; None if it is to be deleted."""
    jobs: Sequence[NewJob] = ()
    """Each of these jobs is accepted or refused like a submission of its own."""

    @property
    def key(self) -> tuple[str, str]:
        """The tenant and the name of the schedule."""
        schedule = self.after if self.before is None else self.before.schedule
        assert schedule is not None, "a change is of something, or into something"
        return schedule.tenant, schedule.name


class ScheduleChanged(Struct, frozen=True, kw_only=True):
    """The answer to a change that was written."""

    version: int | None
    """The new version of the schedule; None if it was deleted."""
    answers: list[SubmitAnswer] = []
    """One answer for each job of the change."""


class ScheduleSnapshot(Struct, frozen=True, kw_only=True):
    """Some schedules as they were at one moment."""

    now: Instant
    schedules: list[ScheduleRecord]


class DueSchedules(Struct, frozen=True, kw_only=True):
    """The schedules that were due at one moment."""

    now: Instant
    schedules: list[ScheduleRecord]
    """The due schedules, ordered by (next_fire, tenant, name)."""
    next_fire: Instant | None
    """The earliest next fire, of any tenant, that is not due yet."""


class ScheduleStore(Protocol):
    """A store with schedules, which are identified by tenant and name."""

    async def change_schedules(self, changes: Sequence[ScheduleChange]) -> list[ScheduleChanged | None]:
        """Compares and sets schedules, with one commit for all changes. Each change is written with its jobs completely
        or not at all, independently of the others.

        The answer to a change is None, and nothing of it is written, if somebody else has changed the schedule since it
        was read. If a job is refused, the other jobs and the schedule are written nevertheless.
        """
        ...

    async def get_schedules(self, tenant: str, names: Sequence[str]) -> ScheduleSnapshot:
        """Returns those of these schedules that exist, by name."""
        ...

    async def list_schedules(self, tenant: str, *, after: str | None, limit: int) -> ScheduleSnapshot:
        """Returns the schedules of a tenant whose names follow `after`, by name."""
        ...

    async def due_schedules(self, *, after: Schedule | None, limit: int) -> DueSchedules:
        """Returns the schedules of all tenants that are due, paused ones, too, beginning behind `after`.

        The cost does not depend on how many schedules are not due.
        """
        ...
