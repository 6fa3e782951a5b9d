"""Does a value come back as it was given? Compares what was given with what was read back, and refuses what differs.

What fits without being the very type is no difference: a subclass of str for a str, an int for a float, a tuple for a
list, a mapping for a dataclass. A difference is what would be lost without anybody noticing: another value, a field
or key that is not declared, an object that would come back as its base class.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AnySet
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from functools import lru_cache
from itertools import zip_longest
from typing import Any, Final, TypeAlias, cast
from uuid import UUID

from msgspec import Struct

from ropewalk.definitions.codec.mismatch import ValueMismatch
from ropewalk.definitions.codec.tagged import ExceptionData

DEPTH_MAX: Final = 128
"""Levels of JSON: a worker has to read, deep in its own calls, what was written from anywhere."""

_BRACKETS: Final = re.compile(rb'"(?:[^"\\]|\\.)*"|[\[{]|[\]}]')

Given: TypeAlias = Mapping[object, object]


def check_depth(data: bytes) -> None:
    if data.count(b"[") + data.count(b"{") <= DEPTH_MAX:
        return
    depth = 0
    for mark in _BRACKETS.finditer(data):
        found = mark[0]
        depth += (found in b"[{") - (found in b"]}")
        if depth > DEPTH_MAX:
            raise ValueMismatch(f"it is nested over {DEPTH_MAX} levels deep")


def check_same(given: object, back: object) -> None:
    """Raises ValueMismatch naming the place of the first difference."""
    if given is back:
        return
    kind: Any = type(back)
    if (check := _CHECKS.get(kind)) is not None:
        check(given, back)
    elif isinstance(back, Enum):
        _check_enum(given, back)
    elif isinstance(back, tuple):
        _check_named_tuple(given, cast("tuple[object, ...]", back))
    elif (fields := fields_of(kind)) is None:
        _check_class(given, back)
    elif isinstance(given, Mapping):
        _check_declared(cast("Given", given), back, fields)
    elif not (kind is ExceptionData and isinstance(given, BaseException)):  # which is how an exception travels
        _check_fields(given, back)


def _check_equal(given: object, back: object) -> None:
    if given != back:
        raise _other(given, back)


def _check_enum(given: object, back: Enum) -> None:
    same = given == back if isinstance(given, Enum) else given == back.value
    if not same or (isinstance(given, Enum) and type(given) is not type(back)):
        raise _other(given, back)


def _check_class(given: object, back: object) -> None:
    """A registered class or a model: its own functions say what is the same, but not for its subclasses."""
    if isinstance(given, type(back)) and type(given) is not type(back):
        raise _other_class(given, back)


def _check_float(given: object, back: object) -> None:
    """By text: NaN is not equal to itself, and -0.0 is to 0. An int by its value: beyond 2**53 most are no float's."""
    if isinstance(given, int):
        if given != back:
            raise ValueMismatch("no float equals this int, so it would come back as another: annotate int", value=given)
    elif not isinstance(given, float) or repr(float(given)) != repr(back):
        raise _other(given, back)


def _check_moment(given: Any, back: Any) -> None:
    """By text: moments in different zones may be equal, and those in a fold never are."""
    if not isinstance(given, type(back)) or given.isoformat() != back.isoformat():
        raise _other(given, back)


def _check_text_form(given: object, back: object) -> None:
    if not isinstance(given, type(back)) or str(given) != str(back):
        raise _other(given, back)


def _check_array(given: object, back: Sequence[object]) -> None:
    items = cast("Sequence[object]", given)
    if not isinstance(given, Sequence) or isinstance(given, str | bytes) or len(items) != len(back):
        raise _other(items, back)
    for index, (one, other) in enumerate(zip(items, back, strict=True)):
        try:
            check_same(one, other)
        except ValueMismatch as error:
            raise error.under(f"[{index}]") from error


def _check_set(given: object, back: AnySet[object]) -> None:
    members = cast("AnySet[object]", given)
    if not isinstance(given, AnySet) or len(members) != len(back):
        raise _other(members, back)
    by_member = {each: each for each in back}
    odd: list[object] = []
    for member in members:
        if member in by_member:
            check_same(member, by_member.pop(member))
        else:
            odd.append(member)  # not equal even to itself: NaN, a moment in a fold
    left = list(by_member.values())
    for member in odd:
        match = next((index for index, each in enumerate(left) if _is_same(member, each)), None)
        if match is None:
            raise _other(member, back)
        del left[match]


def _is_same(given: object, back: object) -> bool:
    try:
        check_same(given, back)
    except ValueMismatch:
        return False
    return True


def _check_mapping(given: object, back: Mapping[object, object]) -> None:
    if not isinstance(given, Mapping):
        raise _other(given, back)
    entries = cast("Given", given)
    for (key, item), (key_back, item_back) in zip_longest(entries.items(), back.items(), fillvalue=_NOTHING):
        if key is _MISSING or key_back is _MISSING or not _is_same(key, key_back):
            problem = "the key would not come back: it is not declared, or its type loses it"
            raise ValueMismatch(problem, value=key).under(f"[{key!r}]")
        try:
            check_same(item, item_back)
        except ValueMismatch as error:
            raise error.under(f"[{key!r}]") from error


def _check_named_tuple(given: object, back: tuple[object, ...]) -> None:
    if hasattr(given, "_fields") and type(given) is not type(back):
        raise _other_class(given, back)
    _check_array(given, back)


def _check_fields(given: object, back: object) -> None:
    if type(given) is not type(back):
        raise _other_class(given, back)
    for name in _compared(cast("Any", type(back))):
        _check_field(getattr(given, name, _MISSING), getattr(back, name, _MISSING), name)


def _check_declared(given: Given, back: object, fields: Mapping[object, str]) -> None:
    """A mapping for an object with fields: it may leave out what has a default, and may say nothing else."""
    tag_field = back.__struct_config__.tag_field if isinstance(back, Struct) else None
    normalized = hasattr(back, "__post_init__")
    for key, item in given.items():
        if key not in fields and key != tag_field:
            raise ValueMismatch(f"{type(back).__qualname__} has no field {key!r}, so it would be lost", quotes=True)
        if key in fields and not normalized:
            _check_field(item, getattr(back, fields[key], _MISSING), key)


def _check_field(given: object, back: object, name: object) -> None:
    try:
        check_same(given, back)
    except ValueMismatch as error:
        raise error.under(f".{name}") from error


@lru_cache(maxsize=1024)
def fields_of(kind: type[Any]) -> Mapping[object, str] | None:
    """Names of fields as they are written → attributes, of classes that declare fields."""
    if issubclass(kind, Struct):
        return dict(zip(kind.__struct_encode_fields__, kind.__struct_fields__, strict=True))
    if dataclasses.is_dataclass(kind):
        return {field.name: field.name for field in dataclasses.fields(kind)}
    attributes: Iterable[Any] | None = getattr(kind, "__attrs_attrs__", None)
    return None if attributes is None else {each.name: each.name for each in attributes}


@lru_cache(maxsize=1024)
def _compared(kind: type[Any]) -> tuple[str, ...]:
    """Attributes that matter for equality."""
    if issubclass(kind, Struct):
        return kind.__struct_fields__
    if dataclasses.is_dataclass(kind):
        return tuple(field.name for field in dataclasses.fields(kind) if field.compare)
    return tuple(each.name for each in kind.__attrs_attrs__ if each.eq)


def _other(given: object, back: object) -> ValueMismatch:
    return ValueMismatch(f"it would come back as another value of type {type(back).__qualname__}", value=given)


def _other_class(given: object, back: object) -> ValueMismatch:
    names = type(given).__qualname__, type(back).__qualname__
    return ValueMismatch(f"a {names[0]} would come back as a {names[1]}")


_MISSING: Final = object()
_NOTHING: Final = (_MISSING, _MISSING)

_CHECKS: Final[dict[type, Callable[[Any, Any], None]]] = {
    **dict.fromkeys((str, int, bool, type(None), bytes, date, timedelta, UUID), _check_equal),
    float: _check_float,
    datetime: _check_moment,
    time: _check_moment,
    Decimal: _check_text_form,
    list: _check_array,
    tuple: _check_array,
    set: _check_set,
    frozenset: _check_set,
    dict: _check_mapping,
}
