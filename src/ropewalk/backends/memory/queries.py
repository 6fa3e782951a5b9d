"""The verbs that only read. Each is defined by a scan of a tenant's jobs, and that is how this store does it."""

from __future__ import annotations

import heapq
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Final

from msgspec import structs

from ropewalk.backends.memory import workflows
from ropewalk.backends.memory.tables import Tables, copied, without_bytes
from ropewalk.backends.workflow.scopes import is_whole_group
from ropewalk.domain.jobs.record import JobRecord
from ropewalk.domain.jobs.states import State, Status
from ropewalk.domain.limits.fleet_limit import LaneName
from ropewalk.domain.search import Filter, Order, Position, decode_cursor, encode_cursor, matches, position_of
from ropewalk.domain.time import Instant
from ropewalk.domain.workflow.dependency import Edge, ParentKind
from ropewalk.domain.workflow.group_value import KEPT_ONE_BY_ONE
from ropewalk.ports.runtime import Runtime
from ropewalk.ports.store.diagnosis import Backlog
from ropewalk.ports.store.leases import HeldJobs, WorkerCard
from ropewalk.ports.store.reading import Page, QueueInfo, Snapshot, StoredHistory
from ropewalk.ports.store.workflows import Dependency

AHEAD_MAX: Final = 10_000
BACKLOG_MAX: Final = 100_000
"""The backlog of one tenant, queue and type is counted up to this number."""


class MemoryReading:
    """The verbs that only read. Each runs one of the functions below under the lock of the store."""

    _runtime: Runtime
    _tables: Tables
    _lock: threading.Lock

    async def get(self, tenant: str, ids: Sequence[str]) -> Snapshot:
        with self._lock:
            jobs = {each: copied(job) for each in ids if (job := self._tables.find(tenant, each)) is not None}
            return Snapshot(now=self._runtime.now(), jobs=jobs)

    async def search(self, tenant: str, wanted: Filter, *, order: Order, cursor: str | None, limit: int) -> Page:
        with self._lock:
            now = self._runtime.now()
            return search(self._tables, tenant, wanted, order=order, cursor=cursor, limit=limit, now=now)

    async def count(self, tenant: str, wanted: Filter, *, limit: int | None = None) -> int:
        with self._lock:
            return count(self._tables, tenant, wanted, limit, self._runtime.now())

    async def history(self, tenant: str, job_id: str) -> StoredHistory | None:
        with self._lock:
            return history(self._tables, tenant, job_id, self._runtime.now())

    async def queues(self, tenant: str) -> list[QueueInfo]:
        with self._lock:
            return queues(self._tables, tenant, self._runtime.now())

    async def backlog(self) -> list[Backlog]:
        with self._lock:
            return backlog(self._tables, self._runtime.now())

    async def damage_of(self, job: JobRecord) -> Sequence[str]:
        return job.damaged

    async def ahead_of(self, job: JobRecord) -> int:
        with self._lock:
            return ahead_of(self._tables, job, self._runtime.now())

    async def workers(self) -> list[WorkerCard]:
        with self._lock:
            return workers(self._tables)

    async def held(self, owner: str) -> HeldJobs:
        with self._lock:
            return held(self._tables, owner, self._runtime.now())


def everything(tables: Tables) -> list[JobRecord]:
    """Returns copies of all jobs, in the order of their submission."""
    return [copied(tables.jobs[seq]) for seq in sorted(tables.jobs)]


def search(
    tables: Tables, tenant: str, wanted: Filter, *, order: Order, cursor: str | None, limit: int, now: Instant
) -> Page:
    after = None if cursor is None else decode_cursor(cursor, order)
    found = (
        job
        for job in tables.tenants.get(tenant, {}).values()
        if _comes_after(position_of(job, order), after, order) and matches(job, wanted, now)
    )
    page = _first(found, order, limit + 1)
    more = len(page) > limit
    page = page[:limit]
    next_cursor = encode_cursor(order, position_of(page[-1], order)) if more and page else None
    return Page(now=now, jobs=[copied(job) for job in page], next_cursor=next_cursor)


def count(tables: Tables, tenant: str, wanted: Filter, limit: int | None, now: Instant) -> int:
    found = (1 for job in tables.tenants.get(tenant, {}).values() if matches(job, wanted, now))
    return sum(islice(found, limit))


def history(tables: Tables, tenant: str, job_id: str, now: Instant) -> StoredHistory | None:
    job = tables.find(tenant, job_id)
    if job is None:
        return None
    attempts = list(tables.attempts.get(job.seq, ()))
    return StoredHistory(now=now, job=copied(job), attempts=attempts, events=list(tables.events.get(job.seq, ())))


def chain(tables: Tables, tenant: str, job_id: str, last: int | None) -> list[JobRecord]:
    job = tables.find(tenant, job_id)
    if job is not None and job.chain_id is None:
        return [copied(job)]
    chain_id = job_id if job is None else job.chain_id or job.id
    members = tables.continuations.get((tenant, chain_id), [])
    if last is not None and last <= len(members):
        return [copied(each) for each in members[-last:]]
    first = tables.find(tenant, chain_id)
    return [copied(each) for each in (members if first is None else [first, *members])]


def dependencies(tables: Tables, seq: int) -> list[Dependency]:
    return [_dependency(tables, edge) for edge in tables.edges.of_children([seq])]


def _dependency(tables: Tables, edge: Edge) -> Dependency:
    job = _parent(tables, edge)
    if job is None or not is_whole_group(edge, job):
        return Dependency(edge=edge, job=job)
    group = workflows.groups(tables, job.tenant, [job.id]).get(job.id)
    one_by_one = group is not None and group.value.reducer in KEPT_ONE_BY_ONE
    kept = workflows.contributions(tables, job.tenant, job.id) if one_by_one else ()
    return Dependency(edge=edge, job=job, group=group, contributions=tuple(kept))


def queues(tables: Tables, tenant: str, now: Instant) -> list[QueueInfo]:
    counts: dict[str, Counter[State]] = {}
    oldest: dict[str, Instant] = {}
    for job in live(tables, tenant):
        counts.setdefault(job.queue, Counter())[job.state_at(now)] += 1
        if job.ready_at(now):
            oldest[job.queue] = min(job.run_at, oldest.get(job.queue, job.run_at))
    paused = {queue for owner, queue in tables.paused if owner == tenant}
    return [
        QueueInfo(name=name, paused=name in paused, counts=dict(counts.get(name, {})), oldest_ready_at=oldest.get(name))
        for name in sorted(counts.keys() | paused)
    ]


def backlog(tables: Tables, now: Instant) -> list[Backlog]:
    ready: dict[LaneName, list[Instant]] = {}
    for lane in tables.lanes.everything():
        counted = islice((job.run_at for job in lane if job.ready_at(now)), BACKLOG_MAX)
        ready.setdefault(lane.name.above, []).extend(counted)
    return [
        Backlog(lane=lane, ready=len(since), oldest_ready_at=min(since))
        for lane, since in sorted(ready.items())
        if since
    ]


def workers(tables: Tables) -> list[WorkerCard]:
    held = Counter(job.owner for job in tables.leases)
    return [structs.replace(worker.card, held=held[owner]) for owner, worker in tables.workers.items()]


def held(tables: Tables, owner: str, now: Instant) -> HeldJobs:
    jobs = [without_bytes(job) for job in tables.leases.of(owner)]
    worker = tables.workers.get(owner)
    card = None if worker is None else structs.replace(worker.card, held=len(jobs))
    return HeldJobs(now=now, card=card, jobs=jobs)


def tenants_with(tables: Tables, ended: Status, types: Sequence[str]) -> list[str]:
    return sorted({job.tenant for job in tables.jobs.values() if job.status is ended and job.type in types})


def live(tables: Tables, tenant: str) -> Iterator[JobRecord]:
    """Yields all jobs of a tenant that have not finished."""
    yield from tables.lanes.waiting(tenant)
    yield from (job for job in tables.leases if job.tenant == tenant)


def ahead_of(tables: Tables, job: JobRecord, now: Instant) -> int:
    mine = _rank(job)
    before = (
        other
        for other in tables.lanes.waiting(job.tenant)
        if other.queue == job.queue and other.ready_at(now) and _rank(other) < mine
    )
    return sum(1 for _ in islice(before, AHEAD_MAX))


def _parent(tables: Tables, edge: Edge) -> JobRecord | None:
    """Returns the job at the other end of an edge: for a chain, its last member."""
    if edge.kind is ParentKind.MISSING:
        return None
    job = tables.jobs.get(edge.parent)
    if edge.kind is ParentKind.CHAIN:
        job = next(reversed(tables.continuations.get((tables.jobs[edge.seq].tenant, edge.parent_id), [])), job)
    return None if job is None else copied(job)


def _comes_after(position: Position, cursor: Position | None, order: Order) -> bool:
    """Whether a job comes after the cursor in this order."""
    if cursor is None:
        return True
    return position > cursor if order is Order.CREATED_ASC else position < cursor


def _first(found: Iterable[JobRecord], order: Order, limit: int) -> list[JobRecord]:
    """Returns the first jobs in this order. They are stored in the order of their submission, so only the other orders
    have to read all of them."""
    if order is Order.CREATED_ASC:
        return list(islice(found, limit))
    return heapq.nlargest(limit, found, key=lambda job: position_of(job, order))


def _rank(job: JobRecord) -> tuple[int, Instant, int]:
    return job.prio_key, job.time_key, job.seq
