"""Ready jobs as a claim reads them: whole records, in the order of their stream, from a given rank on.

What is read is locked where a store has locks for rows; who gets it is decided in claim.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Final, TypeAlias

import msgspec

from ropewalk.backends.sql.claim.cache import Rank
from ropewalk.backends.sql.lanes import LaneBook
from ropewalk.backends.sql.rows import records_in
from ropewalk.backends.sql.tx import TooMuch, Tx
from ropewalk.domain.jobs.record import RECORD_FORMAT, JobRecord

Heads: TypeAlias = dict[int, list[JobRecord]]
"""the first jobs of each stream"""
Start: TypeAlias = tuple[int, Rank]
"""a stream, and the rank behind which to read"""

rank_of: Final[Callable[[JobRecord], Rank]] = attrgetter("prio_key", "time_key", "seq")


def next_of(tx: Tx, stream: int, after: Rank, count: int) -> list[JobRecord]:
    """The next `count` jobs of a stream, fewer where it ends."""
    try:
        return records_in(tx.row(tx.sql.ready_jobs, (stream, *after, RECORD_FORMAT, count)))
    except TooMuch:
        if count == 1:
            raise
        first = next_of(tx, stream, after, count // 2)
        if len(first) < count // 2:
            return first
        return first + next_of(tx, stream, rank_of(first[-1]), count - len(first))


def first_of_each(tx: Tx, lanes: LaneBook, starts: Sequence[Start], count: int) -> Heads:
    """At most `count` jobs of each of many streams, in one statement."""
    heads: Heads = {}
    for job in sorted(_first_of_each(tx, starts, count), key=rank_of):
        heads.setdefault(2 * lanes.id_of(tx, job.lane) + job.suspect, []).append(job)
    return heads


def _first_of_each(tx: Tx, starts: Sequence[Start], count: int) -> list[JobRecord]:
    if len(starts) == 1:
        [(stream, after)] = starts
        return next_of(tx, stream, after, count)
    wanted = msgspec.json.encode([(stream, *after) for stream, after in starts]).decode()
    try:
        return records_in(tx.row(tx.sql.ready_heads, (wanted, RECORD_FORMAT, count)))
    except TooMuch:
        half = len(starts) // 2
        return _first_of_each(tx, starts[:half], count) + _first_of_each(tx, starts[half:], count)
