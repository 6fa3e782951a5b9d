"""Maintenance for all jobs: expired leases, deadlines that have passed, retention, once-keys and pauses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from ropewalk.backends.sql import documents, limits
from ropewalk.backends.sql.damage import Rows, RowsByName, log_set_aside
from ropewalk.backends.sql.lanes import LaneBook
from ropewalk.backends.sql.statistics import count_removed
from ropewalk.backends.sql.tx import Tx
from ropewalk.backends.sql.unit_of_work import SqlUnitOfWork
from ropewalk.backends.workflow.culprit import change_each
from ropewalk.backends.workflow.propagation import Propagation
from ropewalk.domain.jobs import clock_set_back, transition
from ropewalk.domain.jobs.flags import FORGOTTEN, MAY_BE_NEEDED
from ropewalk.domain.jobs.lease import StartedTickets, TicketRange, may_take_back, merged_ranges
from ropewalk.domain.jobs.record import JobRecord
from ropewalk.domain.jobs.states import TERMINAL
from ropewalk.domain.retention import Retention, keep_for
from ropewalk.domain.time import DAY, Instant, Span
from ropewalk.domain.workflow import gate
from ropewalk.ports.store.claims import ClaimRequest
from ropewalk.ports.store.consequences import Consequences, Moved
from ropewalk.ports.store.maintenance import Pruned

SHORTENED_MAX: Final = 10
"""A sweep shortens this many times as many waits as it makes other changes: after the clock was set back, all waits
have to be shortened at once."""

_ints = msgspec.json.Decoder(list[int])
_types = Rows("lane", str)
_started = RowsByName("worker", StartedTickets)
_ranges = msgspec.json.Decoder(list[TicketRange])
_workers = Rows("worker", tuple[str, Instant])
_results = msgspec.json.Decoder(list[tuple[int, Instant]])


def sweep(tx: Tx, lanes: LaneBook, limit: int, take_back_until: Instant | None) -> Consequences:
    """Takes back expired leases, and ends jobs whose deadline has passed and waits that are over."""
    unit_of_work = SqlUnitOfWork(tx, lanes)
    propagation = Propagation(unit_of_work)
    _follow_clock(tx, unit_of_work, propagation, limit)
    if may_take_back(take_back_until, tx.now):
        _lose(tx, unit_of_work, propagation, _run_out(tx, limit))
        unit_of_work.flush()
    expire(unit_of_work, propagation, _ints.decode(tx.value(tx.sql.past_deadline, (tx.now, limit))))
    unit_of_work.flush()
    _wake(unit_of_work, propagation, _ints.decode(tx.value(tx.sql.expired_waits, (tx.now, limit))))
    consequences = propagation.run()
    unit_of_work.flush()
    return consequences


def _follow_clock(tx: Tx, unit_of_work: SqlUnitOfWork, propagation: Propagation, limit: int) -> None:
    """After the clock was set back, brings nearer the leases and waits that would end too far in the future."""
    written_ahead_from = clock_set_back.written_ahead_from(tx.now)
    for worker, beat_at in _workers.decode(tx, tx.value(tx.sql.workers_ahead, (written_ahead_from,))):
        tx.run(tx.sql.bring_leases_nearer, (worker, beat_at - tx.now, tx.now))
        tx.run(tx.sql.bring_beat_nearer, (tx.now, worker))

    def shorten(job: JobRecord) -> None:
        unit_of_work.take(job)
        if clock_set_back.shorten_wait(job, tx.now) and job.ready_at(tx.now):
            propagation.released(job)

    ahead = _ints.decode(tx.value(tx.sql.waits_ahead, (written_ahead_from, SHORTENED_MAX * limit)))
    change_each(unit_of_work, unit_of_work.load(ahead), shorten)
    unit_of_work.flush()


def catch_up(tx: Tx, lanes: LaneBook, limit: int, *, take_back: bool) -> Consequences:
    """Ends waits that are over before a claim, and takes back expired leases if the worker may do that."""
    lost = _run_out(tx, limit) if take_back else []
    over = _ints.decode(tx.value(tx.sql.expired_waits, (tx.now, limit)))
    if not lost and not over:
        return Consequences()
    unit_of_work = SqlUnitOfWork(tx, lanes)
    propagation = Propagation(unit_of_work)
    _lose(tx, unit_of_work, propagation, lost)
    _wake(unit_of_work, propagation, over)
    consequences = propagation.run()
    unit_of_work.flush()
    return consequences


def give_back(tx: Tx, lanes: LaneBook, request: ClaimRequest) -> Consequences:
    """Gives back the leases of a claim whose answer did not reach the worker: none of these jobs has started."""
    known = tx.value(tx.sql.unanswered_of, (request.owner, request.turn))
    if known is not None:
        tickets = merged_ranges(_known_ranges(known), request.unanswered)
        tx.run(tx.sql.note_unanswered, (_json(tickets), request.turn, request.owner))
    unit_of_work = SqlUnitOfWork(tx, lanes)
    propagation = Propagation(unit_of_work)
    held = _ints.decode(tx.value(tx.sql.leases_of_tickets, (request.owner, _json(request.unanswered))))
    change_each(
        unit_of_work, unit_of_work.load(held), lambda job: _lose_one(propagation, job, started=False, now=tx.now)
    )
    consequences = propagation.run()
    unit_of_work.flush()
    return consequences


def _known_ranges(stored: str) -> list[TicketRange]:
    """Decodes ticket ranges; none if their row is damaged."""
    try:
        return _ranges.decode(stored)
    except msgspec.DecodeError:  # a damaged row must not keep its worker from claiming
        return []


def expire(unit_of_work: SqlUnitOfWork, propagation: Propagation, seqs: Sequence[int]) -> None:
    """Ends waiting jobs whose deadline has passed."""

    def end(job: JobRecord) -> None:
        effects = transition.expire(job, unit_of_work.now)
        propagation.moved.append(Moved(job=job, move=effects.move))
        propagation.ended(job, effects)

    change_each(unit_of_work, unit_of_work.load(seqs), end)


def set_aside(tx: Tx, lanes: LaneBook, seqs: frozenset[int]) -> Consequences:
    """Makes dead letters of jobs with damaged rows, and does everything that follows from that (damage.py)."""
    unit_of_work = SqlUnitOfWork(tx, lanes)
    propagation = Propagation(unit_of_work)

    def end(job: JobRecord) -> None:
        effects = transition.set_aside(job, tx.now)
        propagation.moved.append(Moved(job=job, move=effects.move))
        propagation.ended(job, effects)

    damaged = [job for job in unit_of_work.load(sorted(seqs)) if job.damaged and not job.terminal]
    for job in damaged:
        log_set_aside(job.id, job.damaged)
    change_each(unit_of_work, damaged, end)
    consequences = propagation.run()
    unit_of_work.flush()
    return consequences


def _run_out(tx: Tx, limit: int) -> list[int]:
    """Returns jobs whose leases have expired."""
    return _ints.decode(tx.value(tx.sql.expired_leases, (tx.now, limit)))


def _lose(tx: Tx, unit_of_work: SqlUnitOfWork, propagation: Propagation, seqs: Sequence[int]) -> None:
    """Takes back expired leases. A job that had started counts as crashed."""
    if not seqs:
        return
    known = _started.decode(tx, tx.value(tx.sql.started_tickets))

    def lose(job: JobRecord) -> None:
        # A job that the worker had only buffered is given back and does not count as crashed. If the worker is unknown,
        # the job has to count as one that ran.
        tickets = known.get(job.owner or "")
        _lose_one(propagation, job, started=tickets is None or tickets.covers(job.ticket), now=tx.now)

    change_each(unit_of_work, unit_of_work.load(seqs), lose)


def _lose_one(propagation: Propagation, job: JobRecord, *, started: bool, now: Instant) -> None:
    effects = transition.lose(job, started=started, now=now)
    propagation.moved.append(Moved(job=job, move=effects.move))
    propagation.ended(job, effects)


def _wake(unit_of_work: SqlUnitOfWork, propagation: Propagation, seqs: Sequence[int]) -> None:
    """Ends waits that are over: a gate is given up, and a handler that waited for a signal runs again."""

    def wake(job: JobRecord) -> None:
        unit_of_work.take(job)
        effects = gate.wait_is_over(job, unit_of_work.now)
        if effects is None:
            propagation.released(job)
            return
        if job.terminal:
            propagation.moved.append(Moved(job=job, move=effects.move))
        propagation.ended(job, effects)

    change_each(unit_of_work, unit_of_work.load(seqs), wake)


def prune(tx: Tx, retention: Retention, limit: int) -> Pruned:
    """Deletes what is past its retention."""
    types = _types.decode(tx, tx.value(tx.sql.types))
    gone = _past_retention(tx, retention, types, limit)
    remove(tx, gone)
    results = 0
    if retention.results_us is not None:
        results = _forget_results(tx, types, tx.now - retention.results_us, limit)
    forgotten = tx.run(tx.sql.prune_keys, (tx.now, limit))
    tx.run(tx.sql.prune_once, (tx.now, limit))
    tx.run(tx.sql.prune_workers, (tx.now - DAY,))
    limits.prune(tx, limit)
    documents.prune(tx, limit)
    return Pruned(jobs=len(gone), results=results, keys=forgotten)


def remove(tx: Tx, seqs: Sequence[int]) -> None:
    """Deletes finished jobs and everything that is recorded about them."""
    gone = msgspec.json.encode(seqs).decode()
    sql = tx.sql
    count_removed(tx, tx.lanes, gone)
    for forget in (
        *(sql.delete_keys_of, sql.delete_attempts, sql.delete_events, sql.delete_lines, sql.delete_edges),
        *(sql.delete_scopes, sql.delete_contributions, sql.delete_steps, sql.delete_signals, sql.delete_jobs),
    ):
        tx.run(forget, (gone,))


def once(tx: Tx, tenant: str, key: str, ttl_us: Span, *, by: str | None = None) -> bool:
    """Takes a key for a while. Returns whether the caller is the first one; a caller that names itself by `by` is
    recognized when it asks again."""
    return tx.run(tx.sql.take_once, (tenant, key, by, tx.now + ttl_us, tx.now, tx.now)) == 1


def is_taken_once(tx: Tx, tenant: str, key: str) -> bool:
    """Whether somebody has taken this key."""
    return tx.row(tx.sql.is_taken_once, (tenant, key, tx.now)) is not None


def pause(tx: Tx, tenant: str, queue: str, *, paused: bool) -> None:
    """Pauses a queue, or lets it go on."""
    if tx.run(tx.sql.set_paused, (tenant, queue, int(paused))):
        tx.run(tx.sql.bump_control)


def drain(tx: Tx, owner: str) -> bool:
    """Asks a worker to drain. Returns False if it is unknown."""
    told = tx.run(tx.sql.drain_worker, (owner,)) == 1
    if told:
        tx.run(tx.sql.bump_control)
    return told


def _past_retention(tx: Tx, retention: Retention, types: Sequence[str], limit: int) -> list[int]:
    """Returns jobs that are past their retention. Each (status, type) has a retention of its own, and an index by which
    its oldest jobs are found first."""
    gone: list[int] = []
    for status in sorted(TERMINAL):
        for job_type in types:
            span = keep_for(retention, status, job_type)
            if span is not None and len(gone) < limit:
                wanted = (status.value, job_type, tx.now - span, tx.now, MAY_BE_NEEDED, limit - len(gone))
                gone += _ints.decode(tx.value(tx.sql.past_retention, wanted))
    return gone


def _forget_results(tx: Tx, types: Sequence[str], before: Instant, limit: int) -> int:
    """Deletes results that are past their retention. For each type, the time up to which this was done is
    remembered."""
    forgotten = 0
    for job_type in types:
        upto = tx.value(tx.sql.results_upto, (job_type,))
        room = limit - forgotten
        old = _results.decode(tx.value(tx.sql.old_results, (job_type, upto, before, room)))
        _forget(tx, [seq for seq, _ in old])
        seen = before if len(old) < room else old[-1][1] if old else upto
        if seen > upto:
            tx.run(tx.sql.note_forgotten, (job_type, seen))
        shared = _ints.decode(tx.value(tx.sql.old_shared_results, (job_type, before, room - len(old))))
        _forget(tx, shared)
        forgotten += len(old) + len(shared)
    return forgotten


def _forget(tx: Tx, seqs: Sequence[int]) -> None:
    """Deletes the results of these jobs."""
    if seqs:
        tx.run(tx.sql.forget_results, (FORGOTTEN, msgspec.json.encode(seqs).decode()))


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()
