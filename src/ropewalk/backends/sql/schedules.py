"""Schedules: a change is written only if the stored version is the expected one, and its jobs in the same
transaction."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

import msgspec
from msgspec import Struct

from ropewalk.backends.sql.damage import Rows, ids_of
from ropewalk.backends.sql.lanes import LaneBook
from ropewalk.backends.sql.submission import submit
from ropewalk.backends.sql.tx import SqlValue, Tx
from ropewalk.domain.schedules.schedule import Plan, Schedule
from ropewalk.domain.time import Instant
from ropewalk.ports.store.schedules import (
    DueSchedules,
    ScheduleChange,
    ScheduleChanged,
    ScheduleRecord,
    ScheduleSnapshot,
)
from ropewalk.ports.store.submission import Submission, SubmitAnswer


def change_schedules(tx: Tx, lanes: LaneBook, changes: Sequence[ScheduleChange]) -> list[ScheduleChanged | None]:
    versions = tx.take_seqs(len(changes))
    # Locks on schedules are taken in one order by everybody, and before those of jobs.
    in_order = sorted(range(len(changes)), key=lambda at: changes[at].key)
    ours = {at for at in in_order if _replaced(tx, changes[at], versions[at])}
    jobs = [new for at, change in enumerate(changes) if at in ours for new in change.jobs]
    answers = iter(submit(tx, lanes, [Submission(jobs=[new]) for new in jobs]) if jobs else ())
    return [_changed(change, versions[at], answers) if at in ours else None for at, change in enumerate(changes)]


def get_schedules(tx: Tx, tenant: str, names: Sequence[str]) -> ScheduleSnapshot:
    wanted = msgspec.json.encode(list(names)).decode()
    return ScheduleSnapshot(now=tx.now, schedules=_records(tx, tx.value(tx.sql.schedules_named, (wanted, tenant))))


def list_schedules(tx: Tx, tenant: str, *, after: str | None, limit: int) -> ScheduleSnapshot:
    return ScheduleSnapshot(now=tx.now, schedules=_page(tx, tx.sql.schedules_of, tenant, after or "", limit=limit))


def due_schedules(tx: Tx, *, after: Schedule | None, limit: int) -> DueSchedules:
    behind = (-1, "", "") if after is None else (after.next_fire, after.tenant, after.name)
    due = _page(tx, tx.sql.due_schedules, tx.now, *behind, limit=limit)
    return DueSchedules(now=tx.now, schedules=due, next_fire=tx.value(tx.sql.next_schedule, (tx.now,)))


def _replaced(tx: Tx, change: ScheduleChange, version: int) -> bool:
    before, after, key = change.before, change.after, change.key
    if before is None:
        assert after is not None
        return tx.run(tx.sql.insert_schedule, (*key, version, *_columns(after))) > 0
    if after is None:
        return tx.run(tx.sql.delete_schedule, (*key, before.version)) > 0
    assert key == (after.tenant, after.name), "a schedule keeps its name"
    return tx.run(tx.sql.update_schedule, (version, *_columns(after), *key, before.version)) > 0


def _columns(schedule: Schedule) -> tuple[SqlValue, ...]:
    return (
        schedule.generation,
        schedule.next_fire,
        schedule.last_fire,
        int(schedule.paused),
        int(schedule.overridden),
        msgspec.json.encode(schedule.plan).decode(),
    )


def _changed(change: ScheduleChange, version: int, answers: Iterator[SubmitAnswer]) -> ScheduleChanged:
    of_change = list(islice(answers, len(change.jobs)))
    return ScheduleChanged(version=None if change.after is None else version, answers=of_change)


class _Row(Struct, array_like=True):
    tenant: str
    name: str
    version: int
    generation: int
    next_fire: Instant | None
    last_fire: Instant | None
    paused: int
    overridden: int
    plan: Plan


_rows = Rows("schedule", _Row)


def _page(tx: Tx, sql: str, *values: SqlValue, limit: int) -> list[ScheduleRecord]:
    """Returns the next schedules that can be read. The page is short only if there are no more, because the caller
    takes a short page for the last one."""
    asked = limit
    while True:
        found = tx.value(sql, (*values, asked))
        schedules = _records(tx, found)
        if not tx.careful or len(schedules) >= limit or len(ids_of(found)) < asked:
            return schedules[:limit]
        asked *= 2


def _records(tx: Tx, found: bytes | str) -> list[ScheduleRecord]:
    return [ScheduleRecord(schedule=_schedule(row), version=row.version) for row in _rows.decode(tx, found)]


def _schedule(row: _Row) -> Schedule:
    return Schedule(
        name=row.name,
        tenant=row.tenant,
        plan=row.plan,
        generation=row.generation,
        next_fire=row.next_fire,
        last_fire=row.last_fire,
        paused=bool(row.paused),
        overridden=bool(row.overridden),
    )
