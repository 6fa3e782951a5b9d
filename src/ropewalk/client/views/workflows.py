"""Workflows and groups as users see them, with their jobs and dependencies, and the functions that read these from the
store page by page."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, Literal

from ropewalk.client.views.jobs import Describer, JobInfo
from ropewalk.definitions.results.group_values import value_of
from ropewalk.domain.jobs.flags import OWNS_SCOPE
from ropewalk.domain.jobs.record import JobRecord
from ropewalk.domain.jobs.states import State
from ropewalk.domain.search import Filter, Order
from ropewalk.domain.time import Instant
from ropewalk.domain.workflow.dependency import Edge, Ending, ParentKind
from ropewalk.domain.workflow.group_value import KEPT_ONE_BY_ONE
from ropewalk.ports.store.capabilities import WORKFLOWS
from ropewalk.ports.store.core import Store
from ropewalk.ports.store.workflows import GroupRecord, WorkflowStore


@dataclass(frozen=True, slots=True, kw_only=True)
class EdgeInfo:
    """A dependency: the job `child` waits, or waited, for the job `parent`.

    It is not the relation between a job and the jobs that it enqueued; JobInfo.parent_id is that.
    """

    parent: str
    child: str
    kind: ParentKind
    """Whether the child waits for the job alone, for the tree under it, or for its chain."""
    ending: Ending | None
    """How the parent ended; None if it has not ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowInfo:
    """The jobs of a workflow in the order in which they were enqueued, and their dependencies. It iterates over its
    jobs."""

    id: str
    nodes: Sequence[JobInfo]
    edges: Sequence[EdgeInfo]

    def __iter__(self) -> Iterator[JobInfo]:
        return iter(self.nodes)

    def __len__(self) -> int:
        return len(self.nodes)

    def __getitem__(self, index: int) -> JobInfo:
        return self.nodes[index]

    @property
    def states(self) -> Counter[State]:
        """The number of its jobs in each state."""
        return Counter(node.state for node in self.nodes)

    @property
    def created_at(self) -> datetime | None:
        """The time at which the first of its jobs was enqueued; None if it has no jobs."""
        return min((node.created_at for node in self.nodes), default=None)

    @property
    def started_at(self) -> datetime | None:
        """The time of the earliest start among its jobs; None if none has started."""
        return min((node.started_at for node in self.nodes if node.started_at is not None), default=None)

    @property
    def finished_at(self) -> datetime | None:
        """The time at which the last of its jobs ended; None if one has not ended."""
        ended = [node.finished_at for node in self.nodes if node.finished_at is not None]
        return max(ended) if ended and len(ended) == len(self.nodes) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupInfo:
    """A group: a root job and all jobs under it. The counts include all of them, at any depth, and the root."""

    id: str
    state: Literal["open", "closed"]
    open: int
    """The number of jobs that have not ended."""
    completed: int
    failed: int
    cancelled: int
    generation: int
    """The generation is 1, and grows by one every time the group opens again."""
    closed_at: datetime | None
    value: object = field(repr=False)
    """The value of the group; while the group is open, the value so far."""
    conflict: str | None
    """Why the group has no value: its contributions are folded in different ways, or the result that is its value was
    deleted."""
    nodes: Sequence[JobInfo] = field(repr=False)
    edges: Sequence[EdgeInfo] = field(repr=False)


def edge_info(edge: Edge, child: str) -> EdgeInfo:
    """Returns the view of a dependency of the job with the id `child`."""
    return EdgeInfo(parent=edge.parent_id, child=child, kind=edge.kind, ending=edge.ending)


PAGE: Final = 1000
UNFINISHED: Final = (State.PENDING, State.DELAYED, State.RETRYING, State.SCHEDULED, State.RUNNING)


async def jobs_of(
    store: Store, tenant: str, wanted: Filter, limit: int | None = None
) -> AsyncIterator[tuple[JobRecord, Instant]]:
    """Yields the jobs that match, in the order in which they were enqueued, each with the store's time at which it was
    read."""
    cursor, left = None, limit
    while left is None or left > 0:
        size = PAGE if left is None else min(PAGE, left)
        page = await store.search(tenant, wanted, order=Order.CREATED_ASC, cursor=cursor, limit=size)
        for job in page.jobs:
            yield job, page.now
        cursor = page.next_cursor
        left = None if left is None else left - len(page.jobs)
        if cursor is None:
            return


async def edges_of(store: WorkflowStore, jobs: Sequence[JobRecord]) -> list[EdgeInfo]:
    """Returns the dependencies of these jobs."""
    ids = {job.seq: job.id for job in jobs if job.gate is not None}
    edges: list[EdgeInfo] = []
    seqs = list(ids)
    for start in range(0, len(seqs), PAGE):
        found = await store.edges(seqs[start : start + PAGE])
        edges.extend(edge_info(edge, ids[edge.seq]) for edge in found)
    return edges


class Dependants:
    """The unfinished jobs of a tenant that depend on others, as they were when they were read.

    Reading them takes long, because all unfinished jobs are searched. It is used for deletions and their refusals,
    which need all of them.
    """

    def __init__(self, jobs: Sequence[JobRecord], edges: Sequence[Edge]) -> None:
        self._jobs = {job.seq: job for job in jobs}
        self._edges = edges

    @classmethod
    async def read(cls, store: Store, tenant: str) -> Dependants:
        graph = WORKFLOWS.if_declared(store)
        if graph is None:
            return cls([], [])
        unfinished = jobs_of(store, tenant, Filter(states=UNFINISHED))
        waiting = [job async for job, _ in unfinished if job.gate is not None]
        seqs = [job.seq for job in waiting]
        starts = range(0, len(seqs), PAGE)
        return cls(waiting, [edge for start in starts for edge in await graph.edges(seqs[start : start + PAGE])])

    def of(self, parents: Sequence[JobRecord]) -> list[JobRecord]:
        """Returns the jobs that depend on these, directly or through others, without these jobs themselves."""
        reached = {job.seq for job in parents}
        chains = {job.scope_id for job in parents if job.chain_index}  # A chain has the number of its first member.
        found: list[JobRecord] = []
        grown = True
        while grown:
            new = {
                edge.seq
                for edge in self._edges
                if edge.seq not in reached
                and (edge.parent in reached or (edge.kind is ParentKind.CHAIN and edge.parent in chains))
            }
            found += [self._jobs[seq] for seq in new]
            reached |= new
            grown = bool(new)
        return found


async def members_under(store: Store, tenant: str, jobs: Sequence[JobRecord]) -> list[JobRecord]:
    """Returns the jobs that were enqueued under these, at any depth, without these jobs themselves."""
    found: dict[int, JobRecord] = {}
    by_group: dict[str, list[JobRecord]] = {}
    for job in jobs:
        if job.flags & OWNS_SCOPE:
            by_group.setdefault(job.group_id or job.id, []).append(job)
    for group_id, owners in by_group.items():
        above = {job.id for job in owners}
        # A child is enqueued after its parent, so it also comes after it here.
        async for member, _ in jobs_of(store, tenant, Filter(group_id=group_id)):
            if member.parent_id in above:
                above.add(member.id)
                found[member.seq] = member
    return [member for member in found.values() if all(member.seq != job.seq for job in jobs)]


async def group_value(store: WorkflowStore, root: JobRecord, group: GroupRecord | None, describe: Describer) -> object:
    """Returns the value of a group, with every part of it decoded by the type that produced it.

    The value of a group that is only its root is the result of the root. A group to which no job has contributed has
    the value None.
    """
    one_by_one = group is not None and group.value.reducer in KEPT_ONE_BY_ONE
    contributions = await store.contributions(root.tenant, root.id) if one_by_one else ()
    return value_of(root, group, contributions, describe.value)
