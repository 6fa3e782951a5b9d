"""A claim gives out ready jobs: this module decides their order and which of them may go to a worker.

A line is the ready jobs of one tenant and queue (TenantQueue). Jobs are read a few at a time from each sublane, merged
by their order within a line, and taken from the lines in turns. A sublane whose limits leave no room is not read at
all. So a claim reads about as many jobs as it gives out.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from operator import attrgetter
from typing import Final

import msgspec

from ropewalk.backends.sql import records
from ropewalk.backends.sql.claim.cache import KEYED_FROM, ClaimCache, SingleSublane
from ropewalk.backends.sql.claim.single_sublane import claim_single_sublane
from ropewalk.backends.sql.claim.snapshot import ClaimSnapshot, Heads, claim_values, first_of_each, next_of, rank_of
from ropewalk.backends.sql.damage import DamagedJobs
from ropewalk.backends.sql.lanes import LaneBook
from ropewalk.backends.sql.limits import ClaimLimits
from ropewalk.backends.sql.maintenance import catch_up, expire, give_back
from ropewalk.backends.sql.tx import Tx
from ropewalk.backends.sql.unit_of_work import SqlUnitOfWork
from ropewalk.backends.workflow.propagation import Propagation, both
from ropewalk.domain.jobs import transition
from ropewalk.domain.jobs.lease import may_take_back
from ropewalk.domain.jobs.order import TenantQueue, first_line, take_turns
from ropewalk.domain.jobs.quarantine import Quarantine, must_start_at_once
from ropewalk.domain.jobs.record import JobRecord
from ropewalk.domain.limits.headroom import SOON_US, TypeHeadroom
from ropewalk.domain.time import Instant
from ropewalk.ports.store.claims import Claimed, ClaimRequest
from ropewalk.ports.store.consequences import Consequences

CAUGHT_UP_PER_CLAIM_MAX: Final = 100
"""A claim takes back this many expired leases, and ends this many waits, at most."""
PROMOTED_PER_CLAIM_MAX: Final = 1000
"""A claim makes this many due jobs ready at most."""
EXPIRED_PER_CLAIM_MAX: Final = 1000
"""A claim ends this many jobs at most whose deadline has passed."""
KEYS_LOOKED_AT_MAX: Final = 256
"""A look takes this many sublanes of limit keys at most; all lanes with such keys share them."""
KEYS_LOOKED_AT_MIN: Final = 16
"""A look takes at least this many sublanes of limit keys of each lane."""
LOOKS_PER_CLAIM_MAX: Final = 2
"""A claim looks at sublanes of limit keys this often, as long as it has not found enough jobs."""
READ_ONE_BY_ONE_MAX: Final = 8
"""If there are more sublanes than this, one statement reads the first jobs of all of them."""

_expiry = attrgetter("lease_expires_at")
_ints = msgspec.json.Decoder(list[int])


def claim(tx: Tx, lanes: LaneBook, cache: ClaimCache, request: ClaimRequest) -> Claimed:
    """Leases ready jobs to a worker: by one statement if possible, otherwise by reading and choosing them
    (Claiming)."""
    if cache.single is not None and (claimed := claim_single_sublane(tx, lanes, cache, request)) is not None:
        return claimed
    if tx.sql.note_started:
        tx.run(tx.sql.note_started, claim_values(request))
    before = Consequences()
    if request.unanswered:
        before = give_back(tx, lanes, request)
        cache.look_again()
    look = cache.sublanes is None
    snapshot = ClaimSnapshot.read(tx, request, look=look)
    take_back = may_take_back(request.take_back_until, tx.now) and cache.sweep_due(tx.now)
    if take_back or snapshot.wait_is_over:
        caught_up = catch_up(tx, lanes, CAUGHT_UP_PER_CLAIM_MAX, take_back=take_back)
        before = both(before, caught_up)
        if take_back:
            some_left = len(caught_up.moved) >= CAUGHT_UP_PER_CLAIM_MAX
            cache.swept(tx.now, tx.now if some_left else tx.value(tx.sql.earliest_expiry, (tx.now,)))
    if snapshot.something_is_due:
        tx.run(tx.sql.promote_due, (tx.now, PROMOTED_PER_CLAIM_MAX))
    if take_back or snapshot.wait_is_over or snapshot.something_is_due:
        snapshot = ClaimSnapshot.read(tx, request, look=look)
    return Claiming(tx, lanes, cache, snapshot, request).run(before)


class Claiming:
    """The state of one claim that reads and chooses jobs."""

    def __init__(
        self, tx: Tx, lanes: LaneBook, cache: ClaimCache, snapshot: ClaimSnapshot, request: ClaimRequest
    ) -> None:
        self._tx = tx
        self._lanes = lanes
        self._cache = cache
        self._snapshot = snapshot
        self._request = request
        self._rules = lanes.rules(tx, snapshot.control)
        self._sublanes: Sequence[int] = ()
        """The sublanes that have ready jobs, as far as this claim knows."""
        self._begin()

    def _begin(self) -> None:
        """Resets the state of one pass over the sublanes: no job is chosen yet."""
        self._quarantine = Quarantine(self._request.suspects)
        self._held_up: TenantQueue | None = None
        """The line with a job that must start at once and found no free slot; the claim ends there."""
        self._keyed: set[TenantQueue] = set()
        """The lines that have jobs with limit keys: they get a turn even if none of these jobs may be given out."""
        self._given: list[JobRecord] = []
        self._limited: list[int] = []
        self._overdue: list[int] = []
        self._seen: set[int] = set()
        self._more_keys = False
        self._room = TypeHeadroom(self._request.room) if self._request.room else None
        self._limits = ClaimLimits(self._tx, self._lanes, self._rules) if self._rules else None
        """The limits in this claim; None if the store has none."""

    def run(self, before: Consequences) -> Claimed:
        """Chooses jobs, leases them, and returns the answer. `before` contains the consequences of earlier steps of the
        claim, which the answer includes."""
        remembered = self._cache.sublanes
        if remembered is not None:
            self._sublanes = remembered
            self._choose(remembered)
        if remembered is None or (self._wants_more() and self._held_up is None):
            self._begin()
            self._look()
        self._cache.single = self._single()
        jobs = self._lease()
        if self._limits is not None:
            self._limits.write_rates()
        # This comes last, because a compensation that is made here is a job for the next claim.
        expired = self._expire() if self._overdue else Consequences()
        return Claimed(
            now=self._tx.now,
            jobs=jobs,
            moved=before.moved + expired.moved,
            next_due=self._next_due(),
            closed=before.closed + expired.closed,
            limited=self._limited,
            held_up=self._held_up,
        )

    def _look(self) -> None:
        """Chooses among all sublanes with ready jobs, but only among some of those of limit keys."""
        sublanes, took_us = self._snapshot.ready_sublanes(self._tx)
        self._cache.looked(sublanes, took_us)
        self._sublanes = sublanes
        for _ in range(LOOKS_PER_CLAIM_MAX):
            self._choose(sublanes)
            if self._held_up is not None or not self._more_keys or not self._wants_more():
                return

    def _single(self) -> SingleSublane | None:
        """Returns the sublane for the fast path of the next claim: the only one with ready jobs, if no rule kept any of
        them back."""
        if not self._tx.sql.claim_single_sublane or len(self._sublanes) != 1 or not self._given or self._rules:
            return None
        [sublane] = self._sublanes
        as_it_came = not self._overdue and not self._cache.was_held_up
        if not as_it_came or self._bounded or self._request.ignored or sublane >= KEYED_FROM or sublane % 2:
            return None
        return SingleSublane(sublane, self._given[0].lane, self._snapshot.control)

    def _with_keys(self, sublanes: Sequence[int]) -> list[int]:
        """Replaces the sublane that stands for all limit keys of a lane by some of the sublanes of these keys. They are
        read only if the limits of the lane leave room."""
        plain = [sublane for sublane in sublanes if sublane < KEYED_FROM]
        above = [sublane // KEYED_FROM for sublane in sublanes if sublane >= KEYED_FROM]
        self._more_keys = False
        if not above:
            return plain
        names = self._lanes.names_of(self._tx, above)
        known = [lane for lane in above if lane in names]
        served = {lane: line for lane in known if (line := self._snapshot.line_of(names[lane])) is not None}
        self._keyed.update(served.values())
        open_ones = list(served) if self._limits is None else self._limits.open_among(served)
        for lane in open_ones:
            most = max(KEYS_LOOKED_AT_MIN, KEYS_LOOKED_AT_MAX // len(open_ones))
            found, more = self._cache.keys_of(lane, most, self._read_keys)
            plain += found
            self._more_keys = self._more_keys or more
        return plain

    def _read_keys(self, behind: int, before: int, count: int) -> list[int]:
        return _ints.decode(self._tx.value(self._tx.sql.ready_key_sublanes, (behind, before, count)))

    def _choose(self, sublanes: Sequence[int]) -> None:
        """Chooses jobs from these sublanes until the claim is full."""
        sublanes = [sublane for sublane in self._with_keys(sublanes) if sublane not in self._seen]
        self._seen.update(sublanes)
        lines = self._lines(sublanes)
        # All sublanes together should read about as many jobs as the claim gives out.
        number = sum(map(len, lines.values()))
        chunk = max(1, self._cache.readable(self._request) // max(1, number))
        heads = self._heads(lines.values(), chunk + 1) if number > READ_ONE_BY_ONE_MAX else None
        in_order = [self._in_order(line, sublanes, chunk, heads) for line, sublanes in lines.items()]
        start = first_line(list(lines), self._request.first, self._request.turn)
        wanted = self._request.limit - len(self._given)
        headroom = self._limits.headroom if self._limits is not None and self._limits.headroom else None
        room = self._room
        for job in islice(take_turns(in_order, start), wanted):
            self._given.append(job)
            if job.crashes:
                self._quarantine.give(job)
            if room is not None:
                room.give(job.type)
            if headroom is not None and headroom.limited(lane := self._lane_of(job)):
                headroom.give(lane)
                self._limited.append(job.seq)

    def _lines(self, sublanes: Sequence[int]) -> dict[TenantQueue, list[int]]:
        """Returns the sublanes to read for each line, sorted by the names of the lines."""
        found: dict[TenantQueue, list[int]] = {line: [] for line in self._keyed}
        names = self._lanes.names_of(self._tx, {sublane // 2 for sublane in sublanes})
        for sublane in sublanes:
            suspects = sublane % 2 == 1
            if (suspects and self._quarantine.closed) or sublane // 2 not in names:
                continue
            line = self._snapshot.line_of(names[sublane // 2])
            if line is not None:
                found.setdefault(line, []).append(sublane)
        if self._limits is not None:
            self._limits.measure({sublane // 2 for of_line in found.values() for sublane in of_line})
        return {
            line: [sublane for sublane in found[line] if self._open(sublane // 2, names[sublane // 2].type)]
            for line in sorted(found)
        }

    @property
    def _bounded(self) -> bool:
        """Whether there are limits in this claim, so that a lane may have no room."""
        return self._room is not None or (self._limits is not None and bool(self._limits.headroom))

    def _open(self, lane: int, job_type: str) -> bool:
        """Whether one more job of this lane may be given out."""
        if self._room is not None and not self._room.admits(job_type):
            return False
        return self._limits is None or self._limits.headroom.admits(lane)

    def _heads(self, lines: Iterable[list[int]], count: int) -> Heads:
        """Reads the first jobs of each of many sublanes by one statement."""
        starts = [(sublane, self._cache.start_of(sublane)) for sublanes in lines for sublane in sublanes]
        return first_of_each(self._tx, starts, count)

    def _in_order(self, line: TenantQueue, sublanes: list[int], chunk: int, heads: Heads | None) -> Iterator[JobRecord]:
        """Yields the jobs of one line that may be given out, by their rank, merged from its sublanes.

        A job that must start at once, and for which no slot is free, ends the claim: if other jobs went past it, there
        might never be a free slot for it.
        """
        now, bounded, ignored = self._tx.now, self._bounded, self._request.ignored
        for job in heapq.merge(*(self._ready(sublane, chunk, heads) for sublane in sublanes), key=rank_of):
            if self._held_up is not None:
                return
            if (job.crashes and self._quarantine.closed) or (bounded and not self._open(self._lane_of(job), job.type)):
                continue
            if job.deadline is not None and job.deadline <= now:
                if len(self._overdue) == EXPIRED_PER_CLAIM_MAX:
                    return
                self._overdue.append(job.seq)
                continue
            if (ignored and job.seq in ignored) or (job.crashes and not self._quarantine.admits(job)):
                continue
            if len(self._given) >= self._request.slots and must_start_at_once(job):
                self._held_up = line
                self._cache.held_up()
                return
            yield job

    def _ready(self, sublane: int, chunk: int, heads: Heads | None) -> Iterator[JobRecord]:
        """Yields the ready jobs of one sublane. It reads them in chunks, and no more chunks than its caller needs."""
        lane, suspects = divmod(sublane, 2)
        tenant, queue, job_type, _ = self._lanes.names_of(self._tx, [lane])[lane]
        bounded, remembers = self._bounded, self._cache.remembers and not suspects
        if heads is None:
            if self._room is not None:
                chunk = self._room.most(job_type, chunk)
            found, size = next_of(self._tx, sublane, self._cache.start_of(sublane), chunk), chunk
        else:
            found, size = heads.get(sublane, []), chunk + 1
        while found and not (suspects and self._quarantine.closed):
            for job in found:
                if job.type != job_type or job.queue != queue or job.tenant != tenant:
                    raise DamagedJobs(frozenset({job.seq}))
                yield job
                if bounded and not self._open(lane, job.type):
                    return
                if remembers:
                    self._cache.reached(sublane, rank_of(job))  # The caller asks for the next job: it took this one.
            if len(found) < size:
                return
            found, size, chunk = next_of(self._tx, sublane, rank_of(found[-1]), chunk), chunk, 2 * chunk

    def _lease(self) -> list[JobRecord]:
        """Leases the chosen jobs."""
        tx, request, jobs, epoch = self._tx, self._request, self._given, self._snapshot.epoch
        first_ticket, leases = request.first_ticket, request.types
        transition.claim_all(jobs, request.owner, first_ticket=first_ticket, epoch=epoch, leases=leases, now=tx.now)
        if jobs:
            self._cache.granted(min(filter(None, map(_expiry, jobs))))
        records.lease(tx, jobs, owner=request.owner, epoch=epoch)
        return jobs

    def _expire(self) -> Consequences:
        unit_of_work = SqlUnitOfWork(self._tx, self._lanes)
        propagation = Propagation(unit_of_work)
        expire(unit_of_work, propagation, self._overdue)
        consequences = propagation.run()
        unit_of_work.flush()
        return consequences

    def _next_due(self) -> Instant | None:
        """Returns when a claim will have something to do again: a job of these types becomes due, a limit has room
        again, there are more sublanes to read, or the wait of any job is over."""
        unseen = self._tx.now + SOON_US if self._more_keys and self._wants_more() else None
        next_ready = self._snapshot.next_ready(lambda dues: self._lanes.names_of(self._tx, dues))
        next_wait = self._snapshot.next_wait
        if self._tx.passed_over and self._snapshot.wait_is_over:
            next_wait = None  # The job of this wait was passed over: another claim at once is no use.
        room_at = None if self._limits is None else self._limits.headroom.room_at()
        times = (next_ready, room_at, unseen, next_wait)
        return min((each for each in times if each is not None), default=None)

    def _lane_of(self, job: JobRecord) -> int:
        return self._lanes.id_of(self._tx, job.lane)

    def _wants_more(self) -> bool:
        return len(self._given) < self._request.limit
