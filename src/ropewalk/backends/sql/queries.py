"""Looking without touching, on a connection of its own: a read never waits for a writer, nor a writer for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from ropewalk.backends.sql import records
from ropewalk.backends.sql.rows import load
from ropewalk.backends.sql.search import Query
from ropewalk.backends.sql.tx import Tx
from ropewalk.domain.jobs.record import AttemptRecord, EventRecord, JobRecord
from ropewalk.domain.jobs.states import State
from ropewalk.domain.limits.fleet_limit import LaneName
from ropewalk.domain.search import Filter, Order, decode_cursor, encode_cursor, position_of
from ropewalk.domain.time import Instant
from ropewalk.ports.store.messages import Backlog, Page, QueueInfo, Snapshot, Trail, WorkerCard

AHEAD_MAX: Final = 10_000
BACKLOG_MAX: Final = 100_000
"""of one tenant, queue and type"""

_ints = msgspec.json.Decoder(list[int])
_names = msgspec.json.Decoder(list[str])
_counts = msgspec.json.Decoder(list[tuple[str, State, int, Instant]])
_backlog = msgspec.json.Decoder(list[tuple[str, str, str, int, Instant]])
_attempts = msgspec.json.Decoder(list[AttemptRecord])
_events = msgspec.json.Decoder(list[EventRecord])
_workers = msgspec.json.Decoder(list[WorkerCard])


def get(tx: Tx, tenant: str, ids: Sequence[str]) -> Snapshot:
    return Snapshot(now=tx.now, jobs={job.id: job for job in records.find_all(tx, tenant, dict.fromkeys(ids))})


def search(tx: Tx, tenant: str, wanted: Filter, *, order: Order, cursor: str | None, limit: int) -> Page:
    after = None if cursor is None else decode_cursor(cursor, order)
    query = Query(tx.sql, tenant, wanted, tx.now)
    found = _ints.decode(tx.value(query.page(order, after, limit + 1), query.values))
    more = len(found) > limit
    jobs = load(tx, found[:limit])
    next_cursor = encode_cursor(order, position_of(jobs[-1], order)) if more and jobs else None
    return Page(now=tx.now, jobs=jobs, next_cursor=next_cursor)


def count(tx: Tx, tenant: str, wanted: Filter) -> int:
    query = Query(tx.sql, tenant, wanted, tx.now)
    found: int = tx.value(query.count(), query.values)
    return found


def trail(tx: Tx, tenant: str, job_id: str) -> Trail | None:
    job = records.find(tx, tenant, job_id)
    if job is None:
        return None
    attempts = _attempts.decode(tx.value(tx.sql.attempts_of, (job.seq,)))
    return Trail(now=tx.now, job=job, attempts=attempts, events=_events.decode(tx.value(tx.sql.events_of, (job.seq,))))


def queues(tx: Tx, tenant: str) -> list[QueueInfo]:
    counts: dict[str, dict[State, int]] = {}
    oldest: dict[str, Instant] = {}
    for queue, state, jobs, run_at in _counts.decode(tx.value(tx.sql.live_counts, (tenant, tx.now))):
        counts.setdefault(queue, {})[state] = jobs
        if state is State.SCHEDULED:
            oldest[queue] = run_at
    paused = set(_names.decode(tx.value(tx.sql.paused_queues, (tenant,))))
    return [
        QueueInfo(name=name, paused=name in paused, counts=counts.get(name, {}), oldest_ready_at=oldest.get(name))
        for name in sorted(counts.keys() | paused)
    ]


def backlog(tx: Tx) -> list[Backlog]:
    ready: dict[LaneName, tuple[int, Instant]] = {}
    for tenant, queue, job_type, jobs, oldest in _backlog.decode(tx.value(tx.sql.backlog, (tx.now, BACKLOG_MAX))):
        lane = LaneName(tenant, queue, job_type, "")
        count, first = ready.get(lane, (0, oldest))
        ready[lane] = count + jobs, min(first, oldest)
    return [Backlog(lane=lane, ready=count, oldest_ready_at=oldest) for lane, (count, oldest) in sorted(ready.items())]


def ahead_of(tx: Tx, job: JobRecord) -> int:
    rank = (job.prio_key, job.time_key, job.seq)
    ahead: int = tx.value(tx.sql.ahead_of, (job.tenant, job.queue, *rank, tx.now, AHEAD_MAX))
    return ahead


def workers(tx: Tx) -> list[WorkerCard]:
    return _workers.decode(tx.value(tx.sql.workers))


def marks(tx: Tx) -> tuple[int, int]:
    found = tx.row(tx.sql.marks)
    assert found is not None
    return found[0], found[1]
