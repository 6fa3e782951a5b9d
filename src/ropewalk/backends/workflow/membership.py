"""Who is in whose scope. A scope exists from the first member on; a plain job never has one."""

from __future__ import annotations

from collections.abc import Sequence

from ropewalk.backends.workflow.unit_of_work import Ledger
from ropewalk.domain.jobs.flags import GROUPED, OWNS_SCOPE
from ropewalk.domain.jobs.record import JobRecord
from ropewalk.domain.workflow import scope as scopes
from ropewalk.domain.workflow.scope import Scope


def scope_of(ledger: Ledger, owner: JobRecord) -> Scope:
    """The owner's scope; opened if it has none yet."""
    held = owned_scope(ledger, owner)
    if held is not None:
        return held
    root = root_scope(ledger, owner)
    opened = scopes.opened(owner, root=root)
    ledger.take(owner)
    owner.flags |= OWNS_SCOPE
    ledger.add_scope(opened)
    return opened


def owned_scope(ledger: Ledger, owner: JobRecord) -> Scope | None:
    return ledger.scopes([owner.seq]).get(owner.seq) if owner.flags & OWNS_SCOPE else None


def root_scope(ledger: Ledger, job: JobRecord) -> Scope | None:
    """The scope of the group's root; None for a root without one, and where the root is deleted."""
    if job.scope_id is None:
        return owned_scope(ledger, job)
    above = ledger.scopes([job.scope_id]).get(job.scope_id)
    return None if above is None else ledger.scopes([above.root]).get(above.root)


def root_of(ledger: Ledger, job: JobRecord) -> int:
    """The number of its group's root."""
    if job.scope_id is None:
        return job.seq
    above = ledger.scopes([job.scope_id]).get(job.scope_id)
    return job.seq if above is None else above.root


def enter(scope: Scope, members: Sequence[JobRecord]) -> None:
    """New records, not inserted yet, become members."""
    scopes.join(scope, len(members))
    for job in members:
        job.scope_id = scope.id
        job.group_id = scope.group_id
        job.flags |= GROUPED
