"""What a claim reads: first a snapshot (which queues are paused, what is due next, which sublanes have ready jobs),
then the ready jobs of its sublanes, as whole records in their order behind a rank.

The jobs that are read are locked if the store has locks for rows; claim.py decides which of them the worker gets.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import Any, Final, TypeAlias

import msgspec

from ropewalk.backends.sql.claim.cache import Rank
from ropewalk.backends.sql.lanes import check_numbers
from ropewalk.backends.sql.records import records_in
from ropewalk.backends.sql.tx import SqlValue, TooMuch, Tx
from ropewalk.domain.jobs.order import TenantQueue
from ropewalk.domain.jobs.record import RECORD_FORMAT, JobRecord
from ropewalk.domain.limits.fleet_limit import LaneName
from ropewalk.domain.time import Instant, Span
from ropewalk.ports.store.claims import ClaimRequest

Heads: TypeAlias = dict[int, list[JobRecord]]
"""The first jobs of each sublane."""
Start: TypeAlias = tuple[int, Rank]
"""A sublane, and the rank behind which to read it."""

rank_of: Final[Callable[[JobRecord], Rank]] = attrgetter("prio_key", "time_key", "seq")


def next_of(tx: Tx, sublane: int, after: Rank, count: int) -> list[JobRecord]:
    """Reads the next `count` jobs of a sublane behind a rank; they are fewer only if the sublane ends."""
    asked = count + _not_to_be_given(tx)
    try:
        return _to_be_given(tx, records_in(tx, tx.row(tx.sql.ready_jobs, (sublane, *after, RECORD_FORMAT, asked))))
    except TooMuch:
        if count == 1:
            raise
        first = next_of(tx, sublane, after, count // 2)
        if len(first) < count // 2:
            return first
        return first + next_of(tx, sublane, rank_of(first[-1]), count - len(first))


def first_of_each(tx: Tx, starts: Sequence[Start], count: int) -> Heads:
    """Reads at most `count` jobs of each of many sublanes by one statement."""
    heads: Heads = {}
    for sublane, job in _first_of_each(tx, starts, count):
        heads.setdefault(sublane, []).append(job)
    for jobs in heads.values():
        jobs.sort(key=rank_of)
    return heads


def _first_of_each(tx: Tx, starts: Sequence[Start], count: int) -> list[tuple[int, JobRecord]]:
    """Reads jobs, each with the sublane in which its row was found, because a damaged record may contradict it."""
    if len(starts) == 1:
        [(sublane, after)] = starts
        return [(sublane, job) for job in next_of(tx, sublane, after, count)]
    wanted = msgspec.json.encode([(sublane, *after) for sublane, after in starts]).decode()
    try:
        found = tx.row(tx.sql.ready_heads, (wanted, RECORD_FORMAT, count + _not_to_be_given(tx)))
    except TooMuch:
        half = len(starts) // 2
        return _first_of_each(tx, starts[:half], count) + _first_of_each(tx, starts[half:], count)
    assert found is not None
    *columns, sublanes = found
    jobs = zip(_ints.decode(sublanes), records_in(tx, columns), strict=True)
    return [(sublane, job) for sublane, job in jobs if not job.damaged]


def _not_to_be_given(tx: Tx) -> int:
    """Returns how many damaged jobs that could not be set aside may be among those that are read; the claim reads as
    many jobs in addition."""
    return len(tx.known_damage or ())


def _to_be_given(tx: Tx, jobs: list[JobRecord]) -> list[JobRecord]:
    return [job for job in jobs if not job.damaged] if tx.careful else jobs


DUE_LOOKED_AT: Final = 32
"""A claim reads the times of this many jobs that become due next."""

NamesOf: TypeAlias = Callable[[Sequence[int]], Mapping[int, LaneName]]
"""Such a function returns the names of these lanes, and perhaps of others."""

_ints = msgspec.json.Decoder(list[int])
_lines = msgspec.json.Decoder(list[TenantQueue])
_dues = msgspec.json.Decoder(list[tuple[Instant, int]])
_ready_decoder = msgspec.json.Decoder(tuple[list[int], Span])


class ClaimSnapshot:
    """What a claim has to know beside the jobs: pauses, due times and the sublanes with ready jobs."""

    def __init__(self, found: Sequence[Any], request: ClaimRequest, now: Instant) -> None:
        """`found` is the row that the statement `claim_snapshot` returned."""
        self._request = request
        self._now = now
        check_numbers(found[0], found[1])
        self.epoch: int = found[0]
        self.control: int = found[1]
        """The control counter of the store, which grows whenever a limit or a quota changes or a queue is paused."""
        self._paused = frozenset(_lines.decode(found[2]))
        self._dues = _dues.decode(found[3])
        self.next_wait: Instant | None = found[4]
        self._ready: bytes | str | None = found[5]

    @classmethod
    def read(cls, tx: Tx, request: ClaimRequest, *, look: bool) -> ClaimSnapshot:
        found = tx.row(tx.sql.claim_snapshot, {**claim_values(request), "look": look})
        assert found is not None
        return cls(found, request, tx.now)

    @property
    def something_is_due(self) -> bool:
        """Whether the time of a scheduled job has come, so that it has to be made ready."""
        return bool(self._dues) and self._dues[0][0] <= self._now

    @property
    def wait_is_over(self) -> bool:
        """Whether the wait of a job at a gate or for a signal is over."""
        return self.next_wait is not None and self.next_wait <= self._now

    def ready_sublanes(self, tx: Tx) -> tuple[list[int], Span]:
        """Looks for the sublanes with ready jobs. Returns them, and the time that the look took in the store, in µs."""
        if self._ready is None:
            self._ready = tx.value(tx.sql.ready_sublanes)
        return self.decoded_ready()

    def decoded_ready(self) -> tuple[list[int], Span]:
        """Returns the sublanes with ready jobs and the duration of the look, if the snapshot already contains a
        look."""
        assert self._ready is not None
        return _ready_decoder.decode(self._ready)

    def line_of(self, lane: LaneName) -> TenantQueue | None:
        """Returns the line (tenant, queue) of a lane if this request asks for its jobs; None otherwise."""
        tenant, queue, job_type, _ = lane
        request = self._request
        wanted = (
            job_type in request.types
            and (request.tenants is None or tenant in request.tenants)
            and (request.queues is None or queue in request.queues)
            and (tenant, queue) not in self._paused
        )
        return (tenant, queue) if wanted else None

    def next_ready(self, names_of: NamesOf) -> Instant | None:
        """Returns when the next job of this request becomes due.

        Only the first due jobs of all lanes are known. If none of them is for this request, the time of the last of
        them is returned, because no other job is due before; the lane of a job may also be unknown, and then it counts.
        """
        names = names_of([lane for _, lane in self._dues])
        for run_at, lane in self._dues:
            name = names.get(lane)
            if name is None or self.line_of(name) is not None:
                return run_at
        return self._dues[-1][0] if len(self._dues) == DUE_LOOKED_AT else None


def claim_values(request: ClaimRequest) -> dict[str, SqlValue]:
    """Returns the values of a request for the statements of a claim. The first of them also records the jobs that the
    worker has started."""
    unstarted = msgspec.json.encode(request.unstarted).decode()
    return {
        "owner": request.owner,
        "started_upto": request.started_upto,
        "unstarted": unstarted,
        "turn": request.turn,
        "dues": DUE_LOOKED_AT,
    }
