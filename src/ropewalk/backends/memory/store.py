"""The verbs of the store in memory. Each is one change under one lock, which one function makes in the module it names.

    submission   jobs come in                    operations   people change and end them
    claim        workers get them                queries      everybody reads them
    leases       workers keep and settle them    maintenance  lost leases, deadlines, waits, retention
    steps        they keep steps, get signals    workflows    groups, chains and dependencies
    schedules    schedules fire them             diagnosis    what an examination finds
    limits       how many at once, how often     statistics   what was counted
    quotas       how much one tenant may have    documents    what a service keeps beside the jobs

All of them work on `tables`, and through a unit of work if more than one job is concerned. What happens to a record is
decided by ropewalk.domain, what follows from it by backends.workflow. Nothing survives the process.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

from ropewalk.backends.memory import claim as claiming
from ropewalk.backends.memory import (
    diagnosis,
    leases,
    maintenance,
    operations,
    queries,
    schedules,
    submission,
    workflows,
)
from ropewalk.backends.memory.documents import MemoryDocuments
from ropewalk.backends.memory.notifier import LocalNotifier
from ropewalk.backends.memory.queries import MemoryReading
from ropewalk.backends.memory.tables import Tables
from ropewalk.domain.jobs.operations import EndRequest, RetryRequest, UpdateRequest
from ropewalk.domain.jobs.record import JobRecord
from ropewalk.domain.jobs.states import Status
from ropewalk.domain.jobs.transition import Settlement
from ropewalk.domain.limits.fleet_limit import FlowLimit, LimitKind
from ropewalk.domain.limits.headroom import FullLimit
from ropewalk.domain.limits.quota import Quota, QuotaUse
from ropewalk.domain.logs import LogLine
from ropewalk.domain.retention import Retention
from ropewalk.domain.schedules.schedule import Schedule
from ropewalk.domain.statistics.aggregation import StatsQuery
from ropewalk.domain.statistics.statistics import Statistics
from ropewalk.domain.time import Instant, Span
from ropewalk.domain.workflow.completion import StepRecord, as_once_key
from ropewalk.domain.workflow.dependency import Edge
from ropewalk.ports.notifier import Notifier
from ropewalk.ports.runtime import Runtime
from ropewalk.ports.store.capabilities import COMPLETE, Capability, CompleteStore
from ropewalk.ports.store.claims import Claimed, ClaimRequest
from ropewalk.ports.store.consequences import Consequences
from ropewalk.ports.store.core import Durability
from ropewalk.ports.store.diagnosis import Examination
from ropewalk.ports.store.leases import Holder, Note, NoteAnswer, Renewal, Renewed, Settlements, WorkerCard
from ropewalk.ports.store.limits import LimitUse
from ropewalk.ports.store.maintenance import Pruned
from ropewalk.ports.store.operations import Cancellations, Deletion, Purged, RetryAnswer, UpdateAnswer
from ropewalk.ports.store.schedules import DueSchedules, ScheduleChange, ScheduleChanged, ScheduleSnapshot
from ropewalk.ports.store.submission import Submission, SubmitAnswer
from ropewalk.ports.store.workflows import (
    Dependency,
    EndAnswer,
    GroupContribution,
    GroupRecord,
    OrphanRecord,
    SignalAnswer,
    StepAnswer,
)


class MemoryStore(MemoryReading, MemoryDocuments, CompleteStore):
    """The store in memory. `epoch` is part of every fence: a store that is made with a higher epoch treats all earlier
    leases as lost."""

    def __init__(self, runtime: Runtime, *, epoch: int = 0) -> None:
        self._runtime = runtime
        self._tables = Tables(epoch)
        self._lock = threading.Lock()
        self._notifier = LocalNotifier()

    @property
    def name(self) -> str:
        return "memory"

    @property
    def capabilities(self) -> frozenset[Capability[Any]]:
        return COMPLETE

    @property
    def durability(self) -> Durability:
        return Durability.D0

    @property
    def notifier(self) -> Notifier:
        return self._notifier

    async def open(self) -> None:
        """Does nothing, because there is nothing to connect to."""

    async def close(self) -> None:
        """Accepted jobs stay until the store itself is gone."""

    async def clock(self) -> Instant:
        return self._runtime.now()

    async def examine(self, *, deep: bool = False) -> Examination:
        with self._lock:
            now = self._runtime.now()
            return Examination(now=now, work=diagnosis.work(self._tables, now))

    def records(self) -> list[JobRecord]:
        """Returns the jobs of all tenants, in the order of their submission, for tests."""
        with self._lock:
            return queries.everything(self._tables)

    # ── intake

    async def submit(self, submissions: Sequence[Submission], *, wait: bool = True) -> list[SubmitAnswer]:
        with self._lock:
            return submission.submit(self._tables, submissions, self._runtime.now())

    async def cancel(self, tenant: str, ids: Sequence[str], *, reason: str | None, force: bool) -> Cancellations:
        with self._lock:
            now = self._runtime.now()
            return operations.cancel(self._tables, tenant, ids, reason=reason, force=force, now=now)

    async def retry(self, tenant: str, ids: Sequence[str], request: RetryRequest) -> list[RetryAnswer]:
        with self._lock:
            return operations.retry(self._tables, tenant, ids, request, self._runtime.now())

    async def update(self, tenant: str, job_id: str, request: UpdateRequest) -> UpdateAnswer:
        with self._lock:
            return operations.update(self._tables, tenant, job_id, request, self._runtime.now())

    async def delete(self, tenant: str, ids: Sequence[str]) -> dict[str, Deletion]:
        with self._lock:
            return maintenance.delete(self._tables, tenant, ids)

    async def purge(self, tenant: str, ids: Sequence[str], *, together: bool = False) -> Purged:
        with self._lock:
            return operations.purge(self._tables, tenant, ids, self._runtime.now(), together=together)

    # ── leasing

    async def register(self, card: WorkerCard) -> None:
        with self._lock:
            leases.register(self._tables, card, self._runtime.now())

    async def unregister(self, owner: str) -> None:
        with self._lock:
            self._tables.workers.pop(owner, None)

    async def claim(self, request: ClaimRequest) -> Claimed:
        with self._lock:
            return claiming.claim(self._tables, request, self._runtime.now())

    async def renew(self, owner: str, renewals: Sequence[Renewal]) -> Renewed:
        with self._lock:
            return leases.renew(self._tables, owner, renewals, self._runtime.now())

    async def settle(self, owner: str, settlements: Sequence[Settlement]) -> Settlements:
        with self._lock:
            return leases.settle(self._tables, owner, settlements, self._runtime.now())

    async def note(self, note: Note) -> NoteAnswer:
        with self._lock:
            return leases.note(self._tables, note, self._runtime.now())

    # ── upkeep

    async def sweep(self, limit: int, *, take_back_until: Instant | None = None) -> Consequences:
        with self._lock:
            return maintenance.sweep(self._tables, limit, self._runtime.now(), take_back_until)

    async def prune(self, retention: Retention, limit: int) -> Pruned:
        with self._lock:
            return maintenance.prune(self._tables, retention, limit, self._runtime.now())

    async def cascade(self, limit: int) -> Consequences:
        with self._lock:
            return maintenance.cascade(self._tables, limit, self._runtime.now())

    async def once(self, tenant: str, key: str, ttl_us: Span, *, by: str | None = None) -> bool:
        with self._lock:
            return maintenance.once(self._tables, tenant, key, ttl_us, self._runtime.now(), by=by)

    async def pause(self, tenant: str, queue: str, *, paused: bool) -> None:
        with self._lock:
            if paused:
                self._tables.paused.add((tenant, queue))
            else:
                self._tables.paused.discard((tenant, queue))

    async def drain(self, owner: str) -> bool:
        with self._lock:
            return leases.drain(self._tables, owner)

    # ── limiting

    async def put_limit(self, limit: FlowLimit) -> None:
        with self._lock:
            self._tables.limits.put(limit)

    async def remove_limit(self, tenant: str, kind: LimitKind, name: str) -> bool:
        with self._lock:
            return self._tables.limits.remove(tenant, kind, name)

    async def limits(self, tenant: str) -> list[LimitUse]:
        with self._lock:
            return self._tables.limits.uses(tenant)

    async def full_limits_for(self, job: JobRecord) -> list[FullLimit]:
        with self._lock:
            return self._tables.limits.full_limits_for(job, self._runtime.now())

    # ── quotas

    async def put_quota(self, quota: Quota) -> None:
        with self._lock:
            self._tables.quotas.put(quota)

    async def remove_quota(self, tenant: str) -> bool:
        with self._lock:
            return self._tables.quotas.remove(tenant)

    async def quotas(self) -> list[Quota]:
        with self._lock:
            return self._tables.quotas.kept()

    async def quota_use(self, tenant: str) -> QuotaUse | None:
        with self._lock:
            return self._tables.quotas.use(tenant, self._runtime.now())

    # ── workflows

    async def end(self, tenant: str, job_id: str, request: EndRequest) -> EndAnswer:
        with self._lock:
            return operations.end(self._tables, tenant, job_id, request, self._runtime.now())

    async def signal(
        self, tenant: str, job_id: str, name: str, value: bytes | None, *, signal_id: str | None = None
    ) -> SignalAnswer:
        with self._lock:
            once, now = as_once_key(job_id, signal_id), self._runtime.now()
            return workflows.signal(self._tables, tenant, job_id, name, value, now=now, once=once)

    async def steps(self, seq: int) -> list[StepRecord]:
        with self._lock:
            return self._tables.steps.of(seq)

    async def record_step(self, holder: Holder, step: StepRecord) -> StepAnswer:
        with self._lock:
            return workflows.record_step(self._tables, holder, step)

    async def take_signal(self, holder: Holder, step: StepRecord, signal: str) -> StepAnswer:
        with self._lock:
            return workflows.take_signal(self._tables, holder, step, signal)

    async def cancel_group(self, tenant: str, group_id: str, *, reason: str | None, force: bool) -> bool:
        with self._lock:
            now = self._runtime.now()
            return workflows.cancel_group(self._tables, tenant, group_id, reason=reason, force=force, now=now)

    async def await_group(self, tenant: str, group_id: str, span_us: Span) -> None:
        with self._lock:
            workflows.await_group(self._tables, tenant, group_id, span_us, self._runtime.now())

    async def take_orphans(self, limit: int, hide_us: Span) -> list[OrphanRecord]:
        with self._lock:
            return workflows.take_orphans(self._tables, limit, hide_us, self._runtime.now())

    async def orphans_are_taken(self) -> bool:
        with self._lock:
            return self._tables.groups.orphans_recorded_until > self._runtime.now()

    async def orphan_reported(self, orphan_id: str) -> None:
        with self._lock:
            self._tables.groups.orphans.pop(orphan_id, None)

    async def groups(self, tenant: str, ids: Sequence[str]) -> dict[str, GroupRecord]:
        with self._lock:
            return workflows.groups(self._tables, tenant, ids)

    async def contributions(self, tenant: str, group_id: str) -> list[GroupContribution]:
        with self._lock:
            return workflows.contributions(self._tables, tenant, group_id)

    # ── schedules

    async def change_schedules(self, changes: Sequence[ScheduleChange]) -> list[ScheduleChanged | None]:
        with self._lock:
            return schedules.change_schedules(self._tables, changes, self._runtime.now())

    async def get_schedules(self, tenant: str, names: Sequence[str]) -> ScheduleSnapshot:
        with self._lock:
            return schedules.get_schedules(self._tables, tenant, names, self._runtime.now())

    async def list_schedules(self, tenant: str, *, after: str | None, limit: int) -> ScheduleSnapshot:
        with self._lock:
            now = self._runtime.now()
            return schedules.list_schedules(self._tables, tenant, after=after, limit=limit, now=now)

    async def due_schedules(self, *, after: Schedule | None, limit: int) -> DueSchedules:
        with self._lock:
            return schedules.due_schedules(self._tables, after=after, limit=limit, now=self._runtime.now())

    # ── reading, beside what MemoryReading has

    async def chain(self, tenant: str, job_id: str, *, last: int | None = None) -> list[JobRecord]:
        with self._lock:
            return queries.chain(self._tables, tenant, job_id, last)

    async def dependencies(self, seq: int) -> list[Dependency]:
        with self._lock:
            return queries.dependencies(self._tables, seq)

    async def edges(self, seqs: Sequence[int]) -> list[Edge]:
        with self._lock:
            return self._tables.edges.of_children(seqs)

    async def log(self, tenant: str, job_id: str) -> list[LogLine]:
        with self._lock:
            return leases.lines_of(self._tables, tenant, job_id)

    # ── counting

    async def stats(self, tenant: str, query: StatsQuery) -> Statistics:
        with self._lock:
            live = queries.live(self._tables, tenant)
            return self._tables.counts.stats(tenant, query, live, self._runtime.now())

    async def tenants_with(self, ended: Status, types: Sequence[str]) -> list[str]:
        with self._lock:
            return queries.tenants_with(self._tables, ended, types)

    async def fold_counters(self, keep_us: Span | None, limit: int) -> int:
        with self._lock:
            return self._tables.counts.fold(keep_us, limit, self._runtime.now())
