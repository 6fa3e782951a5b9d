"""A claim gives out ready jobs: this module decides their order and which of them may go to a worker."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final, TypeAlias

from ropewalk.backends.memory.lanes import Entry, JobHeap, Lane
from ropewalk.backends.memory.maintenance import catch_up, give_back
from ropewalk.backends.memory.tables import Tables, copied
from ropewalk.backends.memory.unit_of_work import Change
from ropewalk.backends.workflow.propagation import both
from ropewalk.domain.jobs import transition
from ropewalk.domain.jobs.lease import StartedTickets, may_take_back, merged_ranges
from ropewalk.domain.jobs.order import TenantQueue, first_line, take_turns
from ropewalk.domain.jobs.quarantine import Quarantine, must_start_at_once
from ropewalk.domain.jobs.record import JobRecord
from ropewalk.domain.jobs.transition import Effects
from ropewalk.domain.limits.fleet_limit import LaneName
from ropewalk.domain.limits.headroom import SOON_US, HeadroomByLane, TypeHeadroom
from ropewalk.domain.time import Instant
from ropewalk.ports.store.claims import Claimed, ClaimRequest
from ropewalk.ports.store.consequences import Consequences

CAUGHT_UP_PER_CLAIM_MAX: Final = 100
KEYED_LANES_MAX: Final = 256
"""A claim reads this many lanes of limit keys at most."""

Head: TypeAlias = tuple[Entry, JobHeap, Lane]
"""The first entry of a heap, the heap, and its lane. Entries are unique, so that nothing else is compared."""


def claim(tables: Tables, request: ClaimRequest, now: Instant) -> Claimed:
    """Leases ready jobs to a worker."""
    _note_started(tables, request)
    given_back = give_back(tables, request.owner, request.unanswered, now) if request.unanswered else Consequences()
    before = catch_up(tables, CAUGHT_UP_PER_CLAIM_MAX, now, take_back=may_take_back(request.take_back_until, now))
    return Claiming(tables, request, now).run(both(given_back, before))


def _note_started(tables: Tables, request: ClaimRequest) -> None:
    worker = tables.workers.get(request.owner)
    if worker is None or worker.turn > request.turn:
        return
    unanswered = merged_ranges(worker.started.unanswered, request.unanswered)
    upto = max(worker.started.upto, request.started_upto)
    worker.started, worker.turn = StartedTickets(upto, frozenset(request.unstarted), unanswered), request.turn


class Claiming:
    """The state of one claim."""

    def __init__(self, tables: Tables, request: ClaimRequest, now: Instant) -> None:
        self._tables = tables
        self._request = request
        self._now = now
        self._given: list[JobRecord] = []
        self._quarantine = Quarantine(request.suspects)
        self._held_up: TenantQueue | None = None
        """The line with a job that must start at once and found no free slot; the claim ends there."""
        self._expired: list[tuple[JobRecord, Effects]] = []
        self._next_due: Instant | None = None
        self._headroom: HeadroomByLane[LaneName] = HeadroomByLane(now)
        self._limited: list[int] = []
        self._more_keys = False
        self._room = TypeHeadroom(request.room) if request.room else None
        self._passed: list[JobRecord] = []
        """Jobs that the worker declined before: they are put back when the claim ends."""

    def run(self, before: Consequences) -> Claimed:
        """Chooses and leases jobs. `before` contains the consequences of earlier steps of the claim, which the answer
        includes."""
        met, request = dict(self._lines()), self._request
        self._headroom = self._tables.limits.headroom(
            (lane.name for lanes in met.values() for lane in lanes), self._now
        )
        lines = [self._in_order(line, lanes) for line, lanes in met.items()]
        for job in islice(take_turns(lines, first_line(list(met), request.first, request.turn)), request.limit):
            self._give(job)
        for job in self._passed:
            self._tables.lanes.add(job, self._now)
        self._tables.limits.keep_rates(self._headroom)
        self._saw_due(self._tables.lanes.next_wait())
        self._saw_due(self._headroom.room_at())
        if self._more_keys and len(self._given) < self._request.limit:
            self._saw_due(self._now + SOON_US)
        # This comes last, because a compensation that is made here is a job for the next claim.
        after = self._end_expired() if self._expired else Consequences()
        return Claimed(
            now=self._now,
            jobs=self._given,
            moved=before.moved + after.moved,
            next_due=self._next_due,
            closed=before.closed + after.closed,
            limited=self._limited,
            held_up=self._held_up,
        )

    def _lines(self) -> Iterator[tuple[TenantQueue, list[Lane]]]:
        """Yields the lines and their lanes to read. Only a line with waiting jobs takes a turn."""
        self._more_keys, by_line = self._tables.lanes.serving(self._request.types, self._is_open, KEYED_LANES_MAX)
        for line, lanes in sorted(by_line.items()):
            for lane in lanes:
                self._saw_due(lane.promote(self._now))
            waiting = [lane for lane in lanes if self._heads([lane])]
            if waiting:
                yield line, waiting

    def _is_open(self, line: TenantQueue) -> bool:
        """Whether this request asks for the jobs of a line that is not paused."""
        tenant, queue = line
        asked = self._request
        return (
            (asked.tenants is None or tenant in asked.tenants)
            and (asked.queues is None or queue in asked.queues)
            and line not in self._tables.paused
        )

    def _saw_due(self, due: Instant | None) -> None:
        """Notes when a claim may have something to do again."""
        if due is not None and (self._next_due is None or due < self._next_due):
            self._next_due = due

    def _heads(self, lanes: Sequence[Lane]) -> list[Head]:
        """Returns the first entry of each heap of these lanes. Suspects are left out if no more of them may run."""
        heaps = [(lane.ready, lane) for lane in lanes]
        if not self._quarantine.closed:
            heaps += [(lane.suspects, lane) for lane in lanes]
        return [(top, heap, lane) for heap, lane in heaps if (top := heap.peek()) is not None]

    def _in_order(self, line: TenantQueue, lanes: Sequence[Lane]) -> Iterator[JobRecord]:
        """Yields the jobs of one line that may be given out, by (prio_key, time_key, seq), merged from its lanes.

        A job that must start at once, and for which no slot is free, ends the claim: if other jobs went past it, there
        might never be a free slot for it.
        """
        heads = self._heads(lanes)
        heapq.heapify(heads)
        admits = self._admits if self._headroom or self._room is not None else None
        ignored = self._request.ignored
        while heads and self._held_up is None:
            (_, _, _, _, job), heap, lane = heads[0]
            if (job.suspect and self._quarantine.closed) or (admits is not None and not admits(lane.name)):
                heapq.heappop(heads)
                continue
            passed = job.seq in ignored
            overdue = job.deadline is not None and job.deadline <= self._now
            if not overdue and not passed:
                if job.suspect and not self._quarantine.admits(job):
                    heapq.heappop(heads)
                    continue
                if len(self._given) >= self._request.slots and must_start_at_once(job):
                    self._held_up = line
                    return
            self._tables.lanes.pop(lane, heap, job)
            if overdue:
                self._expired.append((job, transition.expire(job, self._now)))
            elif passed:
                self._passed.append(job)
            else:
                yield job
            following = heap.peek()
            if following is None:
                heapq.heappop(heads)
            else:
                heapq.heapreplace(heads, (following, heap, lane))

    def _admits(self, lane: LaneName) -> bool:
        return self._headroom.admits(lane) and (self._room is None or self._room.admits(lane.type))

    def _give(self, job: JobRecord) -> None:
        request = self._request
        if self._room is not None:
            self._room.give(job.type)
        if job.suspect:
            self._quarantine.give(job)
        transition.claim(
            job,
            owner=request.owner,
            ticket=request.first_ticket + len(self._given),
            epoch=self._tables.epoch,
            lease_us=request.types[job.type],
            now=self._now,
        )
        self._tables.leases.add(job)
        if self._headroom and self._headroom.limited(job.lane):
            self._headroom.give(job.lane)
            self._limited.append(job.seq)
        self._given.append(copied(job))

    def _end_expired(self) -> Consequences:
        """Ends the jobs whose deadline has passed."""
        change = Change(self._tables, self._now)
        for job, effects in self._expired:
            change.unit_of_work.took(job)
            change.moved(job, effects)
        return change.end()
