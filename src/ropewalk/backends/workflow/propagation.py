"""Propagates the end of a job: edges are resolved, gates open or can no longer open, and scopes close, which has
consequences in turn.

The work is done in rounds, each of which reads and writes for all of its items together. It stops at a budget and
leaves the rest to `cascade`, so that a fan-out of any size does not make one transaction long. Every item may be
postponed: edges are resolved only once, and an item contains everything that a scope has to count.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import Final

from ropewalk.backends.workflow.culprit import blaming, change_each
from ropewalk.backends.workflow.parents import resolve_now
from ropewalk.backends.workflow.scopes import endings_of
from ropewalk.backends.workflow.submission import Draft, Ended
from ropewalk.backends.workflow.unit_of_work import Item, Resolve, UnitOfWork
from ropewalk.domain.jobs.record import JobRecord, NewJob
from ropewalk.domain.jobs.transition import Effects
from ropewalk.domain.workflow import gate
from ropewalk.domain.workflow import scope as scopes
from ropewalk.domain.workflow.dependency import Edge, Ending, ParentKind
from ropewalk.domain.workflow.gate import ParentEnd
from ropewalk.domain.workflow.scope import Scope, ScopeChange
from ropewalk.ports.store.consequences import ClosedGroup, Consequences, Moved

BUDGET: Final = 1000
"""One transaction resolves and changes this many edges and scopes at most."""
_PLACE: Final = attrgetter("seq", "position")


def both(first: Consequences, then: Consequences) -> Consequences:
    """Joins the consequences of two changes in one transaction."""
    return Consequences(
        moved=first.moved + then.moved,
        ready=first.ready + then.ready,
        closed=first.closed + then.closed,
        more=first.more or then.more,
        passed_over=first.passed_over + then.passed_over,
    )


class Propagation:
    """The consequences of one transaction. The caller adds endings by `ended` and `add`, and then calls `run` once."""

    def __init__(self, unit_of_work: UnitOfWork, budget: int = BUDGET) -> None:
        self._unit_of_work = unit_of_work
        self._budget = budget
        self._resolve: dict[tuple[ParentKind, int], Resolve] = {}
        self._changes: dict[int, ScopeChange] = {}
        self._deferred: dict[tuple[ParentKind | None, int], Item] = {}
        """Work that concerns records which this transaction passes over. A later transaction tries it again."""
        self.moved: list[Moved] = []
        self._ready: set[str] = set()
        self._closed: list[ClosedGroup] = []

    def ended(self, job: JobRecord, effects: Effects, *, continued: bool = False) -> None:
        """Records the end of a job: its attempt and event are written, its compensation is submitted, and its end is
        propagated."""
        self._unit_of_work.record(job, effects)
        if effects.compensation is not None:
            self.queue([effects.compensation], job)
            self._ready.add(effects.compensation.queue)
        if job.terminal:
            self.add(endings_of(job, continued=continued))
        else:
            self._ready.add(job.queue)

    def released(self, job: JobRecord) -> None:
        """Notes that a pending job has become ready. This is no move, but workers should look for it."""
        self._ready.add(job.queue)

    def queue(self, jobs: Sequence[NewJob], owner: JobRecord) -> None:
        """Submits jobs under a job that is ending. They were judged before, or cannot be refused."""
        draft = Draft(self._unit_of_work, jobs, owner)
        draft.judge()
        self.written(draft)

    def written(self, draft: Draft) -> None:
        """Writes a draft, and propagates the ends of its jobs that end at once."""
        for ended in draft.write():
            self._ended_at_once(ended)

    def add(self, items: Iterable[Item]) -> None:
        """Adds work to be done by `run`."""
        for item in items:
            if isinstance(item, Resolve):
                self._resolve[item.kind, item.parent] = item
            elif item.scope in self._changes:
                self._changes[item.scope].add(item)
            else:
                self._changes[item.scope] = item

    def resume(self, items: Iterable[Item]) -> None:
        """Takes up work that earlier transactions left. A parent may have been retried since, so its ending is read
        again."""
        left = list(items)
        self._unit_of_work.load([item.parent for item in left if isinstance(item, Resolve)])
        for item in left:
            due = resolve_now(self._unit_of_work, item) if isinstance(item, Resolve) else item
            if due is not None:
                self.add([due])

    def run(self) -> Consequences:
        """Does the work and returns its consequences."""
        while (self._resolve or self._changes) and self._budget > 0:
            self._resolve_edges()
            self._change_scopes()
        left: list[Item] = [*self._resolve.values(), *self._changes.values()]
        if left or self._deferred:
            self._unit_of_work.postpone([*left, *self._deferred.values()])
        return Consequences(moved=self.moved, ready=sorted(self._ready), closed=self._closed, more=bool(left))

    def _ended_at_once(self, ended: Ended) -> None:
        self.ended(ended.job, ended.effects)
        if ended.job.terminal:
            self.moved.append(Moved(job=ended.job, move=ended.effects.move))

    def _resolve_edges(self) -> None:
        asked = self._resolve
        if not asked or self._budget <= 0:
            return
        # If several parents end together, the error of a doomed job names the first of them in depends_on, in every
        # store.
        edges = sorted(self._unit_of_work.waiting_edges(list(asked), self._budget), key=_PLACE)
        exhausted = len(edges) >= self._budget
        self._budget -= len(edges)
        edges = [edge for edge in edges if not self._passed_over(edge)]
        # If the budget is used up, all of them stay: another query finds only the edges that are left.
        self._resolve = dict(asked) if exhausted else {}
        by_ending: defaultdict[Ending, list[Edge]] = defaultdict(list)
        by_child: defaultdict[int, list[ParentEnd]] = defaultdict(list)
        for edge in edges:
            resolve = asked[edge.kind, edge.parent]
            by_ending[resolve.ending].append(edge)
            by_child[edge.seq].append(ParentEnd(edge.parent_id, resolve.ending, resolve.failure))
        for ending, resolved in by_ending.items():
            self._unit_of_work.set_ending(resolved, ending)
        waiting = [job for job in self._unit_of_work.load(by_child) if job.gate is not None and not job.start_rev]
        change_each(self._unit_of_work, waiting, lambda job: self._parents_ended(job, by_child[job.seq]))

    def _passed_over(self, edge: Edge) -> bool:
        if not self._unit_of_work.passes_over("job", edge.seq):
            return False
        self._deferred[edge.kind, edge.parent] = self._resolve[edge.kind, edge.parent]
        return True

    def _parents_ended(self, job: JobRecord, ends: Sequence[ParentEnd]) -> None:
        self._unit_of_work.take(job)
        waited = job.unmet > 0
        effects = gate.parents_ended(job, ends, self._unit_of_work.now)
        if effects is not None:
            self._ended_at_once(Ended(job, effects))
        elif waited and not job.unmet:
            self._ready.add(job.queue)

    def _change_scopes(self) -> None:
        changes, self._changes = self._changes, {}
        held = self._unit_of_work.scopes(changes)
        self._budget -= len(changes)
        for scope_id, changed in changes.items():
            scope = held.get(scope_id)  # It is None if its root was deleted, so that nobody counts any more.
            if scope is None:
                continue
            if self._unit_of_work.passes_over("scope", scope_id):
                self._deferred[None, scope_id] = self._with_deferred(changed)
                continue
            with blaming("scope", scope_id, f"group {scope.group_id}"):
                self._change_scope(scope, changed)

    def _with_deferred(self, changed: ScopeChange) -> ScopeChange:
        before = self._deferred.get((None, changed.scope))
        if isinstance(before, ScopeChange):
            changed.add(before)
        return changed

    def _change_scope(self, scope: Scope, changed: ScopeChange) -> None:
        if scopes.change(scope, changed, self._unit_of_work.now):
            self._closes(scope)

    def _closes(self, scope: Scope) -> None:
        """Propagates that a scope has closed: to jobs that wait for its tree and to the scope above, or, for a root, to
        those who wait for the group."""
        self.add([Resolve(ParentKind.TREE, scope.id, scope.owner_id, scope.ending, scope.failure)])
        if scope.parent is not None:
            above = ScopeChange(scope=scope.parent)
            above.leave(ok=scope.ending is Ending.COMPLETED)
            self.add([above])
            return
        self._closed.append(ClosedGroup(scope.tenant, scope.group_id))
        awaited = scope.awaited_until is not None and scope.awaited_until > self._unit_of_work.now
        if not awaited:
            self._unit_of_work.report_orphan(scope)
