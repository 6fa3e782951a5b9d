"""Random graphs whose outcome does not depend on the order of events."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Final, get_args

from tests.workflow.evaluator import AfterRetry, AmbiguousError, Evaluation
from tests.workflow.graphs import Attempt, End, Gate, Graph, Kind, Node, Of, Policy, Reducer, Ref

SIZES: Final = ((4, 12, 70), (13, 30, 26), (31, 60, 4))
"""from, to, and how many of a hundred graphs"""
DEPTH_MAX: Final = 4

_GO_ON: Final[tuple[End, ...]] = ("error", "error", "crash", "nap")
_LAST: Final[dict[End, int]] = {
    "ok": 70,
    "error": 8,
    "abort": 12,
    "crash": 6,
    "stop": 5,
    "resolved": 4,
    "resolved_failed": 5,
}


def draw(seed: int) -> Graph:
    """The same one for the same seed."""
    chance = Random(seed)
    graph = _Drawing(seed, chance).graph()
    while True:
        try:
            before = Evaluation(graph).run()
            if graph.retried is None and not any(node.compensation for node in graph.nodes.values()):
                graph = _with_retry(graph, before, chance)
            if graph.retried is not None:
                AfterRetry(Evaluation(graph).run()).run()
        except AmbiguousError as ambiguous:
            graph = graph.with_policy(ambiguous.name, chance.choice(get_args(Policy)))
            graph = replace(graph, retried=None)
        else:
            return graph


def _with_retry(graph: Graph, before: Evaluation, chance: Random) -> Graph:
    ended_badly = [name for name, life in before.lives.items() if life.status != "completed"]
    if not ended_badly or chance.random() < 0.2:
        return graph
    chance.shuffle(ended_badly)
    spreading = (name for name in ended_badly[:6] if _spreads(graph, before, name))
    name = next(spreading, ended_badly[0])
    nodes = dict(graph.nodes)
    queues: tuple[str, ...] = ()
    if chance.random() < 0.4:
        child = Node(f"{name}-again", (Attempt(chance.choice(("ok", "abort"))),), owner=name)
        nodes[child.name] = child
        queues = (child.name,)
    again = Attempt("ok", queues=queues, value=3) if chance.random() < 0.8 else Attempt("abort", spawns=queues)
    nodes[name] = replace(nodes[name], rerun=(again,))
    return replace(graph, nodes=nodes, retried=name, cascade=chance.random() < 0.7)


def _spreads(graph: Graph, before: Evaluation, name: str) -> bool:
    """More than one job would start again with it."""
    cascading = Evaluation(replace(graph, retried=name, cascade=True))
    cascading.lives = before.lives
    return len(AfterRetry(cascading).again) > 1


class _Drawing:
    def __init__(self, seed: int, chance: Random) -> None:
        self._seed = seed
        self._chance = chance
        low, high, _ = chance.choices(SIZES, [share for _, _, share in SIZES])[0]
        self._left = chance.randint(low, high)
        self._shuffled = chance.random() < 0.3
        self._compensated = chance.random() < 0.35
        self._nodes: dict[str, Node] = {}
        self._roots: list[str] = []
        self._referable: list[str] = []
        self._named = 0

    def graph(self) -> Graph:
        chance = self._chance
        late = self._left // 6
        self._left -= late
        whole = self._left
        while whole > 0:
            # each root gets a share, so that there are several and one may be large
            self._left = share = min(whole, chance.randint(1, max(2, whole // 2)))
            self._root()
            whole -= share - self._left
        first = list(self._roots)
        for _ in range(late):
            self._late_root()
        cancelled = chance.sample(first, min(len(first), chance.choice((0, 0, 0, 1, 2))))
        return Graph(
            seed=self._seed,
            nodes=self._nodes,
            reducers={root: chance.choice(get_args(Reducer)) for root in self._roots},
            cancelled=tuple(sorted(cancelled, key=list(self._nodes).index)),
            shuffled=self._shuffled,
        )

    def _name(self) -> str:
        self._left -= 1
        self._named += 1
        return f"j{self._named}"

    def _root(self) -> None:
        name = self._name()
        gate = self._gate(self._roots, 0.6)
        self._nodes[name] = Node(name, (), gate=gate)  # in its place before its children
        self._grow(Node(name, (), gate=gate), older=[] if self._shuffled else list(self._roots), depth=0)
        self._roots.append(name)

    def _late_root(self) -> None:
        name = self._name()
        gate = self._gate(self._referable, 1.0)
        self._nodes[name] = Node(name, (self._last_attempt(),), gate=gate, late=True)
        self._roots.append(name)

    def _grow(self, node: Node, *, older: Sequence[str], depth: int) -> None:
        """Its script, and everything it will queue."""
        chance, siblings, attempts = self._chance, list[str](), list[Attempt]()
        for _ in range(chance.choice((0, 0, 0, 0, 0, 1, 2))):
            spawns = self._children(node, siblings, older, depth)
            attempts.append(Attempt(chance.choice(_GO_ON), spawns=spawns))
        last = self._last_attempt()
        then = self._continuation(node, older, depth) if last.end == "ok" else None
        spawns = self._children(node, siblings, older, depth)
        queues = self._children(node, siblings, older, depth) if last.end == "ok" else ()
        node = replace(
            node,
            attempts=(*attempts, replace(last, spawns=spawns, queues=queues, then=then)),
            max_attempts=chance.choice((1, 2, 3, 3, 3)),
            max_crashes=chance.choice((1, 2, 3, 3)),
        )
        if self._compensated and chance.random() < 0.4:
            undo = Node(f"{node.name}-undo", (Attempt(chance.choice(("ok", "ok", "abort"))),), owner=node.name)
            self._nodes[undo.name] = undo
            node = replace(node, compensation=undo.name)
        self._nodes[node.name] = node
        self._referable.append(node.name)

    def _children(self, owner: Node, siblings: list[str], older: Sequence[str], depth: int) -> tuple[str, ...]:
        wanted = self._chance.choice((0, 0, 1, 2, 3)) if depth < DEPTH_MAX else 0
        names: list[str] = []
        for _ in range(min(wanted, max(0, self._left))):
            gate = self._gate([*siblings, *older], 0.5)
            name = self._name()
            self._grow(Node(name, (), owner=owner.name, gate=gate), older=older, depth=depth + 1)
            siblings.append(name)
            names.append(name)
        return tuple(names)

    def _continuation(self, node: Node, older: Sequence[str], depth: int) -> str | None:
        if self._left <= 0 or self._chance.random() < 0.6:
            return None
        gate = self._gate(older, 0.2)
        name = self._name()
        following = Node(name, (), owner=node.name, continues=True, gate=gate)
        self._grow(following, older=older, depth=depth)
        return name

    def _gate(self, among: Sequence[str], likely: float) -> Gate | None:
        chance = self._chance
        if not among or chance.random() >= likely:
            return None
        refs: dict[tuple[Kind, str], Ref] = {}
        for name in chance.sample(among, min(len(among), chance.randint(1, 4))):
            kind: Kind = chance.choice(get_args(Kind))
            refs[kind, self._chain_of(name) if kind == "chain" else name] = Ref(kind, name)
        parents = tuple(refs.values())
        total = len(parents)
        of: Of = chance.choice(get_args(Of))
        policy: Policy | None = chance.choice((None, None, *get_args(Policy)))
        return Gate(parents, chance.choice((total, total, 1, chance.randint(1, total))), of, policy)

    def _chain_of(self, name: str) -> str:
        node = self._nodes[name]
        return self._chain_of(node.owner) if node.continues and node.owner is not None else name

    def _last_attempt(self) -> Attempt:
        [end] = self._chance.choices(list(_LAST), list(_LAST.values()))
        value = self._chance.randint(-5, 9) if end == "ok" and self._chance.random() < 0.5 else None
        return Attempt(end, value=value)
