"""The value of a group: the last contribution, one that is final, or a fold of all of them.

Values stay encoded, each with the name of the type that produced it. Numbers (count, sum, min, max) fold where they are
kept; lists and merges are kept one by one and put together by whoever reads them; a function of the user's is folded by
the worker, and stored only if nobody else folded in between.
"""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

import msgspec
from msgspec import Struct

Reducer: TypeAlias = Literal["last", "final", "list", "count", "sum", "min", "max", "merge", "custom"]

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


class GroupValue(Struct, frozen=True, kw_only=True, omit_defaults=True):
    reducer: Reducer | None = None
    """None: nobody contributed yet"""
    type: str = ""
    value: bytes | None = None
    version: int = 0
    contributions: int = 0
    conflict: str | None = None
    """why the value cannot be told: contributions that fold differently"""


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
    first = held.reducer not in _FOLDS
    return _with(held, added, added.reducer, added.value if first and added.reducer != "count" else _fold(held, added))


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
            return msgspec.json.encode(_number(held.value) + _number(added.value))
        case "min":
            return msgspec.json.encode(min(_number(held.value), _number(added.value)))
        case "max":
            return msgspec.json.encode(max(_number(held.value), _number(added.value)))


def _number(encoded: bytes | None) -> int | float:
    return 0 if encoded is None else _numbers.decode(encoded)
