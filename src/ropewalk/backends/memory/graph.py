"""What connects jobs: the edges of dependencies, which are found from both ends, and the scopes of groups.

An edge stays as long as its child, so that the child can tell what it waited for.
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
"""The name of an edge: (seq of the child, position)."""


class Edges:
    """All edges, by child and by parent."""

    def __init__(self) -> None:
        self._of_child: dict[int, dict[int, Edge]] = {}
        """All edges, by the seq of the child and the position."""
        self._waiting: dict[ParentKey, dict[Name, Edge]] = {}
        """The unresolved edges, by parent."""
        self._resolved: dict[ParentKey, dict[Name, Edge]] = {}
        """The resolved edges, by parent."""

    def put(self, edge: Edge) -> None:
        """Stores an edge that is new, or has another ending now."""
        key, name = (edge.kind, edge.parent), (edge.seq, edge.position)
        self._forget(edge)
        self._of_child.setdefault(edge.seq, {})[edge.position] = edge
        side = self._waiting if edge.ending is None else self._resolved
        side.setdefault(key, {})[name] = edge

    def end(self, edges: Sequence[Edge], ending: Ending | None) -> None:
        """Resolves edges; with None, they wait again."""
        for edge in edges:
            self.put(structs.replace(edge, ending=ending))

    def waiting(self, parents: Sequence[ParentKey], limit: int) -> list[Edge]:
        """Returns unresolved edges to these parents, up to a limit."""
        return list(islice(chain.from_iterable(self._waiting.get(key, {}).values() for key in parents), limit))

    def resolved(self, parents: Sequence[ParentKey]) -> list[Edge]:
        """Returns the resolved edges to these parents."""
        return [edge for key in parents for edge in self._resolved.get(key, {}).values()]

    def of_children(self, seqs: Iterable[int]) -> list[Edge]:
        """Returns the edges of these jobs to their parents, ordered by child and position."""
        return [edge for seq in sorted(set(seqs)) for _, edge in sorted(self._of_child.get(seq, {}).items())]

    def dependants(
        self, parent: int, kinds: Iterable[ParentKind] = (ParentKind.JOB, ParentKind.TREE, ParentKind.CHAIN)
    ) -> Iterator[int]:
        """Yields all jobs with an edge to this job, its tree or its chain, whether it is resolved or not."""
        for kind in kinds:
            for side in (self._waiting, self._resolved):
                yield from (seq for seq, _ in side.get((kind, parent), {}))

    def remove_child(self, seq: int) -> None:
        """Removes the edges of a job that is deleted."""
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
    """An orphan group that nobody has reported yet."""

    orphan: OrphanRecord
    hidden_until: Instant = 0
    """Until then it is not handed out again, because a worker is reporting it."""


class Groups:
    """The scopes, and what is stored for whole groups."""

    def __init__(self) -> None:
        self.scopes: dict[int, Scope] = {}
        """The scopes, by the seq of their owner."""
        self.contributions: dict[int, list[Contribution]] = {}
        """The contributions that are stored one by one, in order, by the scope of the group's root."""
        self.orphans: dict[str, UnreportedOrphan] = {}
        """The orphan groups, by id, in the order in which they closed."""
        self.orphans_recorded_until: Instant = 0
        """Until then, the orphan groups of every client are recorded, because a worker has asked for orphan groups
        lately."""
        self._by_group: dict[tuple[str, str], dict[int, Scope]] = {}

    def add(self, scope: Scope) -> None:
        self.scopes[scope.id] = scope
        self._by_group.setdefault((scope.tenant, scope.group_id), {})[scope.id] = scope

    def of_group(self, tenant: str, group_id: str) -> list[Scope]:
        """Returns all scopes of a group."""
        return list(self._by_group.get((tenant, group_id), {}).values())

    def is_open(self, owner: int) -> bool:
        """Whether this job owns a scope that is open."""
        scope = self.scopes.get(owner)
        return scope is not None and scope.closed_at is None

    def remove(self, owner: int) -> None:
        """Removes the scope of a job that is deleted; with a root, also the group's contributions."""
        scope = self.scopes.pop(owner, None)
        if scope is None:
            return
        self.contributions.pop(owner, None)
        of_group = self._by_group[scope.tenant, scope.group_id]
        del of_group[owner]
        if not of_group:
            del self._by_group[scope.tenant, scope.group_id]
