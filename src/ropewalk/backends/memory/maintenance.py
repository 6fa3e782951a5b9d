"""Maintenance for all jobs: expired leases, deadlines and waits that are over, postponed work, retention, deletion and
once-keys."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import islice

from msgspec import structs

from ropewalk.backends.memory.tables import Tables
from ropewalk.backends.memory.unit_of_work import Change
from ropewalk.domain.jobs import clock_set_back, transition
from ropewalk.domain.jobs.flags import CHAINED, MAY_BE_NEEDED, OWNS_SCOPE
from ropewalk.domain.jobs.lease import TicketRange, may_take_back
from ropewalk.domain.jobs.record import JobRecord
from ropewalk.domain.jobs.transition import Effects
from ropewalk.domain.retention import Retention
from ropewalk.domain.time import DAY, Instant, Span
from ropewalk.domain.workflow import gate
from ropewalk.domain.workflow.dependency import ParentKind
from ropewalk.ports.store.consequences import Consequences
from ropewalk.ports.store.maintenance import Pruned
from ropewalk.ports.store.operations import Deletion


def delete(tables: Tables, tenant: str, ids: Sequence[str]) -> dict[str, Deletion]:
    """Deletes finished jobs that nothing needs any more."""
    together = [job.seq for each in ids if (job := tables.find(tenant, each)) is not None]
    return {each: _delete(tables, tables.find(tenant, each), frozenset(together)) for each in dict.fromkeys(ids)}


def in_use(tables: Tables, job: JobRecord, together: Collection[int] = ()) -> bool:
    """Whether a finished job is still needed: something that was queued under it is open, or a job that is neither
    finished nor in `together` depends on it."""
    if job.flags & OWNS_SCOPE and tables.groups.is_open(job.seq):
        return True
    return bool(job.flags & MAY_BE_NEEDED) and any(
        seq not in together and not tables.jobs[seq].terminal for seq in _dependants(tables, job)
    )


def _dependants(tables: Tables, job: JobRecord) -> Iterator[int]:
    """Yields the jobs that depend on a job or, if it is a later member of a chain, on its chain."""
    yield from tables.edges.dependants(job.seq)
    if job.flags & CHAINED and job.chain_index and job.scope_id is not None:
        yield from tables.edges.dependants(job.scope_id, (ParentKind.CHAIN,))


def _delete(tables: Tables, job: JobRecord | None, together: Collection[int]) -> Deletion:
    if job is None:
        return Deletion.NOT_FOUND
    if not job.terminal:
        return Deletion.NOT_TERMINAL
    if in_use(tables, job, together):
        return Deletion.IN_USE
    tables.remove(job)
    return Deletion.DELETED


def sweep(tables: Tables, limit: int, now: Instant, take_back_until: Instant | None) -> Consequences:
    """Takes back expired leases, and ends jobs whose deadline has passed and waits that are over."""
    change = Change(tables, now)
    _follow_clock(tables, change, now)
    if may_take_back(take_back_until, now):
        _take_back(tables, tables.leases.run_out(now, limit), change)
    _end_each(tables.lanes.past_deadline, transition.expire, limit, change)
    _end_each(tables.lanes.past_wait, gate.wait_is_over, limit, change)
    return change.end()


def _follow_clock(tables: Tables, change: Change, now: Instant) -> None:
    """After the clock was set back, brings nearer the leases and waits that would end too far in the future."""
    for owner, worker in tables.workers.items():
        ahead_us = clock_set_back.ahead_by(worker.card.beat_at, now)
        if not ahead_us:
            continue
        worker.card = structs.replace(worker.card, beat_at=now)
        for job in tables.leases.of(owner):
            if job.lease_expires_at is not None and job.lease_expires_at > now + ahead_us:
                job.lease_expires_at -= ahead_us
                tables.leases.changed(job)
    for job in tables.lanes.began_after(clock_set_back.written_ahead_from(now)):
        change.unit_of_work.take(job)
        if clock_set_back.shorten_wait(job, now) and job.ready_at(now):
            change.propagation.released(job)


def catch_up(tables: Tables, limit: int, now: Instant, *, take_back: bool) -> Consequences:
    """Ends waits that are over before a claim, and takes back expired leases if the worker may do that."""
    over = tables.leases.run_out(now, limit) if take_back else []
    if not over and tables.lanes.past_wait(now) is None:
        return Consequences()
    change = Change(tables, now)
    _take_back(tables, over, change)
    _end_each(tables.lanes.past_wait, gate.wait_is_over, limit, change)
    return change.end()


def give_back(tables: Tables, owner: str, tickets: Sequence[TicketRange], now: Instant) -> Consequences:
    """Gives back the leases of a claim whose answer did not reach the worker: none of these jobs has started."""
    change = Change(tables, now)
    for job in tables.leases.of(owner):
        if any(job.ticket in each for each in tickets):
            change.unit_of_work.take(job)
            change.moved(job, transition.lose(job, started=False, now=now))
    return change.end()


def cascade(tables: Tables, limit: int, now: Instant) -> Consequences:
    """Continues postponed work."""
    left_over = [tables.postponed.popleft() for _ in range(min(limit, len(tables.postponed)))]
    consequences = Change(tables, now, left_over=left_over, budget=limit).end()
    return structs.replace(consequences, more=bool(tables.postponed))


def prune(tables: Tables, retention: Retention, limit: int, now: Instant) -> Pruned:
    """Deletes what is past its retention."""
    over = (
        job
        for job in tables.finished.past_retention(retention, now)
        if not tables.keys.protects(job, now) and not in_use(tables, job)
    )
    gone = list(islice(over, limit))
    for job in gone:
        tables.remove(job)
    results = 0
    if retention.results_us is not None:
        old = (job for job in tables.finished.old_results(now - retention.results_us) if not in_use(tables, job))
        forgotten = list(islice(old, limit))
        tables.finished.forget_results(forgotten)
        results = len(forgotten)
    keys = tables.keys.prune(now, limit)
    for name in [name for name, (until, _) in tables.once.items() if until <= now]:
        del tables.once[name]
    for owner in [owner for owner, worker in tables.workers.items() if worker.card.beat_at + DAY <= now]:
        del tables.workers[owner]
    tables.limits.prune(now)
    tables.documents.prune(now)
    return Pruned(jobs=len(gone), results=results, keys=keys)


def once(tables: Tables, tenant: str, key: str, ttl_us: Span, now: Instant, *, by: str | None = None) -> bool:
    """Takes a key for a while. Returns whether the caller is the first one; a caller that names itself by `by` is
    recognized when it asks again."""
    until, first = tables.once.get((tenant, key), (now, None))
    if until > now:
        return by is not None and by == first
    tables.once[tenant, key] = now + ttl_us, by
    return True


def is_taken_once(tables: Tables, tenant: str, key: str, now: Instant) -> bool:
    return tables.once.get((tenant, key), (now, None))[0] > now


def _take_back(tables: Tables, over: list[JobRecord], change: Change) -> None:
    for job in over:
        started = _was_started(tables, job)
        change.unit_of_work.take(job)
        change.moved(job, transition.lose(job, started=started, now=change.now))


def _end_each(
    next_over: Callable[[Instant], JobRecord | None],
    end: Callable[[JobRecord, Instant], Effects | None],
    limit: int,
    change: Change,
) -> None:
    """Ends waiting jobs whose time is over."""
    for _ in range(limit):
        job = next_over(change.now)
        if job is None:
            return
        change.unit_of_work.take(job)
        effects = end(job, change.now)
        if effects is None:
            change.propagation.released(job)
        elif job.terminal:
            change.moved(job, effects)
        else:
            change.propagation.ended(job, effects)


def _was_started(tables: Tables, job: JobRecord) -> bool:
    """Whether the worker had started this job. A job that it had only buffered does not count as crashed; if the worker
    is unknown, the job has to count as one that ran."""
    worker = None if job.owner is None else tables.workers.get(job.owner)
    return worker is None or worker.started.covers(job.ticket)
