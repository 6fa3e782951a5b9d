"""Who waits for whom, found from both ends. An edge stays with its child, so that it can tell what it waited for.

Scopes by owner and by group, the contributions kept one by one, and the groups that closed with nobody waiting.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import TypeAlias

from msgspec import Struct, structs

from ropewalk.domain.time import Instant
from ropewalk.domain.workflow.dependency import Edge, Ending, ParentKind
from ropewalk.domain.workflow.group_value import Contribution
from ropewalk.domain.workflow.scope import Scope
from ropewalk.ports.store.workflows import OrphanRecord

ParentKey: TypeAlias = tuple[ParentKind, int]
Name: TypeAlias = tuple[int, int]
"""(child, position)"""


class Edges:
    def __init__(self) -> None:
        self._of_child: dict[int, dict[int, Edge]] = {}
        """by seq and position"""
        self._waiting: dict[ParentKey, dict[Name, Edge]] = {}
        """unresolved, by parent"""
        self._resolved: dict[ParentKey, dict[Name, Edge]] = {}

    def put(self, edge: Edge) -> None:
        """A new edge, or one that ended differently by now."""
        key, name = (edge.kind, edge.parent), (edge.seq, edge.position)
        self._forget(edge)
        self._of_child.setdefault(edge.seq, {})[edge.position] = edge
        side = self._waiting if edge.ending is None else self._resolved
        side.setdefault(key, {})[name] = edge

    def end(self, edges: Sequence[Edge], ending: Ending | None) -> None:
        for edge in edges:
            self.put(structs.replace(edge, ending=ending))

    def waiting(self, parents: Sequence[ParentKey], limit: int) -> list[Edge]:
        return list(islice(chain.from_iterable(self._waiting.get(key, {}).values() for key in parents), limit))

    def resolved(self, parents: Sequence[ParentKey]) -> list[Edge]:
        return [edge for key in parents for edge in self._resolved.get(key, {}).values()]

    def of_children(self, seqs: Iterable[int]) -> list[Edge]:
        """By child and position."""
        return [edge for seq in sorted(set(seqs)) for _, edge in sorted(self._of_child.get(seq, {}).items())]

    def dependants(
        self, parent: int, kinds: Iterable[ParentKind] = (ParentKind.JOB, ParentKind.TREE, ParentKind.CHAIN)
    ) -> Iterator[int]:
        """Everybody with an edge to this job, its tree or its chain, resolved or not."""
        for kind in kinds:
            for side in (self._waiting, self._resolved):
                yield from (seq for seq, _ in side.get((kind, parent), {}))

    def remove_child(self, seq: int) -> None:
        for edge in list(self._of_child.get(seq, {}).values()):
            self._forget(edge)

    def _forget(self, edge: Edge) -> None:
        of_child = self._of_child.get(edge.seq)
        held = None if of_child is None else of_child.pop(edge.position, None)
        if of_child is None or held is None:
            return
        if not of_child:
            del self._of_child[edge.seq]
        side = self._waiting if held.ending is None else self._resolved
        key = (held.kind, held.parent)
        del side[key][held.seq, held.position]
        if not side[key]:
            del side[key]


class UnreportedOrphan(Struct):
    """An orphan group, and until when it is hidden because somebody has taken it."""

    orphan: OrphanRecord
    hidden_until: Instant = 0


class Groups:
    def __init__(self) -> None:
        self.scopes: dict[int, Scope] = {}
        """by the seq of their owner"""
        self.contributions: dict[int, list[Contribution]] = {}
        """by the scope of the group's root, in the order they came"""
        self.orphans: dict[str, UnreportedOrphan] = {}
        """by id, in the order they closed"""
        self.orphans_recorded_until: Instant = 0
        """those of every client: somebody asked for orphans lately"""
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
