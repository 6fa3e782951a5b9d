"""Jobs that belong together, as people see them: a workflow, a group, and what depends on what in it.

Reads the jobs that belong together, and the edges between them, page by page.
"""

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
    """`child` waits, or waited, for `parent`. (What was queued by what is `parent_id` of the jobs themselves.)"""

    parent: str
    child: str
    kind: ParentKind
    """for the job alone, the tree under it, or its chain"""
    ending: Ending | None
    """how the parent ended; None while it has not"""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowInfo:
    """Every job of a workflow, in the order they were queued, and what depends on what. Iterates over its jobs."""

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
        """How many of its jobs are in which state."""
        return Counter(node.state for node in self.nodes)

    @property
    def created_at(self) -> datetime | None:
        return min((node.created_at for node in self.nodes), default=None)

    @property
    def started_at(self) -> datetime | None:
        return min((node.started_at for node in self.nodes if node.started_at is not None), default=None)

    @property
    def finished_at(self) -> datetime | None:
        """When the last of its jobs ended; None while one has not."""
        ended = [node.finished_at for node in self.nodes if node.finished_at is not None]
        return max(ended) if ended and len(ended) == len(self.nodes) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupInfo:
    """A root job and everything queued under it. Counts are of all its jobs, at any depth, the root included."""

    id: str
    state: Literal["open", "closed"]
    open: int
    """jobs not terminal"""
    completed: int
    failed: int
    cancelled: int
    generation: int
    """1, and one more every time it opened again"""
    closed_at: datetime | None
    value: object = field(repr=False)
    """so far, while it is open"""
    conflict: str | None
    """why the value cannot be told: contributions that fold differently, or a result that was forgotten"""
    nodes: Sequence[JobInfo] = field(repr=False)
    edges: Sequence[EdgeInfo] = field(repr=False)


def edge_info(edge: Edge, child: str) -> EdgeInfo:
    return EdgeInfo(parent=edge.parent_id, child=child, kind=edge.kind, ending=edge.ending)


PAGE: Final = 1000
UNFINISHED: Final = (State.PENDING, State.DELAYED, State.RETRYING, State.SCHEDULED, State.RUNNING)


async def jobs_of(
    store: Store, tenant: str, wanted: Filter, limit: int | None = None
) -> AsyncIterator[tuple[JobRecord, Instant]]:
    """In the order they were queued, each with the clock it was read at."""
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
    """What these jobs wait for, or waited for."""
    ids = {job.seq: job.id for job in jobs if job.gate is not None}
    edges: list[EdgeInfo] = []
    seqs = list(ids)
    for start in range(0, len(seqs), PAGE):
        found = await store.edges(seqs[start : start + PAGE])
        edges.extend(edge_info(edge, ids[edge.seq]) for edge in found)
    return edges


class Dependants:
    """The unfinished jobs of a tenant that depend on others, as they were when this was read.

    It looks through everything unfinished: for refusals and deletions, where being complete matters and speed does not.
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
        """Those that depend on these, directly or through others; not among them themselves."""
        reached = {job.seq for job in parents}
        chains = {job.scope_id for job in parents if job.chain_index}  # a chain has the number of its first member
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
    """Everything that was queued under these, at any depth; not these themselves."""
    found: dict[int, JobRecord] = {}
    by_group: dict[str, list[JobRecord]] = {}
    for job in jobs:
        if job.flags & OWNS_SCOPE:
            by_group.setdefault(job.group_id or job.id, []).append(job)
    for group_id, owners in by_group.items():
        above = {job.id for job in owners}
        # A child is queued after its parent, and comes after it here.
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
