"""Giving out work: the order of ready jobs, and which of them may not go into a worker's buffer.

Streams of ready keys are read a few at a time, merged by order within a line, and taken in turns between lines. Only
the jobs that are given are loaded.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from itertools import islice
from operator import attrgetter
from typing import Final, TypeAlias

import msgspec

from ropewalk.backends._ledger.ripple import Rippling
from ropewalk.backends._sql.lanes import LaneBook
from ropewalk.backends._sql.ledger import SqlLedger
from ropewalk.backends._sql.outlook import Outlook
from ropewalk.backends._sql.rows import load_ready
from ropewalk.backends._sql.tx import Tx
from ropewalk.backends._sql.upkeep import catch_up, expire
from ropewalk.domain import transition
from ropewalk.domain.fairness import take_turns
from ropewalk.domain.instants import Instant, Span
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

_leased = attrgetter("seq", "rev", "attempt", "fence", "ticket", "lease_expires_at")
_expiry = attrgetter("lease_expires_at")
_keys = msgspec.json.Decoder(list[Key])
_ints = msgspec.json.Decoder(list[int])
_lines = msgspec.json.Decoder(list[Line])
_dues = msgspec.json.Decoder(list[tuple[Instant, int]])


def claim(tx: Tx, lanes: LaneBook, outlook: Outlook, request: ClaimRequest) -> Claimed:
    tx.run(tx.sql.note_started, (request.started_upto, request.owner, request.started_upto))
    take_back = request.take_back and outlook.sweep_due(tx.now)
    situation, before = Situation(tx), Ripple()
    if take_back or situation.wait_is_over:
        before = catch_up(tx, lanes, CAUGHT_UP_PER_CLAIM_MAX, take_back=take_back)
    if take_back:
        some_left = len(before.moved) >= CAUGHT_UP_PER_CLAIM_MAX
        outlook.swept(tx.now, tx.now if some_left else tx.value(tx.sql.earliest_expiry, (tx.now,)))
    if situation.something_is_due:
        tx.run(tx.sql.promote_due, (tx.now, PROMOTED_PER_CLAIM_MAX))
    if take_back or situation.wait_is_over or situation.something_is_due:
        situation = Situation(tx)
    return Claiming(tx, lanes, outlook, situation, request).run(before)


class Situation:
    """What a claim has to know beside the jobs: what is paused, and what comes due next."""

    def __init__(self, tx: Tx) -> None:
        found = tx.row(tx.sql.situation, (DUE_LOOKED_AT,))
        assert found is not None
        self._now = tx.now
        self.epoch: int = found[0]
        self.paused = frozenset(_lines.decode(found[1]))
        self.dues = _dues.decode(found[2])
        self.next_wait: Instant | None = found[3]

    @property
    def something_is_due(self) -> bool:
        return bool(self.dues) and self.dues[0][0] <= self._now

    @property
    def wait_is_over(self) -> bool:
        return self.next_wait is not None and self.next_wait <= self._now


class Claiming:
    """One claim under way."""

    def __init__(self, tx: Tx, lanes: LaneBook, outlook: Outlook, situation: Situation, request: ClaimRequest) -> None:
        self._tx = tx
        self._lanes = lanes
        self._outlook = outlook
        self._situation = situation
        self._request = request
        self._suspect_given = not request.suspect_allowed
        self._given: list[int] = []
        self._overdue: list[int] = []

    def run(self, before: Ripple) -> Claimed:
        """`before` is what happened on the way here."""
        remembered = self._outlook.streams
        if remembered is not None:
            self._choose(remembered)
        if remembered is None or len(self._given) < self._request.limit:
            self._given, self._overdue = [], []
            self._suspect_given = not self._request.suspect_allowed
            streams, took_us = self._survey()
            self._outlook.looked(streams, took_us)
            self._choose(streams)
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

    def _survey(self) -> tuple[list[int], Span]:
        found = self._tx.row(self._tx.sql.survey)
        assert found is not None
        return _ints.decode(found[0]), found[1]

    def _choose(self, streams: Sequence[int]) -> None:
        """Which jobs to give."""
        lines = self._lines(streams)
        # About as many keys as will be given, however many streams share the claim.
        chunk = max(1, self._request.limit // max(1, sum(map(len, lines))))
        in_order = [self._in_order(line, chunk) for line in lines]
        for _, _, seq, suspect, _, _ in islice(take_turns(in_order, self._request.turn), self._request.limit):
            self._given.append(seq)
            if suspect:
                self._suspect_given = True

    def _lines(self, streams: Sequence[int]) -> list[list[int]]:
        """The streams to look into, line by line in order of name."""
        found: dict[Line, list[int]] = {}
        for stream in streams:
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
            and (tenant, queue) not in self._situation.paused
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
        after = self._outlook.start_of(stream)
        suspects = stream % 2 == 1
        while not suspects or self._suspect_fits():
            found = _keys.decode(self._tx.value(self._tx.sql.ready_keys, (stream, *after, RECORD_FORMAT, chunk)))
            for key in found:
                yield key
                if not suspects:
                    self._outlook.reached(stream, key[:3])  # asked for the next: this one is taken
            if len(found) < chunk:
                return
            after = found[-1][:3]
            chunk *= 2

    def _lease(self) -> list[JobRecord]:
        tx, request = self._tx, self._request
        jobs = load_ready(tx, self._given)
        for ticket, job in enumerate(jobs, request.first_ticket):
            lease_us = request.types[job.type]
            transition.claim(
                job, owner=request.owner, ticket=ticket, epoch=self._situation.epoch, lease_us=lease_us, now=tx.now
            )
        if jobs:
            self._outlook.granted(min(filter(None, map(_expiry, jobs))))
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
        times = [each for each in (self._next_ready(), self._situation.next_wait) if each is not None]
        return min(times, default=None)

    def _next_ready(self) -> Instant | None:
        """Past a few of other types: not before the last one looked at."""
        for run_at, lane in self._situation.dues:
            if self._serves(lane) is not None:
                return run_at
        return self._situation.dues[-1][0] if len(self._situation.dues) == DUE_LOOKED_AT else None

    def _starts_at_once(self) -> bool:
        return len(self._given) < self._request.slots

    def _suspect_fits(self) -> bool:
        return not self._suspect_given and self._starts_at_once()
