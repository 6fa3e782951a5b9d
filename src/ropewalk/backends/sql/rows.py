"""Makes records of the rows of the `job` table, many at a time (records.sql defines the format of the answer), and JSON
text of structured fields.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, TypeAlias

import msgspec
from msgspec import defstruct

from ropewalk.backends.sql.columns import COLUMNS, OTHERS
from ropewalk.backends.sql.damaged_jobs import read_one_by_one
from ropewalk.backends.sql.tx import TooMuch, Tx
from ropewalk.domain.jobs.record import JobRecord

_encode = msgspec.json.Encoder().encode


def json_text(value: object) -> str | None:
    """Returns a structured value as JSON text; None and {} are stored as NULL."""
    return _encode(value).decode() if value else None


LOADED_AT_ONCE_MAX: Final = 1000


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
_sizes = msgspec.json.Decoder(list[int])


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
    return read_one_by_one(tx, _sizes.decode(found[0])) if tx.careful else records_of(found)


def records_of(found: Sequence[Any]) -> list[JobRecord]:
    """Makes records of the answer of a statement that is not careful."""
    records, extras, places, sizes, *pieces = found
    jobs = _records.decode(records)
    inputs, checkpoints, results = (column or b"" for column in pieces)
    end = 0
    for job, size in zip(jobs, _sizes.decode(sizes), strict=True):
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
