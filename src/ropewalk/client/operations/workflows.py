"""Workflows from outside of handlers: jobs are completed or failed by people, get signals, and are read and cancelled
by group, chain and workflow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ropewalk.client.filter import Filter
from ropewalk.client.operations.base import TenantOperations, check_cancel, in_bulk, missing, repeated
from ropewalk.client.views.answers import BulkResult
from ropewalk.client.views.jobs import JobInfo
from ropewalk.client.views.workflows import (
    UNFINISHED,
    EdgeInfo,
    GroupInfo,
    WorkflowInfo,
    edges_of,
    group_value,
    jobs_of,
)
from ropewalk.definitions.results.classify import error_info
from ropewalk.definitions.results.group_values import counts_of, value_is_gone
from ropewalk.domain import checks
from ropewalk.domain.failure import Category, ErrorInfo, clipped
from ropewalk.domain.jobs.operations import EndRequest
from ropewalk.domain.jobs.record import JobRecord
from ropewalk.domain.jobs.states import Move
from ropewalk.domain.search import Filter as Wanted
from ropewalk.domain.time import to_datetime
from ropewalk.errors import Conflict, InvalidInput, LimitExceeded
from ropewalk.observe.publish import NO_CONSEQUENCES, Change
from ropewalk.ports.notifier import Hint
from ropewalk.ports.store.capabilities import WORKFLOWS
from ropewalk.ports.store.workflows import GroupRecord, SignalAnswer, WorkflowStore


class WorkflowOperations(TenantOperations):
    """Reads and changes the workflows of a tenant."""

    async def complete(self, job_id: str, value: object = None) -> JobInfo:
        """Complete a job from outside with this result. If a worker runs the job, it has to stop."""
        WORKFLOWS.of(self._app_state.store)
        job, _ = await self._record(job_id)
        registry = self._app_state.registry
        result = registry.get(job.type).encode_result(value) if job.type in registry else self._encoded(value)
        return await self._end(job_id, EndRequest(result=result))

    async def fail(self, job_id: str, error: str | BaseException) -> JobInfo:
        """Fail a job from outside for this reason. Its compensation and its dependants follow as usual."""
        checks.text(job_id, "job_id")
        if isinstance(error, BaseException):
            described_error = error_info(
                error, Category.PERMANENT, code="from_outside", secrets=self._app_state.secret_keys
            )
        else:
            described_error = ErrorInfo(
                category=Category.PERMANENT, code="from_outside", message=clipped(checks.text(error, "error"))
            )
        return await self._end(job_id, EndRequest(error=described_error))

    async def signal(
        self,
        job_id: str,
        name: str,
        value: object = None,
        *,
        id: str | None = None,  # noqa: A002  the word that enqueue uses
    ) -> SignalAnswer:
        """Send a signal to a job that waits or will wait for it (`ctx.wait_for(name)`). Raises Conflict if the job has
        ended.

        After an OutcomeUnknown, send it again with the same `id`: within a day the job gets it only once.

        >>> await app.signal(handle.id, "paid", 12.5, id="payment-4711")
        """
        checks.text(job_id, "job_id")
        checks.text_or_none(id, "id")
        self._name(name, "name")
        store, data = await self._workflows(), self._encoded(value)
        answer = await repeated(
            lambda signal_id: store.signal(self._tenant, job_id, name, data, signal_id=signal_id),
            self._app_state.runtime,
            id,
        )
        match answer:
            case SignalAnswer.NOT_FOUND:
                raise missing(job_id)
            case SignalAnswer.ALREADY_COMPLETE:
                raise Conflict(f"job {job_id} has ended and can no longer receive signals")
            case SignalAnswer.KEPT:
                return answer
            case SignalAnswer.DELIVERED | SignalAnswer.DUPLICATE:
                job, _ = await self._record(job_id)
                self._app_state.store.notifier.publish(Hint(ready=(job.queue,)))
                return answer

    async def group(self, group_id: str, *, nodes_max: int = 1000) -> GroupInfo:
        """Return a group: its counts, its value, and the graph of its first `nodes_max` jobs.

        `group_id` may be the id of any job of the group.
        """
        checks.text(group_id, "group_id")
        checks.between(nodes_max, "nodes_max", 0, None)
        store = await self._workflows()
        root, _ = await self._record(group_id)
        if root.group_id not in (None, root.id):
            group_id = root.group_id
            root, _ = await self._record(group_id)
        record = (await store.groups(self._tenant, [group_id])).get(group_id)
        opened, completed, failed, cancelled = counts_of(root, record)
        closed_at = root.finished_at if record is None else record.closed_at
        nodes, edges = await self._graph(Wanted(group_id=group_id), nodes_max)
        return GroupInfo(
            id=group_id,
            state="open" if closed_at is None else "closed",
            open=opened,
            completed=completed,
            failed=failed,
            cancelled=cancelled,
            generation=root.run if record is None else record.generation,
            closed_at=None if closed_at is None else to_datetime(closed_at),
            value=await group_value(store, root, record, self._describe),
            conflict=_conflict(root, record),
            nodes=nodes,
            edges=edges,
        )

    async def cancel_group(self, group_id: str, *, reason: str | None = None, force: bool = False) -> BulkResult:
        """Cancel all jobs of a group. Jobs that its running jobs still enqueue are cancelled at once."""
        checks.text(group_id, "group_id")
        check_cancel(reason, force=force)
        store = await self._workflows()
        root, _ = await self._record(group_id)
        if root.group_id not in (None, root.id):
            raise InvalidInput(f"{group_id} is a job of group {root.group_id}: cancel that group, or only the job")
        await store.cancel_group(self._tenant, group_id, reason=reason, force=force)

        async def act(ids: Sequence[str], result: BulkResult) -> None:
            await self._cancel_into(result, ids, reason=reason, force=force)

        unfinished = Filter(group_id=group_id, states=UNFINISHED)
        return await in_bulk(self._app_state.store, self._tenant, unfinished, act, dry_run=False)

    async def chain(self, job_id: str) -> list[JobInfo]:
        """Return the jobs of the chain of a job, from first to last. The chain of a job that never continued is only
        that job."""
        checks.text(job_id, "job_id")
        store = await self._workflows()
        members = await store.chain(self._tenant, job_id)
        if not members:
            raise missing(job_id)
        now = await self._app_state.store.clock()
        return [self._describe.job(member, now) for member in members]

    async def workflow(self, workflow_id: str, *, nodes_max: int = 10_000) -> WorkflowInfo:
        """Return the jobs of a workflow in the order in which they were enqueued, and their dependencies."""
        checks.text(workflow_id, "workflow_id")
        checks.between(nodes_max, "nodes_max", 0, None)
        await self._workflows()
        nodes, edges = await self._graph(Wanted(workflow_id=workflow_id), nodes_max)
        return WorkflowInfo(id=workflow_id, nodes=nodes, edges=edges)

    async def _workflows(self) -> WorkflowStore:
        return WORKFLOWS.of(await self._store())

    async def _graph(self, wanted: Wanted, nodes_max: int) -> tuple[list[JobInfo], list[EdgeInfo]]:
        records: list[JobRecord] = []
        nodes: list[JobInfo] = []
        async for job, now in jobs_of(self._app_state.store, self._tenant, wanted, nodes_max):
            records.append(job)
            nodes.append(self._describe.job(job, now))
        return nodes, await edges_of(WORKFLOWS.of(self._app_state.store), records)

    async def _end(self, job_id: str, request: EndRequest) -> JobInfo:
        answer = await (await self._workflows()).end(self._tenant, job_id, request)
        if answer.job is None:
            if answer.state is None:
                raise missing(job_id)
            raise Conflict(f"job {job_id} is already {answer.state.value}")
        job = answer.job
        self._publish([Change(job, Move.END, job.error)], answer.consequences or NO_CONSEQUENCES, control=True)
        return self._describe.job(job, job.updated_at)

    def _encoded(self, value: object) -> bytes | None:
        if value is None:
            return None
        data, limit = self._app_state.codec.encode(value, Any), self._app_state.bounds.payload_bytes_max
        if len(data) > limit:
            raise LimitExceeded(f"the value is {len(data):,} bytes, over payload_bytes_max={limit:,}", field="value")
        return data


def _conflict(root: JobRecord, record: GroupRecord | None) -> str | None:
    if value_is_gone(root, record):
        return "the result that is its value was forgotten before the job (Retention.of(results=...))"
    return None if record is None else record.value.conflict
