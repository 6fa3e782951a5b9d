"""Finding, inserting and saving whole job records. Nothing here decides anything about them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import repeat
from operator import attrgetter
from typing import Final

import msgspec

from ropewalk.backends._sql.columns import JSON_COLUMNS, json_text
from ropewalk.backends._sql.lanes import LaneBook
from ropewalk.backends._sql.rows import load
from ropewalk.backends._sql.tx import Row, SqlValue, Tx
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
    *("group_id", "parent_id", "spawn_key", "callback_url", "fairness", "trace", "scope_id", "chain_id", "chain_index"),
    *("awaits", "wake_at", "unmet", "depth", "limit_key"),
    *JSON_COLUMNS,
)
_COUNTS: Final = frozenset({"unmet", "depth"})
_always = attrgetter(*_ALWAYS)
_sometimes = attrgetter(*_SOMETIMES)
_changing = attrgetter(
    *("priority", "prio_key", "time_key", "run_at", "updated_at", "flags", "run", "rev", "attempt", "crashes", "owner"),
    *("lease_expires_at", "start_rev", "started_at", "finished_at", "deadline", "chain_id", "chain_index", "unmet"),
    *("awaits", "wake_at"),
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
    seq = tx.value(tx.sql.seq_of_id, (job_id, tenant))
    return None if seq is None else load(tx, [seq])[0]


def find_all(tx: Tx, tenant: str, ids: Iterable[str]) -> list[JobRecord]:
    wanted = msgspec.json.encode(list(ids)).decode()
    return load(tx, _seqs.decode(tx.value(tx.sql.seqs_of_ids, (wanted, tenant))))


def insert(tx: Tx, lanes: LaneBook, jobs: Sequence[JobRecord]) -> None:
    """New records, with their `seq` already taken. Raises AlreadyThere where an id or spawn key exists."""
    used = _used_columns(jobs)
    lane_ids = lanes.ids_of(tx, {job.lane for job in jobs})
    extras: Iterator[Row] = zip(*used.values(), strict=True) if used else repeat(())
    rows = [
        (
            *_always(job),
            place_of(job, tx.now),
            lane_ids[job.lane],
            tx.blob(job.input),
            *extra,
        )
        for job, extra in zip(jobs, extras, strict=False)
    ]
    columns = (*_ALWAYS, "place", "lane", "input", *used)
    tx.run_rows(tx.insert_block(columns, own=len(columns)), rows)


def insert_alike(
    tx: Tx,
    lanes: LaneBook,
    first: JobRecord,
    own: Sequence[tuple[int | None, str, bytes]],
    spawn_keys: Sequence[str] = (),
) -> None:
    """The same for records that differ only in (seq, id, input), and in their spawn keys where these are given.

    What they share is bound once, from the first. They may all come without a number where the store gives it
    (`Tx.numbers_inserted`).
    """
    used = _used_columns([first])
    if spawn_keys:
        used.pop("spawn_key", None)
    shared = (
        *_always(first)[len(_OWN) :],
        place_of(first, tx.now),
        lanes.id_of(tx, first.lane),
        *(column[0] for column in used.values()),
    )
    rows: list[Row] = [(seq, job_id, tx.blob(data)) for seq, job_id, data in own]
    of_its_own = [*_OWN, "input"]
    if own[0][0] is None:
        rows = [row[1:] for row in rows]
        del of_its_own[0]
    if spawn_keys:
        rows = [(*row, key) for row, key in zip(rows, spawn_keys, strict=True)]
        of_its_own.append("spawn_key")
    columns = (*of_its_own, *_ALWAYS[len(_OWN) :], "place", "lane", *used)
    tx.run_rows(tx.insert_block(columns, own=len(of_its_own)), rows, *shared)


def save(tx: Tx, jobs: Sequence[JobRecord]) -> None:
    """Records the domain changed, under the fence they were loaded with."""
    changed = tx.run_rows(tx.sql.save_jobs, [_save_row(job, tx.now) for job in jobs])
    assert changed == len(jobs), f"{len(jobs)} records changed under one transaction, {changed} were still there"


def _used_columns(jobs: Sequence[JobRecord]) -> dict[str, Sequence[SqlValue]]:
    """Optional columns that a job of this batch uses; binding None is slow (1 µs each), so the others are left out."""
    used: dict[str, Sequence[SqlValue]] = {}
    columns = zip(*map(_sometimes, jobs), strict=True)
    for name, column in zip(_SOMETIMES, columns, strict=False):
        if name in JSON_COLUMNS:
            if any(column):
                used[name] = [json_text(value) for value in column]
        elif column.count(0 if name in _COUNTS else None) < len(column):
            used[name] = column
    return used


def _save_row(job: JobRecord, now: Instant) -> Row:
    row: list[SqlValue] = [job.seq, job.fence, place_of(job, now), job.status.value, job.last_move.value]
    row += _changing(job)
    row += json_text(job.gate), json_text(job.progress), json_text(job.error), json_text(job.cancel)
    row += job.input, job.checkpoint, job.result
    return row
