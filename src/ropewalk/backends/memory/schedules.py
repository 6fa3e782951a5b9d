"""Schedules: a change is written only if the stored version is the expected one, and its jobs under the same lock."""

from __future__ import annotations

from collections.abc import Sequence

from ropewalk.backends.memory.submission import submit
from ropewalk.backends.memory.tables import Tables
from ropewalk.domain.schedules.schedule import Schedule
from ropewalk.domain.time import Instant
from ropewalk.ports.store.schedules import (
    DueSchedules,
    ScheduleChange,
    ScheduleChanged,
    ScheduleRecord,
    ScheduleSnapshot,
)
from ropewalk.ports.store.submission import Submission


def change_schedules(tables: Tables, changes: Sequence[ScheduleChange], now: Instant) -> list[ScheduleChanged | None]:
    first = tables.last_seq + 1
    tables.last_seq += len(changes)
    ours = [_replaced(tables, change, version) for version, change in enumerate(changes, first)]
    return [
        ScheduleChanged(
            version=None if change.after is None else version,
            answers=submit(tables, [Submission(jobs=[new]) for new in change.jobs], now),
        )
        if is_ours
        else None
        for version, (change, is_ours) in enumerate(zip(changes, ours, strict=True), first)
    ]


def get_schedules(tables: Tables, tenant: str, names: Sequence[str], now: Instant) -> ScheduleSnapshot:
    found = [tables.schedules[tenant, name] for name in sorted(set(names)) if (tenant, name) in tables.schedules]
    return ScheduleSnapshot(now=now, schedules=found)


def list_schedules(tables: Tables, tenant: str, *, after: str | None, limit: int, now: Instant) -> ScheduleSnapshot:
    names = sorted(name for owner, name in tables.schedules if owner == tenant and (after is None or name > after))
    return ScheduleSnapshot(now=now, schedules=[tables.schedules[tenant, name] for name in names[:limit]])


def due_schedules(tables: Tables, *, after: Schedule | None, limit: int, now: Instant) -> DueSchedules:
    fires = {_place(each.schedule): each for each in tables.schedules.values() if each.schedule.next_fire is not None}
    due = sorted(place for place in fires if place[0] <= now and (after is None or place > _place(after)))
    return DueSchedules(
        now=now,
        schedules=[fires[place] for place in due[:limit]],
        next_fire=min((next_fire for next_fire, *_ in fires if next_fire > now), default=None),
    )


def _place(schedule: Schedule) -> tuple[Instant, str, str]:
    """Returns the place of a schedule in the order in which schedules fire."""
    assert schedule.next_fire is not None, "it has not ended"
    return schedule.next_fire, schedule.tenant, schedule.name


def _replaced(tables: Tables, change: ScheduleChange, version: int) -> bool:
    key = change.key
    held = tables.schedules.get(key)
    if (None if held is None else held.version) != (None if change.before is None else change.before.version):
        return False
    if change.after is None:
        del tables.schedules[key]
    else:
        assert key == (change.after.tenant, change.after.name), "a schedule keeps its name"
        tables.schedules[key] = ScheduleRecord(schedule=change.after, version=version)
    return True
