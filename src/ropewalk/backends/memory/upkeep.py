"""What is done for all: leases that ran out, deadlines that passed, retention."""

from __future__ import annotations

from itertools import islice

from ropewalk.backends.memory.tables import Tables, copied
from ropewalk.domain import transition
from ropewalk.domain.instants import DAY, Instant, Span
from ropewalk.domain.job import JobRecord
from ropewalk.domain.retention import Retention
from ropewalk.ports.exchange import Moved, Pruned


def sweep(tables: Tables, limit: int, now: Instant) -> list[Moved]:
    return take_back(tables, limit, now) + _expire(tables, limit, now)


def take_back(tables: Tables, limit: int, now: Instant) -> list[Moved]:
    """Leases that ran out."""
    moved: list[Moved] = []
    for job in tables.leases.run_out(now, limit):
        started = _was_started(tables, job)
        tables.take_up(job)
        effects = transition.lose(job, started=started, now=now)
        tables.write(job, effects, now)
        moved.append(Moved(job=copied(job), move=effects.move))
    return moved


def prune(tables: Tables, retention: Retention, limit: int, now: Instant) -> Pruned:
    over = (job for job in tables.finished.past_retention(retention, now) if not tables.keys.protects(job, now))
    gone = list(islice(over, limit))
    for job in gone:
        tables.remove(job)
    results = 0
    if retention.results_us is not None:
        results = tables.finished.forget_results(now - retention.results_us, limit)
    keys = tables.keys.prune(now, limit)
    for name in [name for name, until in tables.once.items() if until <= now]:
        del tables.once[name]
    for owner in [owner for owner, worker in tables.workers.items() if worker.card.beat_at + DAY <= now]:
        del tables.workers[owner]
    return Pruned(jobs=len(gone), results=results, keys=keys)


def once(tables: Tables, tenant: str, key: str, ttl_us: Span, now: Instant) -> bool:
    until = tables.once.get((tenant, key))
    if until is not None and until > now:
        return False
    tables.once[tenant, key] = now + ttl_us
    return True


def _expire(tables: Tables, limit: int, now: Instant) -> list[Moved]:
    """Waiting jobs whose deadline passed."""
    moved: list[Moved] = []
    while len(moved) < limit and (job := tables.lanes.past_deadline(now)) is not None:
        tables.take_up(job)
        effects = transition.expire(job, now)
        tables.write(job, effects, now)
        moved.append(Moved(job=copied(job), move=effects.move))
    return moved


def _was_started(tables: Tables, job: JobRecord) -> bool:
    """A job a living worker had only buffered goes back unharmed; of an unknown worker we must assume the worst."""
    worker = None if job.owner is None else tables.workers.get(job.owner)
    return worker is None or job.ticket <= worker.started_upto
