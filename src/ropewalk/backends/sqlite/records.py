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
_lengths = msgspec.json.Decoder(list[tuple[int, int | None, int | None]])
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
    optional = [[*_sometimes(job)] for job in jobs]
    for values in optional:
        for at in range(len(_SOMETIMES) - len(JSON_COLUMNS), len(_SOMETIMES)):
            values[at] = json_text(values[at])
    # Binding None is slow (1 µs each), so columns that no job of the batch uses are left to their default.
    used = tuple(at for at, column in enumerate(zip(*optional, strict=True)) if column.count(None) < len(jobs))
    rows = [
        (
            *_always(job),
            place_of(job, tx.now),
            lanes.id_of(tx, job.tenant, job.queue, job.type),
            bytearray(job.input),  # bound without a detour, unlike bytes
            *(values[at] for at in used),
        )
        for job, values in zip(jobs, optional, strict=True)
    ]
    tx.run_rows(_insert_block(tuple(_SOMETIMES[at] for at in used)), rows)


def save(tx: Tx, jobs: Sequence[JobRecord]) -> None:
    """Records the domain changed, under the fence they were loaded with."""
    changed = tx.run_rows(SQL.save_jobs, [_save_row(job, tx.now) for job in jobs])
    assert changed == len(jobs), f"{len(jobs)} records changed under one transaction, {changed} were still there"


def take_seqs(tx: Tx, count: int) -> range:
    """`count` fresh numbers, in order."""
    last: int = tx.value(SQL.take_seqs, (count,))
    return range(last - count + 1, last + 1)


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
    _give_bytes(jobs, *found[1:])
    return jobs


def _give_bytes(
    jobs: list[JobRecord], lengths: str, inputs: bytes | None, checkpoints: bytes | None, results: bytes | None
) -> None:
    """Cut the pieces of each large column to the jobs they belong to."""
    at = at_checkpoint = at_result = 0
    for job, (size, checkpoint, result) in zip(jobs, _lengths.decode(lengths), strict=True):
        job.input = (inputs or b"")[at : at + size]
        at += size
        if checkpoint is not None:
            job.checkpoint = (checkpoints or b"")[at_checkpoint : at_checkpoint + checkpoint]
            at_checkpoint += checkpoint
        if result is not None:
            job.result = (results or b"")[at_result : at_result + result]
            at_result += result
