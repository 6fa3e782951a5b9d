"""W1, W2: what a returned Result comes to: children with their gates, a continuation."""

from __future__ import annotations

from typing import Any

import pytest

from ropewalk.definitions.context.context import Context
from ropewalk.definitions.dependency import Count, Group
from ropewalk.definitions.job import Job
from ropewalk.definitions.job_types.decorator import job
from ropewalk.definitions.results.results import Result
from ropewalk.definitions.results.returned import outcome_of_return
from ropewalk.domain.bounds import Bounds
from ropewalk.domain.jobs.outcome import Aborted, Completed
from ropewalk.domain.jobs.record import NewJob
from ropewalk.domain.time import SECOND
from ropewalk.domain.workflow.completion import CompletionPlan
from ropewalk.domain.workflow.dependency import NewGate, ParentKind
from ropewalk.errors import InvalidInput
from tests.definitions.attempts import attempt_of, completed, plan_of


@job
async def flow() -> Result[None, int]: ...


@job
async def numbered(number: int) -> int: ...


def n(number: int, **options: Any) -> Job[int, int]:
    return numbered(number).using(id=f"n{number}", **options)


@pytest.fixture
def ctx() -> Context:
    return Context(attempt_of(flow))


def gates(children: tuple[NewJob, ...]) -> dict[str, list[str]]:
    """By child: whose trees it waits for."""
    return {child.id: parents(child.gate) for child in children}


def parents(gate: NewGate | None) -> list[str]:
    if gate is None:
        return []
    return [each.id if each.kind is ParentKind.TREE else f"{each.kind.value}:{each.id}" for each in gate.parents]


def refused(ctx: Context, value: object, code: str = "bad_result") -> str:
    outcome = outcome_of_return(flow, ctx, value, ctx.port.bounds, strict=True)
    assert isinstance(outcome, Aborted), outcome
    assert outcome.error.code == code
    return outcome.error.message


# ── cohorts ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_cohort_waits_for_all_of_the_one_before(ctx: Context) -> None:
    plan = plan_of(ctx, ctx.queue(n(1), n(2)).next(n(3), n(4)).next(n(5)))
    assert gates(plan.children) == {"n1": [], "n2": [], "n3": ["n1", "n2"], "n4": ["n1", "n2"], "n5": ["n3", "n4"]}
    gate = plan.children[2].gate
    assert gate is not None
    assert (gate.need, gate.of, gate.policy, gate.timeout_us, gate.depth_max) == (2, "success", None, None, 100)
    assert (plan.continuation, plan.contribution) == (None, None)


def test_a_single_job_and_none(ctx: Context) -> None:
    assert gates(plan_of(ctx, ctx.queue(n(1))).children) == {"n1": []}
    other = Context(ctx.port)
    assert completed(other, other.queue()) == Completed(None)


@pytest.mark.parametrize(
    ("when", "need", "of"),
    [
        ("all_success", 3, "success"),
        ("all_done", 3, "done"),
        ("any_done", 1, "done"),
        ("any_success", 1, "success"),
        (Count(2), 2, "success"),
        (Count(3, of="done"), 3, "done"),
    ],
)
def test_when(ctx: Context, when: Any, need: int, of: str) -> None:
    result = ctx.queue(n(1), n(2), n(3)).next(n(4), when=when, on_unsatisfied="run", gate_timeout=5)
    gate = plan_of(ctx, result).children[3].gate
    assert gate is not None
    assert (gate.need, gate.of, gate.policy, gate.timeout_us) == (need, of, "run", 5 * SECOND)


def test_more_than_there_are(ctx: Context) -> None:
    told = refused(ctx, ctx.queue(n(1), n(2)).next(n(3), when=Count(3)))
    assert "when=Count(n=3, of='success') can never be: it depends on 2" in told


def test_options_of_next_are_for_all_of_them(ctx: Context) -> None:
    result = ctx.queue(n(1)).next(n(2, priority=3, delay=1), n(3), priority=7, tags={"a": "b"})
    first, second, third = plan_of(ctx, result).children
    assert (first.priority, first.inherits_priority, first.tags) == (0, True, {})
    assert (second.priority, second.inherits_priority, second.tags, second.delay_us) == (7, False, {"a": "b"}, SECOND)
    assert (third.priority, third.delay_us) == (7, 0)


def test_one_job_of_a_cohort_may_have_a_condition_of_its_own(ctx: Context) -> None:
    result = ctx.queue(n(1), n(2)).next(n(3, when="any_done", on_unsatisfied="skip"), n(4))
    third, fourth = (child.gate for child in plan_of(ctx, result).children[2:])
    assert third is not None and fourth is not None
    assert (third.need, third.of, third.policy) == (1, "done", "skip")
    assert (fourth.need, fourth.of, fourth.policy) == (2, "success", None)


def test_a_value_with_children_starts_them_at_once(ctx: Context) -> None:
    @job
    async def counting() -> Result[int, int]: ...

    ctx = Context(attempt_of(counting))
    outcome = completed(ctx, ctx.result(3).next(n(1), when="all_done").next(n(2)))
    assert outcome.result == b"3"
    assert outcome.plan is not None
    assert gates(outcome.plan.children) == {"n1": [], "n2": ["n1"]}
    assert outcome.plan.contribution is not None


def test_an_empty_cohort_is_passed_over(ctx: Context) -> None:
    none: list[Job[int, int]] = []
    result = ctx.queue().next(n(1), when="any_done").next(*none).next(n(2), when="all_done").next(n(3))
    assert gates(plan_of(ctx, result).children) == {"n1": [], "n2": ["n1"], "n3": ["n2"]}


def test_siblings_may_depend_on_one_another(ctx: Context) -> None:
    first = n(1)
    result = ctx.queue(first, n(2, depends_on=first), n(3, depends_on=[Group(first)], when="any_done"))
    assert gates(plan_of(ctx, result).children) == {"n1": [], "n2": ["job:n1"], "n3": ["n1"]}


def test_dependencies_of_its_own_beside_the_cohort(ctx: Context) -> None:
    result = ctx.queue(n(1), n(2)).next(n(3, depends_on="elsewhere"), n(4))
    *_, third, fourth = plan_of(ctx, result).children
    assert parents(third.gate) == ["n1", "n2", "job:elsewhere"]
    assert third.gate is not None and third.gate.need == 3
    assert parents(fourth.gate) == ["n1", "n2"]


def test_a_condition_over_nothing_is_refused_in_queue(ctx: Context) -> None:
    assert "when='any_done' is given without depends_on" in refused(ctx, ctx.queue(n(1, when="any_done")))


# ── nesting ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_nested_in_the_first_cohort(ctx: Context) -> None:
    inner = ctx.queue(n(1)).next(n(2))
    plan = plan_of(ctx, ctx.queue(inner, n(3)).next(n(4)))
    assert gates(plan.children) == {"n1": [], "n2": ["n1"], "n3": [], "n4": ["n1", "n2", "n3"]}


def test_nested_in_a_later_cohort(ctx: Context) -> None:
    inner = ctx.queue(n(2), n(3)).next(n(4), when="any_success", priority=9)
    result = ctx.queue(n(1)).next(inner, when="all_done", priority=5, max_attempts=1).next(n(5))
    plan = plan_of(ctx, result)
    assert gates(plan.children) == {
        "n1": [],
        "n2": ["n1"],
        "n3": ["n1"],
        "n4": ["n2", "n3"],
        "n5": ["n2", "n3", "n4"],
    }
    _, second, _, fourth, fifth = plan.children
    assert second.gate is not None and fourth.gate is not None
    assert (second.gate.of, fourth.gate.of, fourth.gate.need) == ("done", "success", 1)
    assert [each.priority for each in (second, fourth, fifth)] == [5, 5, 0]
    assert [each.max_attempts for each in (second, fourth, fifth)] == [1, 1, 3]


def test_nested_deeply_and_nested_empty(ctx: Context) -> None:
    inner: Result[None, int] = ctx.queue(n(1))
    for number in range(2, 6):
        inner = ctx.queue(inner).next(n(number))
    plan = plan_of(ctx, ctx.queue(inner, ctx.void(), ctx.queue()).next(n(6)))
    assert gates(plan.children)["n6"] == ["n1", "n2", "n3", "n4", "n5"]


@pytest.mark.parametrize("kind", ["value", "final", "append", "continuation"])
def test_what_cannot_be_nested(ctx: Context, kind: str) -> None:
    made: dict[str, Result[Any, Any]] = {
        "value": ctx.result(3),
        "final": ctx.result(None, final=True),
        "append": ctx.result(None, append="count"),
        "continuation": ctx.continue_with(n(1)),
    }
    with pytest.raises(InvalidInput, match=r"Result\(.*\) cannot be queued: .* \.next\(\.\.\.\)"):
        ctx.queue(made[kind])
    with pytest.raises(InvalidInput, match=r"Result\(.*\) cannot be queued: .* \.next\(\.\.\.\)"):
        ctx.void().next(made[kind])


@pytest.mark.parametrize("wrong", [3, None, numbered, [n(1)], "n1"])
def test_what_is_no_job(ctx: Context, wrong: Any) -> None:
    with pytest.raises(InvalidInput, match="is no job; "):
        ctx.queue(wrong)
    with pytest.raises(InvalidInput, match="is no job; "):
        ctx.queue(n(1)).next(wrong)
    with pytest.raises(InvalidInput, match="is no job; "):
        ctx.continue_with(wrong)


def test_an_unknown_option_of_next(ctx: Context) -> None:
    with pytest.raises(InvalidInput, match="'dely' is no option of a job"):
        ctx.queue(n(1)).next(n(2), dely=3)  # type: ignore[call-overload]


def test_the_same_job_twice(ctx: Context) -> None:
    assert "is queued twice in one Result" in refused(ctx, ctx.queue(n(1)).next(n(1)))


# ── what they inherit ───────────────────────────────────────────────────────────────────────────────────────────


def test_children_inherit(ctx: Context) -> None:
    port = attempt_of(flow, tenant="acme", correlation_id="c", workflow_id="w", workflow_type="t", group_id="root")
    ctx = Context(port)
    first, second = plan_of(ctx, ctx.queue(n(1), n(2, workflow_id="own", correlation_id="mine"))).children
    assert (first.tenant, first.parent_id, first.group_id) == ("acme", "parent", "root")
    assert (first.correlation_id, first.workflow_id, first.workflow_type) == ("c", "w", "t")
    assert (second.correlation_id, second.workflow_id, second.workflow_type) == ("mine", "own", "t")
    other = Context(port)
    assert "cannot queue one of tenant 'evil'" in refused(other, other.queue(n(1, tenant="evil")))


# ── continuations ───────────────────────────────────────────────────────────────────────────────────────────────


def test_a_continuation() -> None:
    @job
    async def first() -> Result[int, int]: ...

    ctx = Context(attempt_of(first, workflow_id="w"))
    outcome = completed(ctx, ctx.continue_with(n(1, delay=2)))
    assert outcome.result is None
    assert outcome.plan is not None
    following = outcome.plan.continuation
    assert following is not None
    assert (following.id, following.parent_id, following.group_id, following.workflow_id) == (
        "n1",
        "parent",
        "parent",
        "w",
    )
    assert (following.delay_us, following.inherits_priority) == (2 * SECOND, True)
    assert outcome.plan == CompletionPlan(continuation=following)


def test_nothing_comes_next_to_a_continuation(ctx: Context) -> None:
    with pytest.raises(InvalidInput, match="ends this job"):
        ctx.continue_with(n(1)).next(n(2))


# ── bounds ──────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("count", "fits"), [(5, True), (6, False)])
def test_both_sides_of_the_bound_on_children(count: int, fits: bool) -> None:
    port = attempt_of(flow)
    port.allowed = Bounds(children_max=5)
    ctx = Context(port)
    result = ctx.queue(n(0)).next(*(n(number) for number in range(1, count)))
    if fits:
        assert len(plan_of(ctx, result).children) == 5
    else:
        assert "children_max=5" in (told := refused(ctx, result))
        assert "ctx.spawn_many" in told


@pytest.mark.parametrize(("count", "fits"), [(3, True), (4, False)])
def test_both_sides_of_the_bound_on_pairs(count: int, fits: bool) -> None:
    port = attempt_of(flow)
    port.allowed = Bounds(cohort_edges_max=6)
    ctx = Context(port)
    result = ctx.queue(n(0), n(1)).next(*(n(10 + number) for number in range(count)))
    if fits:
        assert len(plan_of(ctx, result).children) == 5
    else:
        assert "cohort_edges_max=6" in refused(ctx, result)


def test_a_cohort_may_be_larger_than_depends_on(ctx: Context) -> None:
    result = ctx.queue(*(n(number) for number in range(1500))).next(n(9999))
    gate = plan_of(ctx, result).children[-1].gate
    assert gate is not None
    assert len(gate.parents) == gate.need == 1500


# ── strict return ───────────────────────────────────────────────────────────────────────────────────────────────


def test_what_a_returned_result_was_made_from_is_returned_with_it(ctx: Context) -> None:
    inner = ctx.queue(n(1))
    outer = ctx.queue(inner.next(n(2)))
    returned = outer.next(ctx.queue(n(3)))
    assert ctx.unreturned(returned) == []
    assert len(ctx.unreturned(outer)) == 2
    assert ctx.unreturned(inner) == [each for each in ctx.unreturned(None) if each is not inner]
    assert len(ctx.unreturned(None)) == 5


def test_a_dropped_next_is_an_error(ctx: Context) -> None:
    queued = ctx.queue(n(1))
    queued.next(n(2))
    with pytest.raises(RuntimeError, match=r"1 Result\(s\) were created by ctx and not returned"):
        completed(ctx, queued)
    assert len(completed(ctx, queued, strict=False).plan.children) == 1  # type: ignore[union-attr] # it has one


def test_how_it_shows(ctx: Context) -> None:
    assert repr(ctx.queue(n(1), n(2)).next(n(3))) == "Result(None, then 2 queued, then 1 queued)"
    assert repr(ctx.continue_with(n(1))) == "Result(continue with Job(numbered number=1))"
