"""A graph of jobs as plain data: who waits for whom, and what every attempt will do. Nothing here runs anything."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal

Kind = Literal["job", "tree", "chain"]
Of = Literal["done", "success"]
Policy = Literal["fail", "cancel", "skip", "run"]
End = Literal["ok", "error", "abort", "crash", "stop", "nap", "resolved", "resolved_failed"]
Reducer = Literal["last", "final", "sum", "count", "min", "max", "list"]


@dataclass(frozen=True, slots=True)
class Ref:
    kind: Kind
    name: str

    def __str__(self) -> str:
        return self.name if self.kind == "job" else f"{self.kind}({self.name})"


@dataclass(frozen=True, slots=True)
class Gate:
    parents: tuple[Ref, ...]
    need: int
    of: Of
    policy: Policy | None

    def __str__(self) -> str:
        return f"{self.need} {self.of} of [{', '.join(map(str, self.parents))}] else {self.policy}"


@dataclass(frozen=True, slots=True)
class Attempt:
    """What one start of the handler does: spawn, then end. Only an `ok` end leaves a completion plan."""

    end: End
    spawns: tuple[str, ...] = ()
    queues: tuple[str, ...] = ()
    then: str | None = None
    value: int | None = None

    def __str__(self) -> str:
        told: list[str] = [self.end]
        told += [f"spawns {' '.join(self.spawns)}"] if self.spawns else []
        told += [f"queues {' '.join(self.queues)}"] if self.queues else []
        told += [f"continues with {self.then}"] if self.then else []
        told += [f"contributes {self.value}"] if self.value is not None else []
        return ", ".join(told)


@dataclass(frozen=True, slots=True)
class Node:
    """`owner` queued it (None: a root); a continuation's owner is the job it continues."""

    name: str
    attempts: tuple[Attempt, ...]
    """one per start; the last one repeats"""
    owner: str | None = None
    continues: bool = False
    gate: Gate | None = None
    max_attempts: int = 3
    max_crashes: int = 2
    compensation: str | None = None
    late: bool = False
    """a root submitted when everything it waits for is there"""
    rerun: tuple[Attempt, ...] = ()
    """what it does after it was retried"""

    def __str__(self) -> str:
        where = "root" if self.owner is None else f"{'after' if self.continues else 'under'} {self.owner}"
        told = f"{self.name} ({where}{', late' if self.late else ''})"
        told += f" waits for {self.gate}" if self.gate else ""
        told += f"; {self.max_attempts} attempts, {self.max_crashes} crashes: " + " | ".join(map(str, self.attempts))
        told += f"; again: {' | '.join(map(str, self.rerun))}" if self.rerun else ""
        return told + (f"; compensated by {self.compensation}" if self.compensation else "")


@dataclass(frozen=True, slots=True)
class Graph:
    seed: int
    nodes: dict[str, Node] = field(default_factory=dict)
    """in an order in which roots depend only on earlier ones"""
    reducers: dict[str, Reducer] = field(default_factory=dict)
    """by root: how its group folds what is contributed"""
    cancelled: tuple[str, ...] = ()
    """roots cancelled before anything started"""
    shuffled: bool = False
    """the first submission comes in another order"""
    retried: str | None = None
    """starts over when all is over"""
    cascade: bool = False
    """and what it had doomed with it"""

    @property
    def roots(self) -> list[Node]:
        return [node for node in self.nodes.values() if node.owner is None]

    def root_of(self, name: str) -> str:
        owner = self.nodes[name].owner
        return name if owner is None else self.root_of(owner)

    def chain_of(self, name: str) -> str:
        """The first member of the chain it is in."""
        node = self.nodes[name]
        return self.chain_of(node.owner) if node.continues and node.owner is not None else name

    def with_policy(self, name: str, policy: Policy) -> Graph:
        node = self.nodes[name]
        assert node.gate is not None
        changed = replace(node, gate=replace(node.gate, policy=policy))
        return replace(self, nodes={**self.nodes, name: changed})

    def __str__(self) -> str:
        told = [f"graph {self.seed}{' (shuffled)' if self.shuffled else ''}", *map(str, self.nodes.values())]
        told += [f"cancelled first: {', '.join(self.cancelled)}"] if self.cancelled else []
        told += (
            [f"then retried{' with what it doomed' if self.cascade else ''}: {self.retried}"] if self.retried else []
        )
        return "\n  ".join([*told, f"groups fold by {self.reducers}"])
