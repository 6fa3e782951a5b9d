"""Scopes by owner and by group, the contributions kept one by one, and the groups that closed with nobody waiting."""

from __future__ import annotations

from msgspec import Struct

from ropewalk.domain.time import Instant
from ropewalk.domain.workflow.group_value import Contribution
from ropewalk.domain.workflow.scope import Scope
from ropewalk.ports.store.messages import Orphan


class Untold(Struct):
    """An orphan, and until when whoever took it is left in peace."""

    orphan: Orphan
    hidden_until: Instant = 0


class Groups:
    def __init__(self) -> None:
        self.scopes: dict[int, Scope] = {}
        """by the seq of their owner"""
        self.contributions: dict[int, list[Contribution]] = {}
        """by the scope of the group's root, in the order they came"""
        self.orphans: dict[str, Untold] = {}
        """by id, in the order they closed"""
        self._by_group: dict[tuple[str, str], dict[int, Scope]] = {}

    def add(self, scope: Scope) -> None:
        self.scopes[scope.id] = scope
        self._by_group.setdefault((scope.tenant, scope.group_id), {})[scope.id] = scope

    def of_group(self, tenant: str, group_id: str) -> list[Scope]:
        return list(self._by_group.get((tenant, group_id), {}).values())

    def is_open(self, owner: int) -> bool:
        scope = self.scopes.get(owner)
        return scope is not None and scope.closed_at is None

    def remove(self, owner: int) -> None:
        """The job that owned it is gone; of a root, the group's contributions go, too."""
        scope = self.scopes.pop(owner, None)
        if scope is None:
            return
        self.contributions.pop(owner, None)
        of_group = self._by_group[scope.tenant, scope.group_id]
        del of_group[owner]
        if not of_group:
            del self._by_group[scope.tenant, scope.group_id]
