"""Finds the jobs that a new job depends on, and how those of them that have ended did so."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from msgspec import Struct, structs

from ropewalk.backends.workflow.scopes import chain_failure, chain_head, owned_scope, root_of
from ropewalk.backends.workflow.unit_of_work import Resolve, UnitOfWork
from ropewalk.domain.jobs.flags import CHAINED, CONTINUED
from ropewalk.domain.jobs.record import JobRecord, NewJob
from ropewalk.domain.workflow.dependency import Edge, Ending, NewGate, ParentKind, ParentRef, ending_of
from ropewalk.domain.workflow.gate import ParentEnd
from ropewalk.errors import InvalidInput, LimitExceeded, NotFound


class Parent(Struct, frozen=True):
    """One entry of depends_on. `job` is None if it does not exist; for a chain, it is the first member."""

    ref: ParentRef
    job: JobRecord | None
    ending: Ending | None
    """How it ended; None if it has not."""
    failure: str | None = None
    """What ended and why, if that is not the job alone (see ParentEnd)."""

    def edge(self, seq: int, position: int) -> Edge:
        """Returns the edge from a child to this parent."""
        kind = ParentKind.MISSING if self.job is None else self.ref.kind
        # A missing parent has no number: its place among the others keeps the edge apart from them.
        parent = -1 - position if self.job is None else self._number(self.job)
        parent_id = self.ref.id if self.job is None else self._name(self.job)
        return Edge(kind=kind, parent=parent, parent_id=parent_id, seq=seq, position=position, ending=self.ending)

    def _name(self, job: JobRecord) -> str:
        """A chain is named after its first member, even if that was deleted."""
        return job.chain_id or job.id if self.ref.kind is ParentKind.CHAIN else job.id

    def _number(self, job: JobRecord) -> int:
        """A chain has the number of its first member, even if that was deleted."""
        return chain_head(job) if self.ref.kind is ParentKind.CHAIN else job.seq


def parents_of(new: NewJob) -> Sequence[ParentRef]:
    """Returns what a new job waits for."""
    return () if new.gate is None else new.gate.parents


def found(unit_of_work: UnitOfWork, gate: NewGate, tenant: str, drafted: Mapping[str, JobRecord]) -> list[Parent]:
    """Returns every parent once, in order. `drafted` are the jobs that are submitted together with this one. Raises
    NotFound."""
    outside = unit_of_work.find_shared(tenant, [ref.id for ref in gate.parents if ref.id not in drafted])
    parents: dict[tuple[ParentKind, str], Parent] = {}
    for ref in gate.parents:
        parent = _parent(unit_of_work, ref, drafted.get(ref.id) or outside.get(ref.id))
        if parent.job is None and not gate.allow_missing:
            what = "job" if ref.kind is not ParentKind.CHAIN or ref.id not in outside else "end of the chain of"
            raise NotFound(
                f"depends_on: no {what} {ref.id!r} (never submitted here, or deleted); "
                "submit it first or in the same batch, or say allow_missing=True"
            )
        parents.setdefault((ref.kind, ref.id if parent.job is None else parent.job.id), parent)
    return list(parents.values())


def check_inside(
    unit_of_work: UnitOfWork, parents: list[Parent], scope_id: int, root: int, siblings: Collection[str]
) -> None:
    """Raises InvalidInput if a job inside of a group depends on anything but siblings and jobs of older groups: so
    whatever is queued later, no job can wait for itself.

    `siblings` are the ids of the jobs that are submitted together with this one.
    """
    for parent in parents:
        job = parent.job
        if job is None or parent.ending is not None or job.id in siblings or job.scope_id == scope_id:
            continue
        if root_of(unit_of_work, job) >= root:
            raise InvalidInput(
                f"depends_on: {job.id} is neither a sibling (queued by the same job) nor of a group opened before "
                "this one, so the two could come to wait for each other",
                field="depends_on",
            )


def depth_below(parents: list[Parent], depth_max: int) -> int:
    """Returns how many dependencies are below a job with these parents. Raises LimitExceeded."""
    depth = 1 + max((parent.job.depth for parent in parents if parent.job is not None), default=0)
    if depth > depth_max:
        raise LimitExceeded(f"depends_on: {depth} dependencies deep, over {depth_max}", field="depends_on")
    return depth


def ends(parents: list[Parent]) -> list[ParentEnd]:
    """Returns how those parents ended that have ended."""
    return [ParentEnd(each.ref.id, each.ending, each.failure) for each in parents if each.ending is not None]


def highest_priority(parents: list[Parent]) -> int | None:
    """Returns the highest priority of the parents; None if there are none."""
    return max((parent.job.priority for parent in parents if parent.job is not None), default=None)


def endings_now(unit_of_work: UnitOfWork, tenant: str, edges: Sequence[Edge]) -> list[Ending | None]:
    """Returns how the parents of one job ended, as of now; None for a parent that is open, or open again.

    An edge that is not resolved stays so even if its parent has ended, because postponed work will resolve it.
    """
    ended = [edge for edge in edges if edge.ending is not None and edge.kind is not ParentKind.MISSING]
    jobs = unit_of_work.find_shared(tenant, [edge.parent_id for edge in ended])
    now = {edge.position: _ending_now(unit_of_work, edge, jobs.get(edge.parent_id)) for edge in ended}
    return [now.get(edge.position, edge.ending) for edge in edges]


def _ending_now(unit_of_work: UnitOfWork, edge: Edge, job: JobRecord | None) -> Ending | None:
    """A parent that was deleted keeps the ending that it had."""
    if job is None or job.seq != edge.parent:
        return edge.ending
    parent = _parent(unit_of_work, ParentRef(edge.kind, job.id), job)
    return edge.ending if parent.job is None else parent.ending


def resolve_now(unit_of_work: UnitOfWork, left: Resolve) -> Resolve | None:
    """Returns postponed work as it is due by now; None if the parent is open again.

    The edges that are still unresolved belong to the parent's last end: a retry without cascade is possible only when
    all are resolved, and after one with cascade they wait for the new run.
    """
    for job in unit_of_work.load([left.parent]):
        parent = _parent(unit_of_work, ParentRef(left.kind, job.id), job)
        if parent.job is not None:
            return (
                None if parent.ending is None else structs.replace(left, ending=parent.ending, failure=parent.failure)
            )
    return left


def _parent(unit_of_work: UnitOfWork, ref: ParentRef, job: JobRecord | None) -> Parent:
    if job is None:
        return Parent(ref, None, Ending.COMPLETED)
    match ref.kind:
        case ParentKind.JOB | ParentKind.MISSING:
            return Parent(ref, job, ending_of(job.status) if job.terminal else None)
        case ParentKind.TREE:
            return _tree(unit_of_work, ref, job)
        case ParentKind.CHAIN:
            return _chain(unit_of_work, ref, job)


def _tree(unit_of_work: UnitOfWork, ref: ParentRef, job: JobRecord) -> Parent:
    scope = owned_scope(unit_of_work, job)
    if scope is not None:
        return Parent(ref, job, scope.ending if scope.closed_at is not None else None, scope.failure)
    return Parent(ref, job, ending_of(job.status) if job.terminal else None)


def _chain(unit_of_work: UnitOfWork, ref: ParentRef, job: JobRecord) -> Parent:
    if not job.flags & CHAINED or job.chain_id is None:
        return Parent(ref, job, ending_of(job.status) if job.terminal else None)
    first = job if job.id == job.chain_id else unit_of_work.find_shared(job.tenant, [job.chain_id]).get(job.chain_id)
    tail = unit_of_work.chain_tail(job.tenant, job.chain_id) or job
    if tail.flags & CONTINUED:
        # The member that ended the chain was deleted, and its ending with it.
        return Parent(ref, None, Ending.COMPLETED)
    if not tail.terminal:
        return Parent(ref, first or job, None)
    return Parent(ref, first or job, ending_of(tail.status), chain_failure(tail, job.chain_id))
