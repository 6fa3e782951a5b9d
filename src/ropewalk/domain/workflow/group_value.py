"""The value of a group: the last contribution, one that is final, or a fold of all of them.

Values stay encoded, each with the name of the type that produced it. The store folds numbers (count, sum, min, max). It
stores the contributions to a list or a merge one by one, and the reader puts them together. A function of the user's is
folded by the worker, and the store accepts the result only if no other contribution was folded in between. A fold that
fails makes the group fail: its value is unknown from then on, although the job that contributed has completed.
"""

from __future__ import annotations

import math
from typing import Final, Literal, TypeAlias

import msgspec
from msgspec import Struct

Reducer: TypeAlias = Literal["last", "final", "list", "count", "sum", "min", "max", "merge", "custom"]

TAKE_THE_RESULT: Final = frozenset({"last", "final"})
"""With these reducers the contribution of a job is its result, as long as no other job contributes."""
KEPT_ONE_BY_ONE: Final = frozenset({"list", "merge"})
_FOLDS: Final = frozenset({"list", "count", "sum", "min", "max", "merge", "custom"})
_numbers = msgspec.json.Decoder(int | float)


class Contribution(Struct, frozen=True, kw_only=True):
    """The value that one completed job adds to the value of its group."""

    type: str
    value: bytes | None
    reducer: Reducer = "last"
    expected_version: int | None = None
    """A custom function was folded over this version of the value; the store refuses the fold if the version
    differs."""
    error: str | None = None
    """This says why a custom function could not fold the value: it raised, or its return value cannot be stored."""


class GroupValue(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The value of a group so far."""

    reducer: Reducer | None = None
    """The contributions are folded by this reducer; None means that no job has contributed yet."""
    type: str = ""
    value: bytes | None = None
    version: int = 0
    contributions: int = 0
    conflict: str | None = None
    """This says why the value is unknown: two contributions fold differently, or a fold failed."""


NOTHING: Final = GroupValue()


def contribute(current: GroupValue, added: Contribution) -> GroupValue:
    """Returns the value after one more contribution. A final value never changes, and a plain value does not replace a
    fold."""
    if current.reducer == "final":
        return current
    if added.reducer == "final":
        return _with(current, added, "final", added.value)
    if current.reducer in _FOLDS and added.reducer not in _FOLDS:
        return current
    if current.reducer in _FOLDS and current.reducer != added.reducer:
        conflict = (
            f"{current.type} contributes with append={current.reducer!r}, {added.type} with append={added.reducer!r}"
        )
        return msgspec.structs.replace(current, conflict=current.conflict or conflict)
    if added.error is not None:
        return _failed(current, added, added.error)
    first = current.reducer not in _FOLDS
    try:
        value = added.value if first and added.reducer != "count" else _fold(current, added)
    except ArithmeticError as error:
        return _failed(current, added, f"append={added.reducer!r} of {added.type}: {error}")
    return _with(current, added, added.reducer, value)


def _failed(current: GroupValue, added: Contribution, why: str) -> GroupValue:
    """Returns the unchanged value, marked as unknown because of `why`."""
    value = current.value if current.reducer == added.reducer else None
    return msgspec.structs.replace(_with(current, added, added.reducer, value), conflict=current.conflict or why)


def _with(current: GroupValue, added: Contribution, reducer: Reducer, value: bytes | None) -> GroupValue:
    return GroupValue(
        reducer=reducer,
        type=added.type,
        value=None if reducer in KEPT_ONE_BY_ONE else value,
        version=current.version + 1,
        contributions=current.contributions + 1,
        conflict=current.conflict,
    )


def _fold(current: GroupValue, added: Contribution) -> bytes | None:
    match added.reducer:
        case "last" | "final" | "custom" | "list" | "merge":
            return added.value
        case "count":
            before = 0 if current.reducer != "count" else int(_number(current.value))
            return msgspec.json.encode(before + 1)
        case "sum":
            return msgspec.json.encode(_sum(_number(current.value), _number(added.value)))
        case "min":
            return msgspec.json.encode(min(_number(current.value), _number(added.value)))
        case "max":
            return msgspec.json.encode(max(_number(current.value), _number(added.value)))


def _sum(one: float, other: float) -> int | float:
    """Adds two numbers; the sum of two ints is an int. Raises OverflowError if the sum is larger than the largest
    float, because JSON cannot express infinity."""
    total = one + other
    if isinstance(total, float) and not math.isfinite(total):
        raise OverflowError(f"{one!r} + {other!r} is over the largest float")
    return total


def _number(encoded: bytes | None) -> int | float:
    return 0 if encoded is None else _numbers.decode(encoded)
