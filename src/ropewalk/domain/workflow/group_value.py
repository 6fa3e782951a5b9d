"""The value of a group: the last contribution, one that is final, or a fold of all of them.

Values stay encoded, each with the name of the type that produced it. Numbers (count, sum, min, max) fold where they are
kept; lists and merges are kept one by one and put together by whoever reads them; a function of the user's is folded by
the worker, and stored only if nobody else folded in between. A fold that fails is the failure of the group: its value
cannot be told from then on, while the job that contributed has completed.
"""

from __future__ import annotations

import math
from typing import Final, Literal, TypeAlias

import msgspec
from msgspec import Struct

Reducer: TypeAlias = Literal["last", "final", "list", "count", "sum", "min", "max", "merge", "custom"]

TAKE_THE_RESULT: Final = frozenset({"last", "final"})
"""What these contribute is the result itself, as long as nobody else contributes."""
KEPT_ONE_BY_ONE: Final = frozenset({"list", "merge"})
_FOLDS: Final = frozenset({"list", "count", "sum", "min", "max", "merge", "custom"})
_numbers = msgspec.json.Decoder(int | float)


class Contribution(Struct, frozen=True, kw_only=True):
    """What a completed job adds."""

    type: str
    value: bytes | None
    reducer: Reducer = "last"
    expected_version: int | None = None
    """of the value a custom function was folded over; refused where it is another by now"""
    error: str | None = None
    """why a custom function could not fold it: it raised, or the store cannot keep what it returned"""


class GroupValue(Struct, frozen=True, kw_only=True, omit_defaults=True):
    reducer: Reducer | None = None
    """None: nobody contributed yet"""
    type: str = ""
    value: bytes | None = None
    version: int = 0
    contributions: int = 0
    conflict: str | None = None
    """why the value cannot be told: contributions that fold differently, or a fold that failed"""


NOTHING: Final = GroupValue()


def contribute(held: GroupValue, added: Contribution) -> GroupValue:
    """The value after one more. Once final, nothing changes it; a plain value does not replace a fold."""
    if held.reducer == "final":
        return held
    if added.reducer == "final":
        return _with(held, added, "final", added.value)
    if held.reducer in _FOLDS and added.reducer not in _FOLDS:
        return held
    if held.reducer in _FOLDS and held.reducer != added.reducer:
        told = f"{held.type} contributes with append={held.reducer!r}, {added.type} with append={added.reducer!r}"
        return msgspec.structs.replace(held, conflict=held.conflict or told)
    if added.error is not None:
        return _failed(held, added, added.error)
    first = held.reducer not in _FOLDS
    try:
        value = added.value if first and added.reducer != "count" else _fold(held, added)
    except ArithmeticError as error:
        return _failed(held, added, f"append={added.reducer!r} of {added.type}: {error}")
    return _with(held, added, added.reducer, value)


def _failed(held: GroupValue, added: Contribution, why: str) -> GroupValue:
    """The value stays as it was; it cannot be told any more."""
    value = held.value if held.reducer == added.reducer else None
    return msgspec.structs.replace(_with(held, added, added.reducer, value), conflict=held.conflict or why)


def _with(held: GroupValue, added: Contribution, reducer: Reducer, value: bytes | None) -> GroupValue:
    return GroupValue(
        reducer=reducer,
        type=added.type,
        value=None if reducer in KEPT_ONE_BY_ONE else value,
        version=held.version + 1,
        contributions=held.contributions + 1,
        conflict=held.conflict,
    )


def _fold(held: GroupValue, added: Contribution) -> bytes | None:
    match added.reducer:
        case "last" | "final" | "custom" | "list" | "merge":
            return added.value
        case "count":
            before = 0 if held.reducer != "count" else int(_number(held.value))
            return msgspec.json.encode(before + 1)
        case "sum":
            return msgspec.json.encode(_sum(_number(held.value), _number(added.value)))
        case "min":
            return msgspec.json.encode(min(_number(held.value), _number(added.value)))
        case "max":
            return msgspec.json.encode(max(_number(held.value), _number(added.value)))


def _sum(one: float, other: float) -> int | float:
    """Of ints an int. Raises OverflowError where it is over the largest float: JSON has no word for that."""
    total = one + other
    if isinstance(total, float) and not math.isfinite(total):
        raise OverflowError(f"{one!r} + {other!r} is over the largest float")
    return total


def _number(encoded: bytes | None) -> int | float:
    return 0 if encoded is None else _numbers.decode(encoded)
