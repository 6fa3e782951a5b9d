"""Giving out work: the order of ready jobs, and which of them may not go into a worker's buffer.

Streams of ready keys are read a few at a time, merged by order within a line, and taken in turns between lines. Only
the jobs that are given are loaded.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from itertools import islice
from operator import attrgetter
from typing import Final, TypeAlias

import msgspec

from ropewalk.backends._ledger.ripple import Rippling
from ropewalk.backends._sql.lanes import LaneBook
from ropewalk.backends._sql.ledger import SqlLedger
from ropewalk.backends._sql.rows import load
from ropewalk.backends._sql.tx import Tx
from ropewalk.backends._sql.upkeep import catch_up, expire
from ropewalk.domain import transition
from ropewalk.domain.fairness import take_turns
from ropewalk.domain.instants import Instant
from ropewalk.domain.job import RECORD_FORMAT, JobRecord
from ropewalk.ports.exchange import Claimed, ClaimRequest, Ripple

CAUGHT_UP_PER_CLAIM_MAX: Final = 100
PROMOTED_PER_CLAIM_MAX: Final = 1000
EXPIRED_PER_CLAIM_MAX: Final = 1000
DUE_LOOKED_AT: Final = 32

Line: TypeAlias = tuple[str, str]
"""(tenant, queue): order is strict within it"""
Key: TypeAlias = tuple[int, Instant, int, int, int, Instant | None]
"""(prio_key, time_key, seq, suspect, last attempt, deadline) of a ready job"""

_BEFORE_ALL: Final = (-(1 << 63), -(1 << 63), -(1 << 63))
_leased = attrgetter("seq", "rev", "attempt", "fence", "ticket", "lease_expires_at")
_keys = msgspec.json.Decoder(list[Key])
_ints = msgspec.json.Decoder(list[int])
_lines = msgspec.json.Decoder(list[Line])
_dues = msgspec.json.Decoder(list[tuple[Instant, int]])


def claim(tx: Tx, lanes: LaneBook, request: ClaimRequest) -> Claimed:
    tx.run(tx.sql.note_started, (request.started_upto, request.owner, request.started_upto))
    before = catch_up(tx, lanes, CAUGHT_UP_PER_CLAIM_MAX, take_back=request.take_back)
    tx.run(tx.sql.promote_due, (tx.now, PROMOTED_PER_CLAIM_MAX))
    return Claiming(tx, lanes, request).run(before)


class Claiming:
    """One claim under way."""

    def __init__(self, tx: Tx, lanes: LaneBook, request: ClaimRequest) -> None:
        self._tx = tx
        self._lanes = lanes
        self._request = request
        survey = tx.row(tx.sql.survey, (DUE_LOOKED_AT,))
        assert survey is not None
        self._epoch: int = survey[0]
        self._streams = _ints.decode(survey[1])
        self._paused = frozenset(_lines.decode(survey[2]))
        self._dues = _dues.decode(survey[3])
        self._next_wait: Instant | None = survey[4]
        self._suspect_given = not request.suspect_allowed
        self._given: list[int] = []
        self._overdue: list[int] = []

    def run(self, before: Ripple) -> Claimed:
        """`before` is what happened on the way here."""
        lines = self._lines()
        # About as many keys as will be given, however many streams share the claim.
        chunk = max(1, self._request.limit // max(1, sum(map(len, lines))))
        in_order = [self._in_order(streams, chunk) for streams in lines]
        for _, _, seq, suspect, _, _ in islice(take_turns(in_order, self._request.turn), self._request.limit):
            self._given.append(seq)
            if suspect:
                self._suspect_given = True
        jobs = self._lease()
        # Last: a compensation born in this claim is work for the next one.
        expired = self._expire() if self._overdue else Ripple()
        return Claimed(
            now=self._tx.now,
            jobs=jobs,
            moved=before.moved + expired.moved,
            next_due=self._next_due(),
            closed=before.closed + expired.closed,
        )

    def _lines(self) -> list[list[int]]:
        """The streams to look into, line by line in order of name."""
        found: dict[Line, list[int]] = {}
        for stream in self._streams:
            suspects = stream % 2 == 1
            if suspects and not self._suspect_fits():
                continue
            line = self._serves(stream // 2)
            if line is not None:
                found.setdefault(line, []).append(stream)
        return [found[line] for line in sorted(found)]

    def _serves(self, lane: int) -> Line | None:
        """The line of a lane this request is for; None for every other lane."""
        tenant, queue, job_type = self._lanes.name_of(self._tx, lane)
        request = self._request
        wanted = (
            job_type in request.types
            and (request.tenants is None or tenant in request.tenants)
            and (request.queues is None or queue in request.queues)
            and (tenant, queue) not in self._paused
        )
        return (tenant, queue) if wanted else None

    def _in_order(self, streams: list[int], chunk: int) -> Iterator[Key]:
        """Jobs of one line by (prio_key, time_key, seq), merged over its lanes, as far as they may be given."""
        now = self._tx.now
        for key in heapq.merge(*(self._ready(stream, chunk) for stream in streams)):
            _, _, seq, suspect, last_attempt, deadline = key
            if suspect and not self._suspect_fits():
                continue
            if deadline is not None and deadline <= now:
                if len(self._overdue) == EXPIRED_PER_CLAIM_MAX:
                    return
                self._overdue.append(seq)
                continue
            if last_attempt and not self._starts_at_once():
                return
            yield key

    def _ready(self, stream: int, chunk: int) -> Iterator[Key]:
        """The ready jobs of one stream, read a chunk at a time and no further than asked for."""
        after: tuple[int, Instant, int] = _BEFORE_ALL
        suspects = stream % 2 == 1
        while not suspects or self._suspect_fits():
            found = _keys.decode(self._tx.value(self._tx.sql.ready_keys, (stream, *after, RECORD_FORMAT, chunk)))
            yield from found
            if len(found) < chunk:
                return
            after = found[-1][:3]
            chunk *= 2

    def _lease(self) -> list[JobRecord]:
        tx, request = self._tx, self._request
        jobs = load(tx, self._given)
        for ticket, job in enumerate(jobs, request.first_ticket):
            lease_us = request.types[job.type]
            transition.claim(job, owner=request.owner, ticket=ticket, epoch=self._epoch, lease_us=lease_us, now=tx.now)
        leased = tx.run_rows(tx.sql.lease_jobs, list(map(_leased, jobs)), tx.now, request.owner, tx.now)
        assert leased == len(self._given), f"{len(self._given)} jobs were ready, {leased} could be leased"
        return jobs

    def _expire(self) -> Ripple:
        ledger = SqlLedger(self._tx, self._lanes)
        rippling = Rippling(ledger)
        expire(ledger, rippling, self._overdue)
        ripple = rippling.run()
        ledger.flush()
        return ripple

    def _next_due(self) -> Instant | None:
        """When there is something to do again: a job of these types comes due, or a wait of any type is over."""
        times = [each for each in (self._next_ready(), self._next_wait) if each is not None]
        return min(times, default=None)

    def _next_ready(self) -> Instant | None:
        """Past a few of other types: not before the last one looked at."""
        for run_at, lane in self._dues:
            if self._serves(lane) is not None:
                return run_at
        return self._dues[-1][0] if len(self._dues) == DUE_LOOKED_AT else None

    def _starts_at_once(self) -> bool:
        return len(self._given) < self._request.slots

    def _suspect_fits(self) -> bool:
        return not self._suspect_given and self._starts_at_once()
