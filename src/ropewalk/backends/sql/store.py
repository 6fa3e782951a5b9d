"""The verbs of a SQL store. Each is one function run inside one transaction; what it does is in the module it names.

    submission   jobs come in                    operations   people change them
    claim        workers get them                maintenance  lost leases, deadlines, retention
    leases       workers keep them               queries      everybody reads them
    completion   and end them
    workflows    what happens between jobs       graph        how they depend on one another
    schedules    schedules fire them             statistics   all of it is counted
    limits       how many at once, how often     quotas       how much a tenant may have
    documents    what a service keeps beside the jobs

A store brings the transactions (`_write`, `_read`), its statements and its connections. What happens to a record is
decided by ropewalk.domain.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from msgspec import structs

from ropewalk.backends.sql import (
    completion,
    graph,
    leases,
    limits,
    logs,
    maintenance,
    operations,
    quotas,
    schedules,
    statistics,
    steps,
    submission,
    workflows,
)
from ropewalk.backends.sql.claim import claim as claiming
from ropewalk.backends.sql.claim.cache import ClaimCache
from ropewalk.backends.sql.documents import SqlDocuments
from ropewalk.backends.sql.graph import edges_of
from ropewalk.backends.sql.queries import SqlReading
from ropewalk.backends.sql.tx import Tx
from ropewalk.domain.jobs.operations import EndRequest, RetryRequest, UpdateRequest
from ropewalk.domain.jobs.record import CancelRequest, JobRecord
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
from ropewalk.ports.runtime import Runtime
from ropewalk.ports.store.capabilities import ALL, Capability, DatabaseStore
from ropewalk.ports.store.claims import Claimed, ClaimRequest
from ropewalk.ports.store.consequences import Consequences
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

T = TypeVar("T")


class SqlStore(SqlReading, SqlDocuments, DatabaseStore, ABC):
    """The verbs of every SQL store. A store derives from it and adds its connections."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._cache = ClaimCache(runtime.monotonic)
        self._aside: list[Consequences] = []
        """The consequences of setting damaged jobs aside, and the records that were passed over, until a claim or a
        sweep returns them to a worker."""

    @property
    def capabilities(self) -> frozenset[Capability[Any]]:
        return ALL

    @abstractmethod
    async def _write(self, work: Callable[[Tx], T]) -> T:
        """Runs work in a transaction that may write, and commits."""

    # ── intake

    async def submit(self, submissions: Sequence[Submission], *, wait: bool = True) -> list[SubmitAnswer]:
        return await self._write(lambda tx: submission.submit(tx, tx.lanes, submissions))

    async def cancel(self, tenant: str, ids: Sequence[str], *, reason: str | None, force: bool) -> Cancellations:
        return await self._write(lambda tx: operations.cancel(tx, tx.lanes, tenant, ids, reason=reason, force=force))

    async def retry(self, tenant: str, ids: Sequence[str], request: RetryRequest) -> list[RetryAnswer]:
        return await self._write(lambda tx: operations.retry(tx, tx.lanes, tenant, ids, request))

    async def update(self, tenant: str, job_id: str, request: UpdateRequest) -> UpdateAnswer:
        return await self._write(lambda tx: operations.update(tx, tx.lanes, tenant, job_id, request))

    async def delete(self, tenant: str, ids: Sequence[str]) -> dict[str, Deletion]:
        return await self._write(lambda tx: operations.delete(tx, tenant, ids))

    async def purge(self, tenant: str, ids: Sequence[str], *, together: bool = False) -> Purged:
        return await self._write(lambda tx: operations.purge(tx, tx.lanes, tenant, ids, together=together))

    # ── leasing

    async def register(self, card: WorkerCard) -> None:
        await self._write(lambda tx: leases.register(tx, card))

    async def unregister(self, owner: str) -> None:
        await self._write(lambda tx: tx.run(tx.sql.unregister_worker, (owner,)))

    async def claim(self, request: ClaimRequest) -> Claimed:
        return self._with_aside(await self._claim(request))

    async def _claim(self, request: ClaimRequest) -> Claimed:
        return await self._write(lambda tx: claiming.claim(tx, tx.lanes, self._cache, request))

    def _taken_aside(self) -> list[Consequences]:
        aside = self._aside.copy()
        del self._aside[: len(aside)]  # threads may add others meanwhile
        return aside

    def _with_aside(self, answer: Claimed) -> Claimed:
        """Adds the consequences of setting damaged jobs aside to the answer of a claim."""
        if not self._aside:
            return answer
        aside = self._taken_aside()
        moved = [moved for each in aside for moved in each.moved]
        closed = [closed for each in aside for closed in each.closed]
        passed_over = [passed for each in aside for passed in each.passed_over]
        return structs.replace(
            answer, moved=[*moved, *answer.moved], closed=[*closed, *answer.closed], passed_over=passed_over
        )

    async def renew(self, owner: str, renewals: Sequence[Renewal]) -> Renewed:
        return await self._write(lambda tx: leases.renew(tx, owner, renewals))

    async def settle(self, owner: str, settlements: Sequence[Settlement]) -> Settlements:
        return await self._write(lambda tx: completion.settle(tx, tx.lanes, owner, settlements))

    async def note(self, note: Note) -> NoteAnswer:
        return await self._write(lambda tx: leases.note(tx, note))

    # ── upkeep

    async def sweep(self, limit: int, *, take_back_until: Instant | None = None) -> Consequences:
        consequences = await self._write(lambda tx: maintenance.sweep(tx, tx.lanes, limit, take_back_until))
        return consequences if not self._aside else self._joined(consequences)

    def _joined(self, consequences: Consequences) -> Consequences:
        aside = [consequences, *self._taken_aside()]
        return Consequences(
            moved=[moved for each in aside for moved in each.moved],
            ready=sorted({queue for each in aside for queue in each.ready}),
            closed=[closed for each in aside for closed in each.closed],
            more=any(each.more for each in aside),
            passed_over=[passed for each in aside for passed in each.passed_over],
        )

    async def prune(self, retention: Retention, limit: int) -> Pruned:
        return await self._write(lambda tx: maintenance.prune(tx, retention, limit))

    async def cascade(self, limit: int) -> Consequences:
        return await self._write(lambda tx: workflows.cascade(tx, tx.lanes, limit))

    async def once(self, tenant: str, key: str, ttl_us: Span, *, by: str | None = None) -> bool:
        return await self._write(lambda tx: maintenance.once(tx, tenant, key, ttl_us, by=by))

    async def pause(self, tenant: str, queue: str, *, paused: bool) -> None:
        await self._write(lambda tx: maintenance.pause(tx, tenant, queue, paused=paused))

    async def drain(self, owner: str) -> bool:
        return await self._write(lambda tx: maintenance.drain(tx, owner))

    # ── limiting

    async def put_limit(self, limit: FlowLimit) -> None:
        await self._write(lambda tx: limits.put(tx, limit))

    async def remove_limit(self, tenant: str, kind: LimitKind, name: str) -> bool:
        return await self._write(lambda tx: limits.remove(tx, tenant, kind, name))

    async def limits(self, tenant: str) -> list[LimitUse]:
        return await self._read(lambda tx: limits.uses(tx, tenant))

    async def full_limits_for(self, job: JobRecord) -> list[FullLimit]:
        return await self._read(lambda tx: limits.full_limits_for(tx, job))

    # ── quotas

    async def put_quota(self, quota: Quota) -> None:
        await self._write(lambda tx: quotas.put(tx, quota))

    async def remove_quota(self, tenant: str) -> bool:
        return await self._write(lambda tx: quotas.remove(tx, tenant))

    async def quotas(self) -> list[Quota]:
        return await self._read(quotas.all_quotas)

    async def quota_use(self, tenant: str) -> QuotaUse | None:
        return await self._read(lambda tx: quotas.use(tx, tenant))

    # ── workflows

    async def end(self, tenant: str, job_id: str, request: EndRequest) -> EndAnswer:
        return await self._write(lambda tx: workflows.end(tx, tx.lanes, tenant, job_id, request))

    async def signal(
        self, tenant: str, job_id: str, name: str, value: bytes | None, *, signal_id: str | None = None
    ) -> SignalAnswer:
        return await self._write(
            lambda tx: workflows.signal(
                tx, tx.lanes, tenant, job_id, name=name, value=value, once=as_once_key(job_id, signal_id)
            )
        )

    async def steps(self, seq: int) -> list[StepRecord]:
        return await self._read(lambda tx: steps.steps_of(tx, seq))

    async def record_step(self, holder: Holder, step: StepRecord) -> StepAnswer:
        return await self._write(lambda tx: steps.record_step(tx, holder, step))

    async def take_signal(self, holder: Holder, step: StepRecord, signal: str) -> StepAnswer:
        return await self._write(lambda tx: steps.take_signal(tx, holder, step, signal))

    async def cancel_group(self, tenant: str, group_id: str, *, reason: str | None, force: bool) -> bool:
        return await self._write(
            lambda tx: workflows.cancel_group(tx, tx.lanes, tenant, group_id, CancelRequest(reason, force, tx.now))
        )

    async def await_group(self, tenant: str, group_id: str, span_us: Span) -> None:
        await self._write(lambda tx: workflows.await_group(tx, tx.lanes, tenant, group_id, span_us))

    async def take_orphans(self, limit: int, hide_us: Span) -> list[OrphanRecord]:
        return await self._write(lambda tx: graph.take_orphans(tx, limit, hide_us))

    async def orphans_are_taken(self) -> bool:
        return await self._read(graph.orphans_are_taken)

    async def orphan_reported(self, orphan_id: str) -> None:
        await self._write(lambda tx: graph.orphan_reported(tx, orphan_id))

    async def groups(self, tenant: str, ids: Sequence[str]) -> dict[str, GroupRecord]:
        return await self._read(lambda tx: workflows.groups(tx, tenant, ids))

    async def contributions(self, tenant: str, group_id: str) -> list[GroupContribution]:
        return await self._read(lambda tx: workflows.contributions(tx, tenant, group_id))

    # ── schedules

    async def change_schedules(self, changes: Sequence[ScheduleChange]) -> list[ScheduleChanged | None]:
        return await self._write(lambda tx: schedules.change_schedules(tx, tx.lanes, changes))

    async def get_schedules(self, tenant: str, names: Sequence[str]) -> ScheduleSnapshot:
        return await self._read(lambda tx: schedules.get_schedules(tx, tenant, names))

    async def list_schedules(self, tenant: str, *, after: str | None, limit: int) -> ScheduleSnapshot:
        return await self._read(lambda tx: schedules.list_schedules(tx, tenant, after=after, limit=limit))

    async def due_schedules(self, *, after: Schedule | None, limit: int) -> DueSchedules:
        return await self._read(lambda tx: schedules.due_schedules(tx, after=after, limit=limit))

    # ── reading, beside what SqlReading has

    async def chain(self, tenant: str, job_id: str, *, last: int | None = None) -> list[JobRecord]:
        return await self._read(lambda tx: workflows.chain(tx, tenant, job_id, last))

    async def dependencies(self, seq: int) -> list[Dependency]:
        return await self._read(lambda tx: workflows.dependencies(tx, seq))

    async def edges(self, seqs: Sequence[int]) -> list[Edge]:
        return await self._read(lambda tx: edges_of(tx, seqs))

    async def log(self, tenant: str, job_id: str) -> list[LogLine]:
        return await self._read(lambda tx: logs.lines_of(tx, tenant, job_id))

    # ── counting

    async def stats(self, tenant: str, query: StatsQuery) -> Statistics:
        return await self._read(lambda tx: statistics.stats(tx, tenant, query))

    async def tenants_with(self, ended: Status, types: Sequence[str]) -> list[str]:
        return await self._read(lambda tx: statistics.tenants_with(tx, ended, types))

    async def fold_counters(self, keep_us: Span | None, limit: int) -> int:
        return await self._write(lambda tx: statistics.fold_counters(tx, keep_us, limit))
