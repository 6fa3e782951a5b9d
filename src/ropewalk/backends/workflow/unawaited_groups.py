"""A group that closed with nobody waiting for it, under an id that stays the same however often it is told."""

from __future__ import annotations

from ropewalk.domain.workflow.scope import Scope
from ropewalk.ports.store.messages import Orphan


def orphan_of(scope: Scope) -> Orphan:
    """One for each time the group closed: a reopened group that closes again is told again."""
    assert scope.closed_at is not None, f"group {scope.group_id} is open"
    return Orphan(
        id=f"{scope.tenant}/{scope.group_id}/{scope.generation}",
        tenant=scope.tenant,
        group_id=scope.group_id,
        closed_at=scope.closed_at,
    )
