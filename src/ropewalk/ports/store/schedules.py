"""Capability: schedules, read with a version.

They are changed only by who read the newest version, together with the jobs they fire.

What holds for every verb of a store (core.py) holds here. Which fires are due and what becomes of them is
ropewalk.domain's; a store decides only whose change comes first.
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
    schedule: Schedule
    version: int
    """the store's own number of this state of it: never used again, not even for one deleted and made anew"""


class ScheduleChange(Struct, frozen=True, kw_only=True):
    """What was read, what it is to become, and the jobs that come with it. Never both None; a name stays."""

    before: ScheduleRecord | None
    """None: there is none of this tenant and name yet"""
    after: Schedule | None
    """None: it is deleted"""
    jobs: Sequence[NewJob] = ()
    """each accepted or refused like a submission of its own"""

    @property
    def key(self) -> tuple[str, str]:
        """Tenant and name of what is changed."""
        schedule = self.after if self.before is None else self.before.schedule
        assert schedule is not None, "a change is of something, or into something"
        return schedule.tenant, schedule.name


class ScheduleChanged(Struct, frozen=True, kw_only=True):
    version: int | None
    """None: it is deleted"""
    answers: list[SubmitAnswer] = []
    """one per job"""


class ScheduleSnapshot(Struct, frozen=True, kw_only=True):
    now: Instant
    schedules: list[ScheduleRecord]


class DueSchedules(Struct, frozen=True, kw_only=True):
    now: Instant
    schedules: list[ScheduleRecord]
    """by (next_fire, tenant, name)"""
    next_fire: Instant | None
    """the earliest that is not due yet, of all tenants"""


class ScheduleStore(Protocol):
    """Stored schedules, by tenant and name."""

    async def change_schedules(self, changes: Sequence[ScheduleChange]) -> list[ScheduleChanged | None]:
        """Compare and set, each change with its jobs whole or not at all, independent of one another, one commit.

        None: the schedule is no longer as it was read (somebody else was first): nothing of this change happened. A job
        that is refused does not keep the others, or the schedule, back: it is answered as refused.
        """
        ...

    async def get_schedules(self, tenant: str, names: Sequence[str]) -> ScheduleSnapshot:
        """Those of them that exist, by name."""
        ...

    async def list_schedules(self, tenant: str, *, after: str | None, limit: int) -> ScheduleSnapshot:
        """By name, from behind `after` on."""
        ...

    async def due_schedules(self, *, after: Schedule | None, limit: int) -> DueSchedules:
        """Those of every tenant whose next_fire has come, paused ones too, from behind `after` on.

        Cost does not depend on how many are not due.
        """
        ...
