"""Finding, inserting and saving whole job records. Nothing here decides anything about them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import repeat
from operator import attrgetter
from typing import Final

import msgspec

from ropewalk.backends._sql.columns import JSON_COLUMNS, json_text
from ropewalk.backends.sqlite.lanes import LaneBook
from ropewalk.backends.sqlite.rows import load
from ropewalk.backends.sqlite.statements import SQL
from ropewalk.backends.sqlite.tx import Row, SqlValue, Tx
from ropewalk.domain.instants import Instant
from ropewalk.domain.job import JobRecord
from ropewalk.domain.states import Status

WAITING, READY, RUNNING, FINISHED = range(4)
"""the places of a job"""

_OWN: Final = ("seq", "id")
_ALWAYS: Final = (
    *_OWN,
    *("tenant", "type", "queue", "priority", "prio_key", "time_key", "created_at", "run_at", "updated_at"),
    *("flags", "max_attempts", "max_crashes", "format"),
)
_SOMETIMES: Final = (
    *("timeout_us", "lease_us", "deadline", "idempotency_key", "correlation_id", "workflow_id", "workflow_type"),
    *("group_id", "parent_id", "spawn_key", "callback_url", "fairness", "trace"),
    *JSON_COLUMNS,
)
_always = attrgetter(*_ALWAYS)
_sometimes = attrgetter(*_SOMETIMES)
_changing = attrgetter(
    *("priority", "prio_key", "time_key", "run_at", "updated_at", "run", "rev", "attempt", "crashes", "owner"),
    *("lease_expires_at", "start_rev", "started_at", "finished_at", "deadline"),
)
_seqs = msgspec.json.Decoder(list[int])


def place_of(job: JobRecord, now: Instant) -> int:
    match job.status:
        case Status.WAITING:
            return READY if job.ready_at(now) else WAITING
        case Status.RUNNING:
            return RUNNING
        case Status.COMPLETED | Status.FAILED | Status.DEAD_LETTER | Status.CANCELLED:
            return FINISHED


def find(tx: Tx, tenant: str, job_id: str) -> JobRecord | None:
    seq = tx.value(SQL.seq_of_id, (job_id, tenant))
    return None if seq is None else load(tx, [seq])[0]


def find_all(tx: Tx, tenant: str, ids: Iterable[str]) -> list[JobRecord]:
    wanted = msgspec.json.encode(list(ids)).decode()
    return load(tx, _seqs.decode(tx.value(SQL.seqs_of_ids, (wanted, tenant))))


def take_seqs(tx: Tx, count: int) -> range:
    """`count` fresh numbers, in order."""
    last: int = tx.value(SQL.take_seqs, (count,))
    return range(last - count + 1, last + 1)


def insert(tx: Tx, lanes: LaneBook, jobs: Sequence[JobRecord]) -> None:
    """New records, with their `seq` already taken. Raises IntegrityError where an id or spawn key exists."""
    used = _used_columns(jobs)
    extras: Iterator[Row] = zip(*used.values(), strict=True) if used else repeat(())
    rows = [
        (
            *_always(job),
            place_of(job, tx.now),
            lanes.id_of(tx, job.tenant, job.queue, job.type),
            bytearray(job.input),  # bound without a detour, unlike bytes
            *extra,
        )
        for job, extra in zip(jobs, extras, strict=False)
    ]
    tx.run_rows(_insert_block(tuple(used)), rows)


def insert_alike(tx: Tx, lanes: LaneBook, first: JobRecord, own: Sequence[tuple[int, str, bytes]]) -> None:
    """The same for records that differ only in (seq, id, input): what they share is bound once, from the first."""
    used = _used_columns([first])
    shared = (
        *_always(first)[len(_OWN) :],
        place_of(first, tx.now),
        lanes.id_of(tx, first.tenant, first.queue, first.type),
        *(column[0] for column in used.values()),
    )
    rows = [(seq, job_id, bytearray(data)) for seq, job_id, data in own]
    tx.run_rows(_insert_alike_block(tuple(used)), rows, *shared)


def save(tx: Tx, jobs: Sequence[JobRecord]) -> None:
    """Records the domain changed, under the fence they were loaded with."""
    changed = tx.run_rows(SQL.save_jobs, [_save_row(job, tx.now) for job in jobs])
    assert changed == len(jobs), f"{len(jobs)} records changed under one transaction, {changed} were still there"


def _used_columns(jobs: Sequence[JobRecord]) -> dict[str, Sequence[SqlValue]]:
    """Optional columns that a job of this batch uses; binding None is slow (1 µs each), so the others are left out."""
    used: dict[str, Sequence[SqlValue]] = {}
    columns = zip(*map(_sometimes, jobs), strict=True)
    for name, column in zip(_SOMETIMES, columns, strict=False):
        if name in JSON_COLUMNS:
            if any(column):
                used[name] = [json_text(value) for value in column]
        elif column.count(None) < len(column):
            used[name] = column
    return used


@lru_cache(maxsize=64)
def _insert_block(optional: tuple[str, ...]) -> str:
    columns = (*_ALWAYS, "place", "lane", "input", *optional)
    marks = ", ".join("?" * len(columns))
    return f"INSERT INTO job ({', '.join(columns)}) VALUES ({marks}) /* each row */"  # noqa: S608  the names are ours


@lru_cache(maxsize=64)
def _insert_alike_block(optional: tuple[str, ...]) -> str:
    shared = (*_ALWAYS[len(_OWN) :], "place", "lane", *optional)
    marks = ", ".join("?" * len(shared))
    return (
        "WITH own (seq, id, input) AS (VALUES (?, ?, ?) /* each row */) "  # noqa: S608  the names are ours
        f"INSERT INTO job (seq, id, input, {', '.join(shared)}) SELECT seq, id, input, {marks} FROM own"
    )


def _save_row(job: JobRecord, now: Instant) -> Row:
    row: list[SqlValue] = [job.seq, job.fence, place_of(job, now), job.status.value, job.last_move.value]
    row += _changing(job)
    row += json_text(job.progress), json_text(job.error), json_text(job.cancel)
    row += job.input, job.checkpoint, job.result
    return row
