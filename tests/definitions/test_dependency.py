"""W4: depends_on and what goes with it, from the option to the gate."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Unpack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ropewalk.definitions.dependency import Chain, Condition, Count, Group, condition_met
from ropewalk.definitions.job_types.decorator import job
from ropewalk.definitions.options import AppDefaults, EnqueueOptions
from ropewalk.definitions.submission import to_new_job
from ropewalk.domain.bounds import Bounds
from ropewalk.domain.jobs.record import NewJob
from ropewalk.domain.jobs.states import State
from ropewalk.domain.time import SECOND
from ropewalk.domain.workflow.dependency import Gate, NewGate, Opening, ParentKind, ParentRef, needed, opening
from ropewalk.errors import InvalidInput, LimitExceeded


@job
async def add(a: int) -> int: ...


@job(priority=0)
async def settled(a: int) -> int: ...


@dataclass
class Handle:
    """Anything with an id."""

    id: str


FIRST = add(1).using(id="first")


def submitted(
    bounds: Bounds | None = None, defaults: AppDefaults | None = None, **options: Unpack[EnqueueOptions]
) -> NewJob:
    return to_new_job(
        add(2).using(id="me"), call=options, defaults=defaults or AppDefaults(), bounds=bounds or Bounds(), tenant="t"
    )


def gate(**options: Any) -> NewGate:
    found = submitted(**options).gate
    assert found is not None
    return found


def refs(**options: Any) -> list[tuple[str, str]]:
    return [(each.kind.value, each.id) for each in gate(**options).parents]


def refusal(bounds: Bounds | None = None, **options: Any) -> InvalidInput:
    with pytest.raises(InvalidInput) as refused:
        submitted(bounds, **options)
    return refused.value


# ── what it depends on ──────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("named", "expected"),
    [
        (FIRST, [("job", "first")]),
        ("first", [("job", "first")]),
        (Handle("h"), [("job", "h")]),
        (Group(FIRST), [("tree", "first")]),
        (Chain("c"), [("chain", "c")]),
        (
            [FIRST, "b", Group(Handle("h")), Chain(FIRST)],
            [("job", "first"), ("job", "b"), ("tree", "h"), ("chain", "first")],
        ),
        (("b", "a", "b", FIRST, "first", Group("a")), [("job", "b"), ("job", "a"), ("job", "first"), ("tree", "a")]),
    ],
)
def test_everything_with_an_id(named: Any, expected: list[tuple[str, str]]) -> None:
    assert refs(depends_on=named) == expected


@pytest.mark.parametrize("nothing", [[], (), set[str]()])
def test_depending_on_nothing(nothing: Any) -> None:
    assert submitted(depends_on=nothing).gate is None
    assert submitted(depends_on=nothing, when=Count(3), on_unsatisfied="fail").gate is None
    assert submitted().gate is None


def test_defaults() -> None:
    assert gate(depends_on="a") == NewGate(parents=(ParentRef(ParentKind.JOB, "a"),), need=1, of="success")


@pytest.mark.parametrize(
    ("when", "need", "of"),
    [
        ("all_success", 2, "success"),
        ("all_done", 2, "done"),
        ("any_done", 1, "done"),
        ("any_success", 1, "success"),
        (Count(1), 1, "success"),
        (Count(2, of="done"), 2, "done"),
    ],
)
def test_conditions_count_each_parent_once(when: Any, need: int, of: str) -> None:
    found = gate(depends_on=["a", "b", "a"], when=when)
    assert (found.need, found.of, len(found.parents)) == (need, of, 2)


def test_the_rest_of_a_gate() -> None:
    found = gate(
        depends_on="a",
        on_unsatisfied="skip",
        gate_timeout=timedelta(seconds=3),
        allow_missing=True,
        bounds=Bounds(dependency_depth_max=7),
    )
    assert (found.policy, found.timeout_us, found.allow_missing, found.depth_max) == ("skip", 3 * SECOND, True, 7)


def test_the_call_beats_using() -> None:
    mine = add(2).using(depends_on="a", when="any_done")
    new = to_new_job(mine, call={"depends_on": ["b", "c"]}, defaults=AppDefaults(), bounds=Bounds(), tenant="t")
    assert new.gate is not None
    assert ([each.id for each in new.gate.parents], new.gate.of) == (["b", "c"], "done")


# ── what is refused ─────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("options", "field", "told"),
    [
        ({"depends_on": 3}, "depends_on", "depends_on: 3 has no id: give a job, a handle"),
        ({"depends_on": None}, "depends_on", "None has no id"),
        ({"depends_on": ["a", None]}, "depends_on", "None has no id"),
        ({"depends_on": ""}, "depends_on", "depends_on is empty"),
        ({"depends_on": ["a", "x" * 257]}, "depends_on", "depends_on has 257 characters, over name_chars_max=256"),
        ({"depends_on": "a\x00"}, "depends_on", "contains a NUL character"),
        ({"depends_on": "me"}, "depends_on", "job me depends on itself; leave it out"),
        ({"depends_on": Group("me")}, "depends_on", "depends on itself"),
        ({"depends_on": ["a"], "when": "all"}, "when", "when='all' must be 'all_success', 'all_done'"),
        ({"depends_on": ["a"], "when": ["x"]}, "when", "must be 'all_success'"),
        ({"depends_on": ["a", "b"], "when": Count(3)}, "when", "it depends on 2; ask for 2 or fewer"),
        ({"depends_on": ["a", "a"], "when": Count(2)}, "when", "it depends on 1"),
        ({"depends_on": ["a"], "on_unsatisfied": "x"}, "on_unsatisfied", "must be 'fail', 'cancel', 'skip', 'run'"),
        ({"depends_on": ["a"], "gate_timeout": 0}, "gate_timeout", "gate_timeout=0 must be more than 0 seconds"),
        ({"depends_on": ["a"], "gate_timeout": "3"}, "gate_timeout", "is not a duration"),
        ({"depends_on": ["a"], "allow_missing": 1}, "allow_missing", "allow_missing=1 must be True or False"),
        ({"when": "all_done"}, "when", "when='all_done' is given without depends_on: say what to wait for"),
        ({"on_unsatisfied": "run"}, "on_unsatisfied", "is given without depends_on"),
        ({"gate_timeout": 3}, "gate_timeout", "gate_timeout=3 is given without depends_on"),
        ({"gate_timeout": timedelta(minutes=1)}, "gate_timeout", "gate_timeout=60 is given without depends_on"),
        ({"allow_missing": True}, "allow_missing", "is given without depends_on"),
    ],
)
def test_errors_name_the_field_and_what_to_do(options: dict[str, Any], field: str, told: str) -> None:
    refused = refusal(**options)
    assert told in str(refused)
    assert refused.field == field


def test_both_sides_of_the_bound() -> None:
    bounds = Bounds(dependencies_max=3)
    assert len(gate(bounds=bounds, depends_on=["a", "b", "c", "a"]).parents) == 3
    refused = refusal(bounds, depends_on=["a", "b", "c", "d"])
    assert isinstance(refused, LimitExceeded)
    assert "depends_on names 4, over dependencies_max=3" in str(refused)


@pytest.mark.parametrize("wrong", [0, -1, 1.5, True, "2", None])
def test_a_count_of_nothing(wrong: Any) -> None:
    with pytest.raises(InvalidInput, match=r"^n=.* must be (a whole number|at least 1)"):
        Count(wrong)


def test_a_count_of_something_else() -> None:
    with pytest.raises(InvalidInput, match="of='failed' must be 'done' or 'success'"):
        Count(1, of="failed")  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", [Group, Chain])
def test_groups_and_chains_are_values(kind: type[Group] | type[Chain]) -> None:
    assert kind("a") == kind(Handle("a"))
    assert len({kind("a"), kind("a"), kind("b")}) == 2
    assert Group("a") != Chain("a")
    assert repr(kind("a")) == f"{kind.__name__}('a')"
    with pytest.raises(InvalidInput, match="has no id"):
        kind(3)  # type: ignore[arg-type]


# ── priority ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_priority_is_inherited_where_nobody_names_one() -> None:
    assert submitted().inherits_priority
    assert submitted(depends_on="a").inherits_priority
    assert not submitted(priority=0).inherits_priority
    assert not submitted(defaults=AppDefaults(priority=0)).inherits_priority
    assert not to_new_job(settled(1), call={}, defaults=AppDefaults(), bounds=Bounds(), tenant="t").inherits_priority
    assert submitted(defaults=AppDefaults.of(priority=4)).priority == 4
    assert submitted().priority == 0


C, F, X, D, R = State.COMPLETED, State.FAILED, State.CANCELLED, State.DEAD_LETTER, State.RUNNING


@pytest.mark.parametrize(
    ("when", "states", "met"),
    [
        ("all_success", [C, C], True),
        ("all_success", [C, F], False),
        ("all_success", [C, None], False),
        ("all_done", [C, F, X, D], True),
        ("all_done", [C, R], False),
        ("all_done", [C, None], False),
        ("any_success", [F, C], True),
        ("any_success", [F, X, D, R, None], False),
        ("any_done", [R, D], True),
        ("any_done", [R, None], False),
        (Count(2), [C, R, C], True),
        (Count(2), [C, F, F], False),
        (Count(2, of="done"), [C, F, R], True),
        (Count(3), [C, C], False),
        ("all_success", [], True),
        ("any_done", [], False),
        ("all_done", ["completed", "failed"], True),
    ],
)
def test_conditions(when: Condition, states: list[State | str | None], met: bool) -> None:
    assert condition_met(when, states) is met
    assert condition_met(when, iter(states)) is met


@given(
    st.sampled_from(["all_success", "all_done", "any_done", "any_success"]) | st.builds(Count, st.integers(1, 4)),
    st.lists(st.sampled_from([C, F, X, R]), min_size=1, max_size=5),
)
def test_a_condition_is_met_where_a_gate_opens(when: Condition, states: list[State]) -> None:
    need, of = (when.n, when.of) if isinstance(when, Count) else needed(when, len(states))
    gate = Gate(total=len(states), need=need, of=of, done=len(states) - states.count(R), ok=states.count(C))
    assert condition_met(when, states) is (opening(gate) is Opening.OPEN)


def test_what_is_no_condition_or_no_state() -> None:
    wrong: Any = "most"
    with pytest.raises(InvalidInput, match="when='most'"):
        condition_met(wrong, [])
    with pytest.raises(InvalidInput, match="states='done'"):
        condition_met("all_done", ["done"])
    by_id: Any = {"a": C}
    with pytest.raises(InvalidInput, match="states="):
        condition_met("all_done", by_id)
