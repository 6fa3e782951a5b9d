"""`depends_on=` and what goes with it: how users say what a job waits for, and the gate that is submitted for it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, Protocol, TypeAlias, cast, get_args

from msgspec import Struct

from ropewalk.domain import checks
from ropewalk.domain.bounds import Bounds
from ropewalk.domain.jobs.states import TERMINAL, State
from ropewalk.domain.shown_values import shown
from ropewalk.domain.time import to_seconds
from ropewalk.domain.workflow.dependency import NamedCondition, NewGate, Of, ParentKind, ParentRef, Policy, needed
from ropewalk.errors import InvalidInput, LimitExceeded


class HasId(Protocol):
    """A job, or a handle to one."""

    @property
    def id(self) -> str: ...


Named: TypeAlias = HasId | str
"""a job, a handle, or the id of one"""


class _Whole:
    """More than the job alone."""

    __slots__ = ("id",)

    def __init__(self, of: Named) -> None:
        self.id: Final = _id_of(of)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.id!r})"

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.id == self.id

    def __hash__(self) -> int:
        return hash((type(self), self.id))


class Group(_Whole):
    """In depends_on: the job with everything queued under it, at any depth. Of a root, that is its group."""

    __slots__ = ()


class Chain(_Whole):
    """In depends_on: the chain this job is in, until one ends without continuing."""

    __slots__ = ()


class Count(Struct, frozen=True):
    """In when: at least `n` of those depended on have succeeded, or (of="done") ended in any way."""

    n: int
    of: Of = "success"

    def __post_init__(self) -> None:
        checks.positive(self.n, "n")
        checks.choice(self.of, "of", get_args(Of))


class Trees(Struct, frozen=True):
    """The jobs of one Result that another cohort of it waits for, each with all that is under it.

    Bounded as a whole where the Result is lowered, not by dependencies_max.
    """

    refs: tuple[ParentRef, ...]


Parent: TypeAlias = Named | Group | Chain
Condition: TypeAlias = NamedCondition | Count

ENDED: Final = frozenset(State(status.value) for status in TERMINAL)
GATE_OPTIONS: Final = ("when", "on_unsatisfied", "gate_timeout", "allow_missing")


class Parents(Struct, frozen=True):
    """What depends_on names, each once, in order."""

    refs: tuple[ParentRef, ...]
    counted: int
    """of them, those that were named one by one"""


def parents(value: object, field: str) -> Parents:
    """Checked like every other option (checks.py)."""
    named: dict[ParentRef, None] = {}
    whole: dict[ParentRef, None] = {}
    for each in listed(value):
        if isinstance(each, Trees):
            whole.update(dict.fromkeys(each.refs))
        else:
            named[_ref(each, field)] = None
    return Parents((*whole, *(ref for ref in named if ref not in whole)), counted=len(named))


def listed(value: object) -> tuple[object, ...]:
    """depends_on takes one, or several."""
    return checks.several(checks.reusable(value, "depends_on"), "depends_on", lambda each, _: each)


def condition(value: object, field: str) -> Condition:
    if isinstance(value, Count):
        return value
    return cast("Condition", checks.choice(value, field, get_args(NamedCondition), also="Count(n, of=...)"))


def policy(value: object, field: str) -> Policy | None:
    return None if value is None else cast("Policy", checks.choice(value, field, get_args(Policy), also="None"))


def condition_met(when: Condition, states: Iterable[State | str | None]) -> bool:
    """Whether jobs in these states fulfil a condition of `when=`. Pure: it looks at nothing else.

    None stands for a job that is not there, which has neither ended nor succeeded.

    >>> ids = [first.id, second.id]
    >>> found = await app.states(ids)
    >>> condition_met("all_done", [found.get(each) for each in ids])
    """
    asked = condition(when, "when")
    found = checks.several(states, "states", _state)
    need, of = (asked.n, asked.of) if isinstance(asked, Count) else needed(asked, len(found))
    hits = sum(state is State.COMPLETED if of == "success" else state in ENDED for state in found)
    return hits >= need


def _state(value: object, field: str) -> State | None:
    return None if value is None else checks.member(value, field, State)


def gate_of(job_id: str, given: Mapping[str, Any], bounds: Bounds) -> NewGate | None:
    """The gate these (checked) options ask for. Depending on nothing, an empty list, is no gate."""
    named: Parents | None = given.get("depends_on")
    if named is None:
        for option in GATE_OPTIONS:
            if option in given:
                shown = f"{to_seconds(given[option]):g}" if option == "gate_timeout" else repr(given[option])
                raise InvalidInput(f"{option}={shown} is given without depends_on: say what to wait for", field=option)
        return None
    _check(named, job_id, bounds)
    if not named.refs:
        return None
    need, of = _needed(given.get("when", "all_success"), len(named.refs))
    return NewGate(
        parents=named.refs,
        need=need,
        of=of,
        policy=given.get("on_unsatisfied"),
        timeout_us=given.get("gate_timeout"),
        allow_missing=given.get("allow_missing", False),
        depth_max=bounds.dependency_depth_max,
    )


def _check(named: Parents, job_id: str, bounds: Bounds) -> None:
    if named.counted > bounds.dependencies_max:
        raise LimitExceeded(
            f"depends_on names {named.counted:,}, over dependencies_max={bounds.dependencies_max:,}: depend on a Group "
            "of them, or raise the limit with App(bounds=...)",
            field="depends_on",
        )
    if any(ref.id == job_id for ref in named.refs):
        raise InvalidInput(f"depends_on: job {job_id} depends on itself; leave it out", field="depends_on")


def _needed(when: Condition, total: int) -> tuple[int, Of]:
    if not isinstance(when, Count):
        return needed(when, total)
    if when.n > total:
        raise InvalidInput(f"when={when!r} can never be: it depends on {total}; ask for {total} or fewer", field="when")
    return when.n, when.of


def _ref(value: object, field: str) -> ParentRef:
    match value:
        case Group():
            return ParentRef(ParentKind.TREE, value.id)
        case Chain():
            return ParentRef(ParentKind.CHAIN, value.id)
        case _:
            return ParentRef(ParentKind.JOB, _id_of(value, field))


def _id_of(value: object, field: str = "depends_on") -> str:
    found = value if isinstance(value, str) else getattr(value, "id", None)
    if not isinstance(found, str):
        raise InvalidInput(
            f"{field}: {shown(value)} has no id: give a job, a handle, an id, Group(...) or Chain(...)",
            field=field,
        )
    return checks.text(found, field)
