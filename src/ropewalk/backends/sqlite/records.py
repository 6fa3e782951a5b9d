"""Whole job records in and out of the `job` table. Nothing here decides anything about them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from operator import attrgetter
from typing import Final

import msgspec

from ropewalk.backends._sql.columns import JSON_COLUMNS, json_text
from ropewalk.backends.sqlite.lanes import LaneBook
from ropewalk.backends.sqlite.library import sqlite
from ropewalk.backends.sqlite.statements import SQL
from ropewalk.backends.sqlite.tx import Row, SqlValue, Tx
from ropewalk.domain.instants import Instant
from ropewalk.domain.job import JobRecord
from ropewalk.domain.states import Status

WAITING, READY, RUNNING, FINISHED = range(4)
"""the places of a job"""
LOADED_AT_ONCE_MAX: Final = 1000

_ALWAYS: Final = (
    *("seq", "id", "tenant", "type", "queue", "priority", "prio_key", "time_key", "created_at", "run_at", "updated_at"),
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
_records = msgspec.json.Decoder(list[JobRecord])
_extras = msgspec.json.Decoder(dict[int, Extras])
_ints = msgspec.json.Decoder(list[int])


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
    return load(tx, _ints.decode(tx.value(SQL.seqs_of_ids, (wanted, tenant))))


def load(tx: Tx, seqs: Sequence[int]) -> list[JobRecord]:
    """The records of these jobs that exist, in this order."""
    loaded: list[JobRecord] = []
    for start in range(0, len(seqs), LOADED_AT_ONCE_MAX):
        loaded += _load(tx, seqs[start : start + LOADED_AT_ONCE_MAX])
    return loaded


def insert(tx: Tx, lanes: LaneBook, jobs: Sequence[JobRecord]) -> None:
    """New records, with their `seq` already taken. Raises IntegrityError where an id or spawn key exists."""
    used = _used_columns(jobs)
    rows = [
        (
            *_always(job),
            place_of(job, tx.now),
            lanes.id_of(tx, job.tenant, job.queue, job.type),
            bytearray(job.input),  # bound without a detour, unlike bytes
            *extra,
        )
        for job, extra in zip(jobs, zip(*used.values(), strict=True) if used else repeat(()), strict=False)
    ]
    tx.run_rows(_insert_block(tuple(used)), rows)


def save(tx: Tx, jobs: Sequence[JobRecord]) -> None:
    """Records the domain changed, under the fence they were loaded with."""
    changed = tx.run_rows(SQL.save_jobs, [_save_row(job, tx.now) for job in jobs])
    assert changed == len(jobs), f"{len(jobs)} records changed under one transaction, {changed} were still there"


def take_seqs(tx: Tx, count: int) -> range:
    """`count` fresh numbers, in order."""
    last: int = tx.value(SQL.take_seqs, (count,))
    return range(last - count + 1, last + 1)


def _used_columns(jobs: Sequence[JobRecord]) -> dict[str, Sequence[SqlValue]]:
    """Optional columns that a job of this batch uses; binding None is slow (1 µs each), so the others are left out."""
    used: dict[str, Sequence[SqlValue]] = {}
    for name, column in zip(_SOMETIMES, zip(*map(_sometimes, jobs), strict=True), strict=False):
        if name in JSON_COLUMNS:
            if any(column):
                used[name] = [json_text(value) for value in column]
        elif column.count(None) < len(jobs):
            used[name] = column
    return used


@lru_cache(maxsize=64)
def _insert_block(optional: tuple[str, ...]) -> str:
    columns = (*_ALWAYS, "place", "lane", "input", *optional)
    return f"INSERT INTO job ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))}) /* each row */"  # noqa: S608  column names are our own


def _save_row(job: JobRecord, now: Instant) -> Row:
    row: list[SqlValue] = [job.seq, job.fence, place_of(job, now), job.status.value, job.last_move.value]
    row += _changing(job)
    row += json_text(job.progress), json_text(job.error), json_text(job.cancel)
    row += job.input, job.checkpoint, job.result
    return row


def _load(tx: Tx, seqs: Sequence[int]) -> list[JobRecord]:
    try:
        found = tx.row(SQL.load_jobs, (msgspec.json.encode(seqs).decode(),))
    except sqlite.DataError:
        if len(seqs) == 1:
            raise
        half = len(seqs) // 2  # together they are over SQLite's limit for one value (1 GB)
        return _load(tx, seqs[:half]) + _load(tx, seqs[half:])
    assert found is not None
    jobs = _records.decode(found[0])
    _complete(jobs, *found[1:])
    return jobs


def _complete(
    jobs: list[JobRecord], extras: str, sizes: str, inputs: bytes | None, checkpoints: bytes | None, results: bytes | None
) -> None:
    """Give each job the bytes that are its own, and what else it has."""
    given = _extras.decode(extras)
    input_pieces, checkpoint_pieces, result_pieces = Pieces(inputs), Pieces(checkpoints), Pieces(results)
    for job, size in zip(jobs, _ints.decode(sizes), strict=True):
        job.input = input_pieces.take(size)
        if (extra := given.get(job.seq)) is not None:
            extra.give_to(job)
            job.checkpoint = checkpoint_pieces.take(extra.checkpoint_bytes)
            job.result = result_pieces.take(extra.result_bytes)
