"""The evaluator itself, on graphs small enough to be sure of."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.workflow.drawing import draw
from tests.workflow.evaluator import AfterRetry, AmbiguousError, Evaluation
from tests.workflow.graphs import Attempt, End, Gate, Graph, Node, Policy, Reducer, Ref

OK, ABORT = (Attempt("ok"),), (Attempt("abort"),)


def graph(*nodes: Node, reducer: Reducer = "last") -> Graph:
    reducers: dict[str, Reducer] = dict.fromkeys((node.name for node in nodes if node.owner is None), reducer)
    return Graph(seed=0, nodes={node.name: node for node in nodes}, reducers=reducers)


def statuses(of: Graph) -> dict[str, str]:
    return {name: life.status for name, life in Evaluation(of).run().lives.items()}


def gate(*parents: Ref, need: int | None = None, policy: Policy | None = None) -> Gate:
    return Gate(parents, len(parents) if need is None else need, "success", policy)


@pytest.mark.parametrize(
    ("ends", "attempts", "crashes", "status"),
    [
        (["ok"], 3, 3, "completed"),
        (["error", "ok"], 3, 3, "completed"),
        (["error", "ok"], 1, 3, "dead_letter"),
        (["error"], 3, 3, "dead_letter"),
        (["nap", "nap", "nap", "ok"], 1, 1, "completed"),
        (["crash", "ok"], 3, 2, "completed"),
        (["crash", "ok"], 3, 1, "dead_letter"),
        (["error", "crash", "ok"], 2, 3, "dead_letter"),
        (["error", "abort"], 3, 3, "failed"),
        (["stop"], 3, 3, "cancelled"),
        (["resolved"], 3, 3, "completed"),
        (["resolved_failed"], 3, 3, "failed"),
    ],
)
def test_how_a_script_ends(ends: list[End], attempts: int, crashes: int, status: str) -> None:
    script = tuple(map(Attempt, ends))
    assert statuses(graph(Node("a", script, max_attempts=attempts, max_crashes=crashes))) == {"a": status}


def test_only_what_was_queued_comes_to_be() -> None:
    script = (Attempt("error", spawns=("b",)), Attempt("abort", spawns=("c",), queues=("d",)))
    children = [Node(name, OK, owner="a") for name in "bcd"]
    assert statuses(graph(Node("a", script), *children)) == {"a": "failed", "b": "completed", "c": "completed"}


@pytest.mark.parametrize(
    ("policy", "status"),
    [(None, "failed"), ("fail", "failed"), ("cancel", "cancelled"), ("skip", "completed"), ("run", "completed")],
)
def test_a_doomed_job_by_its_policy(policy: Policy | None, status: str) -> None:
    found = statuses(graph(Node("a", ABORT), Node("b", OK, gate=gate(Ref("job", "a"), policy=policy))))
    assert found["b"] == status


def test_a_job_a_tree_and_a_chain_end_differently() -> None:
    script = (Attempt("ok", queues=("b",), then="c"),)
    of = graph(Node("a", script), Node("b", ABORT, owner="a"), Node("c", OK, owner="a", continues=True))
    found = Evaluation(of).run()
    assert [found.ending(Ref(kind, "a")) for kind in ("job", "tree", "chain")] == ["completed", "failed", "completed"]
    assert (found.members("a"), found.has_record("a")) == (["b", "c"], True)


def test_which_of_two_decided_is_not_determined() -> None:
    of = graph(
        Node("a", ABORT), Node("b", (Attempt("stop"),)), Node("c", OK, gate=gate(Ref("job", "a"), Ref("job", "b")))
    )
    with pytest.raises(AmbiguousError, match="c"):
        Evaluation(of).run()
    assert statuses(of.with_policy("c", "skip"))["c"] == "completed"


def test_a_late_root_needs_its_parents_to_be_there() -> None:
    child = Node("b", OK, owner="a")
    late = Node("l", OK, gate=gate(Ref("job", "b")), late=True)
    assert "l" not in statuses(graph(Node("a", (Attempt("abort", queues=("b",)),)), child, late))
    assert statuses(graph(Node("a", (Attempt("ok", queues=("b",)),)), child, late))["l"] == "completed"


@pytest.mark.parametrize(
    ("reducer", "values"),
    [("last", {1, 5}), ("final", {1, 5}), ("sum", {6}), ("count", {2}), ("min", {1}), ("max", {5}), ("list", {(1, 5)})],
)
def test_the_values_a_group_may_have(reducer: Reducer, values: set[object]) -> None:
    script = (Attempt("ok", queues=("b",), value=5),)
    of = graph(Node("a", script), Node("b", (Attempt("ok", value=1),), owner="a"), reducer=reducer)
    assert Evaluation(of).run().possible_values("a") == values


def test_a_retry_spreads_only_in_cascade_and_only_to_what_may_open() -> None:
    script = {"again": ABORT, "other": ABORT}
    nodes = [Node(name, attempts, rerun=OK) for name, attempts in script.items()]
    doomed = Node("b", OK, gate=gate(Ref("job", "again")))
    held = Node("c", OK, gate=gate(Ref("job", "again"), Ref("job", "other")))
    last = Node("d", OK, gate=gate(Ref("tree", "b")))
    of = replace(graph(*nodes, doomed, held, last), retried="again")
    alone = AfterRetry(Evaluation(of).run()).run()
    assert (alone.again, alone.lives["again"].status, alone.lives["b"].status) == ({"again"}, "completed", "failed")
    spread = AfterRetry(Evaluation(replace(of, cascade=True)).run()).run()
    assert spread.again == {"again", "b", "d"}
    assert {name: life.status for name, life in spread.lives.items()} == {
        "again": "completed",
        "other": "failed",
        "b": "completed",
        "c": "failed",
        "d": "completed",
    }


def test_a_retry_is_refused_while_the_gate_of_a_job_that_never_started_cannot_open() -> None:
    held = Node("b", OK, gate=gate(Ref("job", "a")), rerun=OK)
    of = replace(graph(Node("a", ABORT), held), retried="b", cascade=True)
    after = AfterRetry(Evaluation(of).run()).run()
    assert (after.refused, after.again, after.lives["b"].status) == (True, set(), "failed")
    done = replace(of.nodes["b"], gate=replace(gate(Ref("job", "a")), of="done"))
    runs = Evaluation(replace(of, nodes={**of.nodes, "b": done}, cancelled=("b",))).run()
    assert AfterRetry(runs).run().lives["b"].status == "completed"


def test_graphs_are_the_same_for_the_same_seed_and_of_every_kind() -> None:
    """Power of the test: what is drawn really has failures, dooms, chains, trees, compensations and cascades."""
    graphs = [draw(seed) for seed in range(300)]
    assert str(draw(7)) == str(graphs[7])
    found = [Evaluation(each).run() for each in graphs]
    lives = [life for each in found for life in each.lives.values()]
    assert {life.status for life in lives} == {"completed", "failed", "dead_letter", "cancelled"}
    assert sum(life.doomed for life in lives) > 150
    assert sum(life.then is not None for life in lives) > 100
    assert sum(bool(node.compensation) for each in graphs for node in each.nodes.values()) > 100
    retried = [AfterRetry(each) for each in found if each.graph.retried]
    assert sum(len(each.again) > 1 for each in retried) > 30
    assert sum(each.refused for each in retried) > 3
    assert max(len(each.nodes) for each in graphs) > 50
