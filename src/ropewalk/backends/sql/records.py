"""Finds, inserts and saves whole job records. No rule about jobs is decided here."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import repeat
from operator import attrgetter
from typing import Final

import msgspec

from ropewalk.backends.sql.columns import BORN_ALWAYS, BORN_SOMETIMES, CHANGING, COUNTS, JSON
from ropewalk.backends.sql.lanes import LaneBook
from ropewalk.backends.sql.rows import json_text, load
from ropewalk.backends.sql.statistics import count_submitted
from ropewalk.backends.sql.tx import Row, SqlValue, Tx
from ropewalk.domain.jobs.record import JobRecord
from ropewalk.domain.jobs.states import Status
from ropewalk.domain.jobs.transition import EPOCH_SHIFT
from ropewalk.domain.time import Instant

WAITING, READY, RUNNING, FINISHED = range(4)
"""These are the stages of a job."""

_always = attrgetter(*BORN_ALWAYS)
_sometimes = attrgetter(*BORN_SOMETIMES)
_changing = attrgetter(*CHANGING)
_leased = attrgetter("seq", "ticket", "lease_expires_at")
_JSON_AT: Final = tuple(at for at, name in enumerate(CHANGING) if name in JSON)
_NAMED_AT: Final = (CHANGING.index("status"), CHANGING.index("last_move"))
_seqs = msgspec.json.Decoder(list[int])


def stage_of(job: JobRecord, now: Instant) -> int:
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
    """Inserts new records, which already have their `seq`. Raises AlreadyThere if an id or a spawn key exists."""
    used = _used_columns(jobs)
    names = [job.lane for job in jobs]
    lane_ids = lanes.ids_of(tx, set(names))
    of_each = [lane_ids[name] for name in names]
    extras: Iterator[Row] = zip(*used.values(), strict=True) if used else repeat(())
    rows = [
        (
            *_always(job),
            stage_of(job, tx.now),
            lane,
            tx.blob(job.input),
            *extra,
        )
        for job, lane, extra in zip(jobs, of_each, extras, strict=False)
    ]
    columns = (*BORN_ALWAYS, "stage", "lane", "input", *used)
    tx.run_rows(tx.insert_block(columns, own=len(columns)), rows)
    count_submitted(tx, lanes, of_each)


def insert_alike(
    tx: Tx, lanes: LaneBook, first: JobRecord, own: Mapping[str, Sequence[SqlValue]], *, control: int | None = None
) -> bool:
    """Inserts new records that differ only in the columns of `own`; the other values are those of the first record.

    If `control` is given, the INSERT itself numbers the records, which the store must be able to do
    (`Tx.numbers_inserted`). Returns False and inserts nothing if the control counter has another value by now.
    """
    shared = {name: value for name, value in _shared(tx, lanes, first).items() if name not in own}
    rows: list[Row] = list(zip(*own.values(), strict=True))
    block = tx.insert_block([*own, *shared], own=len(own))
    before = () if control is None else (control,)
    if tx.run_rows(block, rows, *before, *shared.values()) < len(rows):
        return False
    count_submitted(tx, lanes, [lanes.id_of(tx, first.lane)] * len(rows))
    return True


def lease(tx: Tx, jobs: Sequence[JobRecord], *, owner: str, epoch: int) -> None:
    """Writes what domain.jobs.transition.claim changed in these records, which were ready and are locked."""
    rows = list(map(_leased, jobs))
    tx.run_rows_later(tx.sql.lease_jobs, rows, tx.now, epoch << EPOCH_SHIFT, owner)


def save(tx: Tx, jobs: Sequence[JobRecord]) -> None:
    """Saves records that the domain has changed, under the fence with which they were loaded."""
    for job in jobs:
        if job.damaged and "fence" in job.damaged:
            tx.run(tx.sql.mend_fence, (job.fence, job.seq))
    changed = tx.run_rows(tx.sql.save_jobs, [_save_row(job, tx.now) for job in jobs])
    assert changed == len(jobs), f"{len(jobs)} records changed under one transaction, {changed} were still there"


def _shared(tx: Tx, lanes: LaneBook, first: JobRecord) -> dict[str, SqlValue]:
    """Returns, by column, the values that records of one kind have in common."""
    always = dict(zip(BORN_ALWAYS, _always(first), strict=True))
    del always["seq"], always["id"]
    sometimes = {name: column[0] for name, column in _used_columns([first]).items()}
    return {**always, "stage": stage_of(first, tx.now), "lane": lanes.id_of(tx, first.lane), **sometimes}


def _used_columns(jobs: Sequence[JobRecord]) -> dict[str, Sequence[SqlValue]]:
    """Returns the optional columns that some job of this batch uses. The others are left out, because binding None
    takes 1 µs each."""
    used: dict[str, Sequence[SqlValue]] = {}
    columns = zip(*map(_sometimes, jobs), strict=True)
    for name, column in zip(BORN_SOMETIMES, columns, strict=False):
        if name in JSON:
            if any(column):
                used[name] = [json_text(value) for value in column]
        elif column.count(0 if name in COUNTS else None) < len(column):
            used[name] = column
    return used


def _save_row(job: JobRecord, now: Instant) -> Row:
    changing = list(_changing(job))
    for at in _JSON_AT:
        changing[at] = json_text(changing[at])
    for at in _NAMED_AT:
        changing[at] = changing[at].value
    return (job.seq, job.fence, stage_of(job, now), *changing)
