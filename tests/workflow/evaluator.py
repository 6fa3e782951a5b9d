"""What must become of a graph, worked out from its definition alone: no store, no order of events, no bookkeeping.

Every job that exists ends; how it ends follows from how its parents end and from its script. A tree is the set of jobs
under its root, looked at when all is over. So nothing here counts, or can be wrong in the way counters are.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, Literal, Self

from tests.workflow.graphs import Attempt, Gate, Graph, Node, Ref

Status = Literal["completed", "failed", "dead_letter", "cancelled"]
Ending = Literal["completed", "failed", "cancelled"]


_BY_POLICY: Final[dict[str, Status]] = {"fail": "failed", "cancel": "cancelled", "skip": "completed"}


class AmbiguousError(Exception):
    """How this job ends depends on which of its parents ends first."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


@dataclass(slots=True)
class Life:
    """How a job ended, and what it left."""

    status: Status
    doomed: bool = False
    """failed or cancelled by its gate"""
    started: bool = False
    children: list[str] = field(default_factory=list)
    then: str | None = None
    values: list[int] = field(default_factory=list)


class Evaluation:
    """Of a graph, from its first submission until nothing happens any more."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.lives: dict[str, Life] = {}
        """of every job that came to be, once it is `run`"""

    # ── what there is

    def run(self) -> Self:
        for node in self.graph.roots:
            self._exist(node.name)
        return self

    def _exist(self, name: str) -> None:
        node = self.graph.nodes[name]
        if node.late and not all(self._is_there(ref.name) for ref in (node.gate.parents if node.gate else ())):
            return
        life = self.life(name)
        for child in (*life.children, *([life.then] if life.then else [])):
            self._exist(child)

    def _is_there(self, name: str) -> bool:
        node = self.graph.nodes[name]
        if node.owner is None:
            return not node.late or all(self._is_there(ref.name) for ref in (node.gate.parents if node.gate else ()))
        if not self._is_there(node.owner):
            return False
        owner = self.life(node.owner)
        return name in owner.children or owner.then == name

    # ── how it ends

    def life(self, name: str) -> Life:
        if name not in self.lives:
            self.lives[name] = self._live(self.graph.nodes[name])
        return self.lives[name]

    def _live(self, node: Node) -> Life:
        if node.name in self.graph.cancelled:
            return Life("cancelled")
        doomed = None if node.gate is None else self._doomed(node, node.gate)
        if doomed is None:
            return _perform(node, node.attempts)
        if doomed == "completed":
            return Life("completed")
        life = Life(doomed, doomed=True)
        if doomed == "failed" and node.compensation:
            life.children.append(node.compensation)
        return life

    def _doomed(self, node: Node, gate: Gate) -> Status | None:
        """None: it runs."""
        if self._lets_run(gate):
            return None
        endings = [self.ending(ref) for ref in gate.parents]
        bad = {ending for ending in endings if ending != "completed"}
        if gate.policy is None and len(bad) > 1:
            raise AmbiguousError(node.name)
        policy = gate.policy or ("cancel" if bad == {"cancelled"} else "fail")
        return _BY_POLICY[policy]

    def _lets_run(self, gate: Gate) -> bool:
        endings = [self.ending(ref) for ref in gate.parents]
        hits = len(endings) if gate.of == "done" else endings.count("completed")
        return hits >= gate.need or gate.policy == "run"

    def refuses_retry_of(self, name: str) -> bool:
        """It never started, and with its parents as they ended it cannot start either."""
        gate = self.graph.nodes[name].gate
        return gate is not None and not self.life(name).started and not self._lets_run(gate)

    def ending(self, ref: Ref) -> Ending:
        match ref.kind:
            case "job":
                return _ending(self.life(ref.name).status)
            case "chain":
                return _ending(self.life(self.last_of(self.graph.chain_of(ref.name))).status)
            case "tree":
                if not self.members(ref.name):
                    return _ending(self.life(ref.name).status)
                return "completed" if self.succeeded(ref.name) else "failed"

    def last_of(self, name: str) -> str:
        while (following := self.life(name).then) is not None:
            name = following
        return name

    # ── trees and groups

    def members(self, name: str) -> list[str]:
        """Of its own tree, one level down: what it queued, and where it is the first of a chain, all the others."""
        members = list(self.life(name).children)
        if not self.graph.nodes[name].continues:
            following = self.life(name).then
            while following is not None:
                members.append(following)
                following = self.life(following).then
        return members

    def succeeded(self, name: str) -> bool:
        return self.life(name).status == "completed" and all(map(self.succeeded, self.members(name)))

    def group(self, root: str) -> Iterator[str]:
        yield root
        for member in self.members(root):
            yield from self.group(member)

    def contributions(self, root: str) -> list[int]:
        return [value for name in self.group(root) for value in self.life(name).values]

    def has_record(self, root: str) -> bool:
        """A group is more than its root, or its root asked for a fold."""
        folds = self.graph.reducers[root] not in ("last", "final")
        return bool(self.members(root)) or (folds and bool(self.life(root).values))

    def possible_values(self, root: str) -> set[object]:
        """What the group's value may be. Order decides only about the last and the final one."""
        values = self.contributions(root)
        if not values:
            return {None}
        match self.graph.reducers[root]:
            case "last" | "final":
                return set(values)
            case "sum":
                return {sum(values)}
            case "count":
                return {len(values)}
            case "min":
                return {min(values)}
            case "max":
                return {max(values)}
            case "list":
                return {tuple(sorted(values))}


class AfterRetry(Evaluation):
    """Of a graph that was over when one of its jobs was retried."""

    def __init__(self, before: Evaluation) -> None:
        super().__init__(before.graph)
        assert before.graph.retried is not None
        self._before = before
        self._first = before.graph.retried
        self.refused = before.refuses_retry_of(self._first)
        self.again = set() if self.refused else {self._first}
        """the jobs that have another run"""
        if before.graph.cascade and not self.refused:
            self._spread()

    def _spread(self) -> None:
        """To whatever a job that is open again had doomed, unless something else keeps its gate shut."""
        while doomed := [name for name in self._before.lives if self._may_open(name)]:
            self.again.update(doomed)

    def _may_open(self, name: str) -> bool:
        node, life = self.graph.nodes[name], self._before.lives[name]
        if name in self.again or not life.doomed or node.gate is None:
            return False
        bad = [ref for ref in node.gate.parents if self._before.ending(ref) != "completed"]
        still_bad = [ref for ref in bad if not self._is_open_again(ref)]
        return len(node.gate.parents) - len(still_bad) >= node.gate.need

    def _is_open_again(self, ref: Ref) -> bool:
        match ref.kind:
            case "job":
                return ref.name in self.again
            case "chain":
                return self._before.last_of(self.graph.chain_of(ref.name)) in self.again
            case "tree":
                return not self.again.isdisjoint(self._before.group(ref.name))

    def life(self, name: str) -> Life:
        if name in self.lives:
            return self.lives[name]
        before = self._before.lives.get(name)
        if name == self._first and not self.refused:
            assert before is not None
            life = _perform(self.graph.nodes[name], self.graph.nodes[name].rerun)
            life.children = [*before.children, *life.children]
        elif before is None or name in self.again:
            life = self._live(self.graph.nodes[name])
        else:
            life = before
        self.lives[name] = life
        return life

    def had_record(self, root: str) -> bool:
        return root in self._before.lives and self._before.has_record(root)

    def closed_again(self, root: str) -> bool:
        """A group that opened again, or came to be only now."""
        return root not in self._before.lives or not self.again.isdisjoint(self.group(root))


def _perform(node: Node, script: tuple[Attempt, ...]) -> Life:
    life = Life("completed", started=True)
    used = crashes = 0
    for number in range(1000):
        attempt = script[min(number, len(script) - 1)]
        used += 1
        life.children += [child for child in attempt.spawns if child not in life.children]
        match attempt.end:
            case "ok":
                life.children += attempt.queues
                life.then = attempt.then
                life.values += [] if attempt.value is None else [attempt.value]
                return life
            case "resolved":
                return life
            case "abort" | "resolved_failed":
                return _failed(node, life, "failed")
            case "stop":
                life.status = "cancelled"
                return life
            case "nap":
                used -= 1
            case "crash":
                crashes += 1
                if crashes >= node.max_crashes or used >= node.max_attempts:
                    return _failed(node, life, "dead_letter")
            case "error":
                if used >= node.max_attempts:
                    return _failed(node, life, "dead_letter")
    raise AssertionError(f"{node.name} never ends")


def _failed(node: Node, life: Life, status: Status) -> Life:
    life.status = status
    if node.compensation:
        life.children.append(node.compensation)
    return life


def _ending(status: Status) -> Ending:
    return "failed" if status == "dead_letter" else status
