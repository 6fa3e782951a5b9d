"""The options that say what a job waits for, such as `depends_on=`, and the gate that is submitted for them."""

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
    """A job or a handle to one: anything with the id of a job."""

    @property
    def id(self) -> str: ...


JobReference: TypeAlias = HasId | str
"""A job, a handle, or the id of a job."""


class _JobSet:
    """The jobs that belong to one job, named by its id."""

    __slots__ = ("id",)

    def __init__(self, of: JobReference) -> None:
        self.id: Final = _id_of(of)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.id!r})"

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.id == self.id

    def __hash__(self) -> int:
        return hash((type(self), self.id))


class Group(_JobSet):
    """In depends_on: the job with everything queued under it, at any depth. For a root job, this is its group."""

    __slots__ = ()


class Chain(_JobSet):
    """In depends_on: the chain that this job belongs to, which ends with the first member that does not continue it."""

    __slots__ = ()


class Count(Struct, frozen=True):
    """In when: at least `n` of the jobs in depends_on have succeeded, or, with of="done", ended in any way."""

    n: int
    """How many jobs it takes."""
    of: Of = "success"
    """Which jobs count: those that succeeded, or those that are done."""

    def __post_init__(self) -> None:
        checks.positive(self.n, "n")
        checks.choice(self.of, "of", get_args(Of))


class CohortTrees(Struct, frozen=True):
    """The jobs of one cohort of a Result, each with everything under it; the next cohort depends on them.

    Their number is bounded for the whole Result (cohort_edges_max), and not by dependencies_max.
    """

    refs: tuple[ParentRef, ...]


Parent: TypeAlias = JobReference | Group | Chain
"""Something that a job can depend on."""

Condition: TypeAlias = NamedCondition | Count
"""How many of the parents must have ended or succeeded."""

ENDED: Final = frozenset(State(status.value) for status in TERMINAL)
"""The states of jobs that have ended."""

GATE_OPTIONS: Final = ("when", "on_unsatisfied", "gate_timeout", "allow_missing")
"""The options that need depends_on."""


class Parents(Struct, frozen=True):
    """What depends_on names."""

    refs: tuple[ParentRef, ...]
    """Every parent once, in order."""
    counted: int
    """The number of parents that were named one by one, and not as CohortTrees."""


def parents(value: object, field: str) -> Parents:
    """Check the value of depends_on. Raises InvalidInput."""
    named: dict[ParentRef, None] = {}
    whole: dict[ParentRef, None] = {}
    for each in as_tuple(value):
        if isinstance(each, CohortTrees):
            whole.update(dict.fromkeys(each.refs))
        else:
            named[_ref(each, field)] = None
    return Parents((*whole, *(ref for ref in named if ref not in whole)), counted=len(named))


def as_tuple(value: object) -> tuple[object, ...]:
    """The parents in depends_on, which takes one or several."""
    return checks.several(checks.reusable(value, "depends_on"), "depends_on", lambda each, _: each)


def condition(value: object, field: str) -> Condition:
    """Check the value of when. Raises InvalidInput."""
    if isinstance(value, Count):
        return value
    return cast("Condition", checks.choice(value, field, get_args(NamedCondition), also="Count(n, of=...)"))


def policy(value: object, field: str) -> Policy | None:
    """Check the value of on_unsatisfied. Raises InvalidInput."""
    return None if value is None else cast("Policy", checks.choice(value, field, get_args(Policy), also="None"))


def condition_met(when: Condition, states: Iterable[State | str | None]) -> bool:
    """Whether jobs in these states satisfy a condition of `when=`. It is a pure function of these arguments.

    None stands for a job that does not exist; it has neither ended nor succeeded.

    >>> ids = [first.id, second.id]
    >>> found = await app.states(ids)
    >>> condition_met("all_done", [found.get(each) for each in ids])
    """
    wanted = condition(when, "when")
    found = checks.several(states, "states", _state)
    need, of = (wanted.n, wanted.of) if isinstance(wanted, Count) else needed(wanted, len(found))
    hits = sum(state is State.COMPLETED if of == "success" else state in ENDED for state in found)
    return hits >= need


def _state(value: object, field: str) -> State | None:
    return None if value is None else checks.member(value, field, State)


def gate_of(job_id: str, given: Mapping[str, Any], bounds: Bounds) -> NewGate | None:
    """The gate that these checked options describe; None without depends_on, or if it is an empty list."""
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
