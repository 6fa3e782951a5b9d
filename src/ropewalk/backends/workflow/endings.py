"""What the end of a job means to others: those that depend on it, its chain, and the scopes that count it."""

from __future__ import annotations

from ropewalk.backends.workflow.unit_of_work import Item, Resolve
from ropewalk.domain.jobs.flags import CHAINED, HAS_DEPENDANTS, OWNS_SCOPE
from ropewalk.domain.jobs.record import JobRecord
from ropewalk.domain.jobs.states import Status
from ropewalk.domain.workflow.dependency import ParentKind, ending_of
from ropewalk.domain.workflow.scope import ScopeChange


def endings_of(job: JobRecord, *, continued: bool = False) -> list[Item]:
    """Everything was written that belongs under the job. `continued`: its chain goes on with another member."""
    ending = ending_of(job.status)
    items: list[Item] = []
    if job.flags & HAS_DEPENDANTS:
        items.append(Resolve(ParentKind.JOB, job.seq, job.id, ending))
    if job.flags & (HAS_DEPENDANTS | CHAINED) and not continued:
        items.append(Resolve(ParentKind.CHAIN, chain_head(job), job.chain_id or job.id, ending))
    if job.flags & HAS_DEPENDANTS and not job.flags & OWNS_SCOPE:
        items.append(Resolve(ParentKind.TREE, job.seq, job.id, ending))
    items.extend(_counts(job))
    return items


def chain_head(job: JobRecord) -> int:
    """The first member of its chain: later ones are members of its scope."""
    if not job.chain_index:
        return job.seq
    assert job.scope_id is not None, f"job {job.id} continues a chain outside its scope"
    return job.scope_id


def _counts(job: JobRecord) -> list[Item]:
    """Its own scope loses its owner; the one above counts how it ended, and that its tree did where it has none."""
    ok = job.status is Status.COMPLETED
    counts: list[Item] = []
    if job.flags & OWNS_SCOPE:
        own = ScopeChange(scope=job.seq)
        own.leave(ok=ok)
        counts.append(own)
    if job.scope_id is not None:
        above = ScopeChange(scope=job.scope_id)
        above.tally(job.status)
        if not job.flags & OWNS_SCOPE:
            above.leave(ok=ok)
        counts.append(above)
    return counts
