"""Scopes: which scope a job is in, how a scope is opened, and which scopes and dependants the end of a job concerns.

The scope of a job is opened with its first member, so a plain job never has one.
"""

from __future__ import annotations

from collections.abc import Sequence

from ropewalk.backends.workflow.unit_of_work import Item, Resolve, UnitOfWork
from ropewalk.domain.jobs.flags import CHAINED, GROUPED, HAS_DEPENDANTS, OWNS_SCOPE
from ropewalk.domain.jobs.record import JobRecord
from ropewalk.domain.jobs.states import Status
from ropewalk.domain.workflow import scope as scopes
from ropewalk.domain.workflow.dependency import Edge, ParentKind, ending_of
from ropewalk.domain.workflow.scope import Scope, ScopeChange
from ropewalk.ports.store.workflows import OrphanRecord


def scope_of(unit_of_work: UnitOfWork, owner: JobRecord) -> Scope:
    """Returns the scope that this job owns, and opens it if there is none yet."""
    held = owned_scope(unit_of_work, owner)
    if held is not None:
        return held
    root = root_scope(unit_of_work, owner)
    above = None if owner.scope_id is None else unit_of_work.scopes([owner.scope_id]).get(owner.scope_id)
    opened = scopes.opened(owner, root=root, above=above)
    unit_of_work.take(owner)
    owner.flags |= OWNS_SCOPE
    unit_of_work.add_scope(opened)
    return opened


def owned_scope(unit_of_work: UnitOfWork, owner: JobRecord) -> Scope | None:
    """Returns the scope that this job owns; None if it owns none."""
    return unit_of_work.scopes([owner.seq]).get(owner.seq) if owner.flags & OWNS_SCOPE else None


def root_scope(unit_of_work: UnitOfWork, job: JobRecord) -> Scope | None:
    """Returns the scope of the group's root; None if the root owns none or was deleted."""
    if job.scope_id is None:
        return owned_scope(unit_of_work, job)
    above = unit_of_work.scopes([job.scope_id]).get(job.scope_id)
    return None if above is None else unit_of_work.scopes([above.root]).get(above.root)


def root_of(unit_of_work: UnitOfWork, job: JobRecord) -> int:
    """Returns the `seq` of the group's root."""
    if job.scope_id is None:
        return job.seq
    above = unit_of_work.scopes([job.scope_id]).get(job.scope_id)
    return job.seq if above is None else above.root


def enter(scope: Scope, members: Sequence[JobRecord]) -> None:
    """Makes new records, which are not inserted yet, members of a scope."""
    scopes.join(scope, len(members))
    for job in members:
        job.scope_id = scope.id
        job.group_id = scope.group_id
        job.flags |= GROUPED


def endings_of(job: JobRecord, *, continued: bool = False) -> list[Item]:
    """Returns the work that follows from the end of a job, after everything below the job was written. `continued` says
    that its chain goes on with another member."""
    ending = ending_of(job.status)
    items: list[Item] = []
    if job.flags & HAS_DEPENDANTS:
        items.append(Resolve(ParentKind.JOB, job.seq, job.id, ending))
    if job.flags & (HAS_DEPENDANTS | CHAINED) and not continued:
        first = job.chain_id or job.id
        items.append(Resolve(ParentKind.CHAIN, chain_head(job), first, ending, chain_failure(job, first)))
    if job.flags & HAS_DEPENDANTS and not job.flags & OWNS_SCOPE:
        items.append(Resolve(ParentKind.TREE, job.seq, job.id, ending))
    items.extend(_counts(job))
    return items


def chain_failure(last: JobRecord, first_id: str) -> str | None:
    """Returns how a chain ended, for the error of jobs that depend on it; None if its first job was its last, or if it
    succeeded."""
    if last.id == first_id or last.status is Status.COMPLETED:
        return None
    return f"the chain of {first_id}, whose job {last.id} ended as {ending_of(last.status).value}"


def chain_head(job: JobRecord) -> int:
    """Returns the `seq` of the first member of a job's chain: the later members are members of its scope."""
    if not job.chain_index:
        return job.seq
    assert job.scope_id is not None, f"job {job.id} continues a chain outside its scope"
    return job.scope_id


def _counts(job: JobRecord) -> list[Item]:
    """Returns the changes of scopes: the own scope loses its owner, and the scope above counts how the job ended. If
    the job owns no scope, the scope above also counts that its tree has ended."""
    ok = job.status is Status.COMPLETED
    counts: list[Item] = []
    if job.flags & OWNS_SCOPE:
        own = ScopeChange(scope=job.seq)
        own.leave(ok=ok)
        counts.append(own)
    if job.scope_id is not None:
        above = ScopeChange(scope=job.scope_id)
        above.count(job.status)
        if not job.flags & OWNS_SCOPE:
            above.leave(ok=ok)
        counts.append(above)
    return counts


def is_whole_group(edge: Edge, job: JobRecord) -> bool:
    """Whether this edge leads to a whole group with a scope, which is the tree under the root of the group."""
    return edge.kind is ParentKind.TREE and job.scope_id is None and bool(job.flags & OWNS_SCOPE)


def orphan_of(scope: Scope) -> OrphanRecord:
    """Returns the record of a group that closed while nobody waited for it. Its id contains the generation, so a group
    that reopens and closes again has another one."""
    assert scope.closed_at is not None, f"group {scope.group_id} is open"
    return OrphanRecord(
        id=f"{scope.tenant}/{scope.group_id}/{scope.generation}",
        tenant=scope.tenant,
        group_id=scope.group_id,
        closed_at=scope.closed_at,
    )
