"""Groups, chains and workflows: what belongs together, how it stands, and ending it together."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any

from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from ropewalk.client.views.workflows import EdgeInfo, edges_of, group_value, jobs_of
from ropewalk.definitions.results.group_values import counts_of
from ropewalk.domain.jobs.record import JobRecord
from ropewalk.domain.search import Filter as Wanted
from ropewalk.errors import GroupFailed, WaitTimeout
from ropewalk.http.call import Call, NoQuery
from ropewalk.http.errors import ErrorCode, not_found
from ropewalk.http.identity.identity import Payloads, Role
from ropewalk.http.jobs.lookup import find, refuse_bounded
from ropewalk.http.jobs.reading import DependencyKind, WaitQuery, patiently
from ropewalk.http.jobs.shapes import JobStatus
from ropewalk.http.jobs.status import JobView
from ropewalk.http.routing import Routes
from ropewalk.http.wire import timestamp_or_none
from ropewalk.ports.store.capabilities import WORKFLOWS
from ropewalk.ports.store.workflows import GroupRecord

routes = Routes("workflows")

NodesMax = Annotated[int, Meta(ge=0, le=10_000)]


class GroupState(StrEnum):
    OPEN = "OPEN"
    CLOSED = "CLOSED"


class GraphQuery(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    nodes_max: NodesMax = 1000
    """At most so many jobs of it, oldest first."""


class Edge(Struct, frozen=True, kw_only=True):
    """`child` waits, or waited, for `parent`."""

    parent: str
    child: str
    kind: DependencyKind
    ending: str | None
    """How the parent ended. None while it has not."""


class GroupStatus(Struct, frozen=True, kw_only=True):
    """A root job and everything queued under it."""

    group_id: str
    state: GroupState
    open: int
    completed: int
    failed: int
    cancelled: int
    generation: int
    closed_at: datetime | None
    value: Raw | UnsetType | None = UNSET
    """The value of the group so far. Absent if the identity must not see payloads."""
    nodes: Sequence[JobStatus]
    edges: Sequence[Edge]


class GroupCancellation(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    reason: Annotated[str, Meta(max_length=1000)] | None = None
    force: bool = False


class GroupCancelled(Struct, frozen=True, kw_only=True):
    group_id: str
    requested: int
    cancelled: int
    skipped: int


class ChainStatus(Struct, frozen=True, kw_only=True):
    """A job and its continuations, first to last."""

    jobs: Sequence[JobStatus]


class ChainQuery(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    cascade: bool = False
    """Also cancel and remove what waits in the chain, or for it."""


class WorkflowStatus(Struct, frozen=True, kw_only=True):
    workflow_id: str
    nodes: Sequence[JobStatus]
    edges: Sequence[Edge]


@routes.get("/groups/{id}", role=Role.READ, errors=(ErrorCode.UNSUPPORTED,))
async def get_group(call: Call[None, GraphQuery]) -> GroupStatus:
    """Look at the group of a job: its counts, its value, and the graph of its first jobs."""
    refuse_bounded(call)
    return await _group(call, call.query.nodes_max)


@routes.get("/groups/{id}/wait", role=Role.READ, errors=(ErrorCode.UNSUPPORTED,))
async def wait_for_group(call: Call[None, WaitQuery]) -> GroupStatus:
    """Wait until a group has closed, or until the timeout is over; the state in the answer tells which."""
    refuse_bounded(call)
    await find(call)
    with suppress(WaitTimeout, TimeoutError, GroupFailed):
        await patiently(call, call.client.wait_for_group(call.id, call.query.timeout))
    return await _group(call, 0)


@routes.post("/groups/{id}/cancel", role=Role.OPERATE, errors=(ErrorCode.UNSUPPORTED,), example={"reason": "wrong"})
async def cancel_group(call: Call[GroupCancellation, NoQuery]) -> GroupCancelled:
    """Cancel everything in a group. What its running jobs still queue is cancelled, too."""
    refuse_bounded(call)
    await find(call)
    done = await call.client.cancel_group(call.id, reason=call.body.reason, force=call.body.force)
    return GroupCancelled(
        group_id=call.id, requested=done.requested, cancelled=done.done, skipped=done.skipped + done.missing
    )


@routes.get("/chains/{id}", role=Role.READ, errors=(ErrorCode.UNSUPPORTED,))
async def get_chain(call: Call[None, NoQuery]) -> ChainStatus:
    """Look at the chain of a job."""
    refuse_bounded(call)
    members = await WORKFLOWS.of(call.store).chain(call.tenant, call.id)
    if not members:
        raise not_found()
    now, view = await call.store.clock(), JobView.of(call.service, call.identity)
    return ChainStatus(jobs=[view.status(member, now) for member in members])


@routes.delete("/chains/{id}", role=Role.OPERATE, errors=(ErrorCode.CONFLICT, ErrorCode.UNSUPPORTED))
async def delete_chain(call: Call[None, ChainQuery]) -> None:
    """Remove every job of the chain of this one."""
    refuse_bounded(call)
    await call.client.delete_chain(call.id, cascade=call.query.cascade)


@routes.get("/workflows/{id}", role=Role.READ, errors=(ErrorCode.UNSUPPORTED,))
async def get_workflow(call: Call[None, GraphQuery]) -> WorkflowStatus:
    """Look at the jobs of a workflow, in the order in which they were queued, and at what depends on what."""
    refuse_bounded(call)
    nodes, edges = await _graph(call, Wanted(workflow_id=call.id), call.query.nodes_max)
    if not nodes and call.query.nodes_max:
        raise not_found()
    return WorkflowStatus(workflow_id=call.id, nodes=nodes, edges=edges)


async def _group(call: Call[Any, Any], nodes_max: int) -> GroupStatus:
    store = WORKFLOWS.of(call.store)
    root, _ = await find(call)
    if root.group_id not in (None, root.id):
        root, _ = await find(call, root.group_id)
    record = (await store.groups(call.tenant, [root.id])).get(root.id)
    opened, completed, failed, cancelled = counts_of(root, record)
    closed_at = root.finished_at if record is None else record.closed_at
    nodes, edges = await _graph(call, Wanted(group_id=root.id), nodes_max)
    return GroupStatus(
        group_id=root.id,
        state=GroupState.OPEN if closed_at is None else GroupState.CLOSED,
        open=opened,
        completed=completed,
        failed=failed,
        cancelled=cancelled,
        generation=root.run if record is None else record.generation,
        closed_at=timestamp_or_none(closed_at),
        value=await _value(call, root, record),
        nodes=nodes,
        edges=edges,
    )


async def _value(call: Call[Any, Any], root: JobRecord, record: GroupRecord | None) -> Raw | UnsetType | None:
    if call.identity.payloads is Payloads.NONE:
        return UNSET
    store, codec, view = WORKFLOWS.of(call.store), call.service.app_state.codec, JobView.of(call.service, call.identity)
    value = await group_value(store, root, record, call.service.describe)
    return UNSET if value is None and record is None else view.value(root.type, codec.encode(value, Any))


async def _graph(call: Call[Any, Any], wanted: Wanted, nodes_max: int) -> tuple[list[JobStatus], list[Edge]]:
    view, records, nodes = JobView.of(call.service, call.identity), list[JobRecord](), list[JobStatus]()
    async for job, now in jobs_of(call.store, call.tenant, wanted, nodes_max):
        records.append(job)
        nodes.append(view.status(job, now))
    return nodes, [_edge(each) for each in await edges_of(WORKFLOWS.of(call.store), records)]


def _edge(edge: EdgeInfo) -> Edge:
    return Edge(
        parent=edge.parent,
        child=edge.child,
        kind=DependencyKind(edge.kind.value.upper()),
        ending=None if edge.ending is None else edge.ending.value.upper(),
    )
