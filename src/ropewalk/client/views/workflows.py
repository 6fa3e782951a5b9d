"""Jobs that belong together, as people see them: a workflow, a group, and what depends on what in it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from ropewalk.client.views.jobs import JobInfo
from ropewalk.domain.jobs.states import State
from ropewalk.domain.workflow.dependency import Edge, Ending, ParentKind


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
    """why the value cannot be told: contributions that fold differently"""
    nodes: Sequence[JobInfo] = field(repr=False)
    edges: Sequence[EdgeInfo] = field(repr=False)


def edge_info(edge: Edge, child: str) -> EdgeInfo:
    return EdgeInfo(parent=edge.parent_id, child=child, kind=edge.kind, ending=edge.ending)
