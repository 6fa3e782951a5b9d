"""Reads and writes whole job records: finds, loads, inserts, leases and saves them. No rule about jobs is decided here.

Records are read many at a time; records.sql defines the format of the answer. Structured fields are written as JSON
text.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import repeat
from operator import attrgetter
from typing import Any, Final, TypeAlias

import msgspec
from msgspec import defstruct

from ropewalk.backends.sql.columns import (
    CHANGING,
    COLUMNS,
    INSERTED_ALWAYS,
    INSERTED_IF_USED,
    JSON,
    OTHERS,
    ZERO_BY_DEFAULT,
)
from ropewalk.backends.sql.damaged_jobs import read_one_by_one
from ropewalk.backends.sql.lanes import LaneBook
from ropewalk.backends.sql.statistics import count_submitted
from ropewalk.backends.sql.tx import Row, SqlValue, TooMuch, Tx
from ropewalk.domain.jobs.record import JobRecord
from ropewalk.domain.jobs.states import Status
from ropewalk.domain.jobs.transition import EPOCH_SHIFT
from ropewalk.domain.time import Instant

WAITING, READY, RUNNING, FINISHED = range(4)
"""These are the stages of a job."""

_always = attrgetter(*INSERTED_ALWAYS)
_sometimes = attrgetter(*INSERTED_IF_USED)
_changing = attrgetter(*CHANGING)
_leased = attrgetter("seq", "ticket", "lease_expires_at")
_JSON_AT: Final = tuple(at for at, name in enumerate(CHANGING) if name in JSON)
_NAMED_AT: Final = (CHANGING.index("status"), CHANGING.index("last_move"))


def stage_of(job: JobRecord, now: Instant) -> int:
    """Returns the stage of a job (glossary)."""
    match job.status:
        case Status.WAITING:
            return READY if job.ready_at(now) else WAITING
        case Status.RUNNING:
            return RUNNING
        case Status.COMPLETED | Status.FAILED | Status.DEAD_LETTER | Status.CANCELLED:
            return FINISHED


def find(tx: Tx, tenant: str, job_id: str) -> JobRecord | None:
    """Returns the job with this id; None if there is none."""
    seq = tx.value(tx.sql.seq_of_id, (job_id, tenant))
    return None if seq is None else load(tx, [seq])[0]


def find_all(tx: Tx, tenant: str, ids: Iterable[str]) -> list[JobRecord]:
    """Returns those of these jobs that exist."""
    wanted = msgspec.json.encode(list(ids)).decode()
    return load(tx, _ints.decode(tx.value(tx.sql.seqs_of_ids, (wanted, tenant))))


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
    columns = (*INSERTED_ALWAYS, "stage", "lane", "input", *used)
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
    always = dict(zip(INSERTED_ALWAYS, _always(first), strict=True))
    del always["seq"], always["id"]
    sometimes = {name: column[0] for name, column in _used_columns([first]).items()}
    return {**always, "stage": stage_of(first, tx.now), "lane": lanes.id_of(tx, first.lane), **sometimes}


def _used_columns(jobs: Sequence[JobRecord]) -> dict[str, Sequence[SqlValue]]:
    """Returns the optional columns that some job of this batch uses. The others are left out, because binding None
    takes 1 µs each."""
    used: dict[str, Sequence[SqlValue]] = {}
    columns = zip(*map(_sometimes, jobs), strict=True)
    for name, column in zip(INSERTED_IF_USED, columns, strict=False):
        if name in JSON:
            if any(column):
                used[name] = [json_text(value) for value in column]
        elif column.count(0 if name in ZERO_BY_DEFAULT else None) < len(column):
            used[name] = column
    return used


def _save_row(job: JobRecord, now: Instant) -> Row:
    changing = list(_changing(job))
    for at in _JSON_AT:
        changing[at] = json_text(changing[at])
    for at in _NAMED_AT:
        changing[at] = changing[at].value
    return (job.seq, job.fence, stage_of(job, now), *changing)


_encode = msgspec.json.Encoder().encode


def json_text(value: object) -> str | None:
    """Returns a structured value as JSON text; None and {} are stored as NULL."""
    return _encode(value).decode() if value else None


LOADED_AT_ONCE_MAX: Final = 1000
"""One statement loads this many records at most."""


Extras: Final = defstruct(
    "Extras",
    [
        *((name, COLUMNS[name].type) for name in OTHERS),
        *((size, int | None) for size in ("checkpoint_bytes", "result_bytes")),
    ],
    kw_only=True,
)
"""The fields that most jobs do not have, in the format of `other_columns` in records.sql."""

Place: TypeAlias = tuple[int | None, str | None, str | None, str | None, str | None]
"""The values of `PLACE`: (scope, group, parent, spawn key, limit key)."""

_records = msgspec.json.Decoder(list[JobRecord])
_extras: Final[msgspec.json.Decoder[dict[int, Any]]] = msgspec.json.Decoder(dict.__class_getitem__((int, Extras)))
_places = msgspec.json.Decoder(dict[int, Place])
_ints = msgspec.json.Decoder(list[int])


def load(tx: Tx, seqs: Sequence[int], statement: str | None = None) -> list[JobRecord]:
    """Loads the records of these jobs, as far as they exist, in this order. `statement` may name another statement than
    `load_jobs`, with a weaker lock."""
    asked = statement or tx.sql.load_jobs
    loaded: list[JobRecord] = []
    for start in range(0, len(seqs), LOADED_AT_ONCE_MAX):
        loaded += _load(tx, seqs[start : start + LOADED_AT_ONCE_MAX], asked)
    return loaded


def _load(tx: Tx, seqs: Sequence[int], statement: str) -> list[JobRecord]:
    try:
        return records_in(tx, tx.row(statement, (msgspec.json.encode(seqs).decode(),)))
    except TooMuch:
        if len(seqs) == 1:
            raise
        half = len(seqs) // 2  # Together they exceed the store's limit for one value (1 GB).
        return _load(tx, seqs[:half], statement) + _load(tx, seqs[half:], statement)


def records_in(tx: Tx, found: Sequence[Any] | None) -> list[JobRecord]:
    """Makes records of the answer of a statement with `record_columns`. A careful statement returns only the numbers of
    the jobs, which are then read one by one."""
    assert found is not None
    return read_one_by_one(tx, _ints.decode(found[0])) if tx.careful else records_of(found)


def records_of(found: Sequence[Any]) -> list[JobRecord]:
    """Makes records of the answer of a statement that is not careful."""
    records, extras, places, sizes, *pieces = found
    jobs = _records.decode(records)
    inputs, checkpoints, results = (column or b"" for column in pieces)
    end = 0
    for job, size in zip(jobs, _ints.decode(sizes), strict=True):
        start, end = end, end + size
        job.input = inputs[start:end]
    given = _extras.decode(extras)
    if given:
        _give_all(jobs, given, Pieces(checkpoints), Pieces(results))
    _put_in_place(jobs, _places.decode(places))
    return jobs


def _give_all(jobs: Sequence[JobRecord], given: dict[int, Any], checkpoints: Pieces, results: Pieces) -> None:
    for job in jobs:
        if (extra := given.get(job.seq)) is not None:
            _give(job, extra, checkpoints, results)


def _put_in_place(jobs: Sequence[JobRecord], places: dict[int, Place]) -> None:
    """Sets the fields of `PLACE`. They travel apart from the other extras, because in a group of 100 000 jobs every job
    has them and would need all the others, too."""
    if places:
        for job in jobs:
            if (place := places.get(job.seq)) is not None:
                job.scope_id, job.group_id, job.parent_id, job.spawn_key, job.limit_key = place


def _give(job: JobRecord, extra: Any, checkpoints: Pieces, results: Pieces) -> None:
    for name in OTHERS:
        setattr(job, name, getattr(extra, name))
    if extra.checkpoint_bytes is not None:
        job.checkpoint = checkpoints.take(extra.checkpoint_bytes)
    if extra.result_bytes is not None:
        job.result = results.take(extra.result_bytes)


class Pieces:
    """The values of one column of many jobs, which arrive as one piece of bytes and are taken from it by their
    sizes."""

    __slots__ = ("_at", "_whole")

    def __init__(self, whole: bytes) -> None:
        self._whole = whole
        self._at = 0

    def take(self, size: int) -> bytes:
        start = self._at
        self._at = start + size
        return self._whole[start : self._at]
