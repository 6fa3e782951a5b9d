"""Checks that an encoded value was read back as it was given, and refuses a value that was not.

A value of another type that fits the annotation is no difference: a subclass of str for a str, an int for a float, a
tuple for a list, a mapping for a dataclass. A difference is whatever would be lost unnoticed: another value, a field or
key that is not declared, an object that would come back as an object of its base class.
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
"""Levels of nested JSON at most, so that a worker can read a value even deep in its own calls."""

_BRACKETS: Final = re.compile(rb'"(?:[^"\\]|\\.)*"|[\[{]|[\]}]')

Given: TypeAlias = Mapping[object, object]


def check_depth(data: bytes) -> None:
    """Raises ValueMismatch if this JSON is nested too deeply."""
    if data.count(b"[") + data.count(b"{") <= DEPTH_MAX:
        return
    depth = 0
    for mark in _BRACKETS.finditer(data):
        found = mark[0]
        depth += (found in b"[{") - (found in b"]}")
        if depth > DEPTH_MAX:
            raise ValueMismatch(f"it is nested over {DEPTH_MAX} levels deep")


def check_same(given: object, back: object) -> None:
    """Compare a given value with what was read back. Raises ValueMismatch naming the place of the first difference."""
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
    elif not (kind is ExceptionData and isinstance(given, BaseException)):  # an exception comes back as its data
        _check_fields(given, back)


def _check_equal(given: object, back: object) -> None:
    if given != back:
        raise _other(given, back)


def _check_enum(given: object, back: Enum) -> None:
    same = given == back if isinstance(given, Enum) else given == back.value
    if not same or (isinstance(given, Enum) and type(given) is not type(back)):
        raise _other(given, back)


def _check_class(given: object, back: object) -> None:
    """Check a value of a registered class or a model: its functions decide what is equal, but not for subclasses."""
    if isinstance(given, type(back)) and type(given) is not type(back):
        raise _other_class(given, back)


def _check_float(given: object, back: object) -> None:
    """Compare floats by their text, because NaN is not equal to itself and -0.0 is equal to 0.

    An int that was given for a float is compared by its value, because most ints beyond 2**53 equal no float.
    """
    if isinstance(given, int):
        if given != back:
            raise ValueMismatch("no float equals this int, so it would come back as another: annotate int", value=given)
    elif not isinstance(given, float) or repr(float(given)) != repr(back):
        raise _other(given, back)


def _check_moment(given: Any, back: Any) -> None:
    """Compare by text, because moments in different zones may be equal, and equal moments in a fold are not."""
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
            odd.append(member)  # it does not even equal itself, like NaN or a moment in a fold
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
    """Check a mapping that was given for an object: it may leave out fields with a default, and may have no others."""
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
    """The names of a class's fields as they are written, with their attributes; None if it declares no fields."""
    if issubclass(kind, Struct):
        return dict(zip(kind.__struct_encode_fields__, kind.__struct_fields__, strict=True))
    if dataclasses.is_dataclass(kind):
        return {field.name: field.name for field in dataclasses.fields(kind)}
    attributes: Iterable[Any] | None = getattr(kind, "__attrs_attrs__", None)
    return None if attributes is None else {each.name: each.name for each in attributes}


@lru_cache(maxsize=1024)
def _compared(kind: type[Any]) -> tuple[str, ...]:
    """The attributes that a class compares to decide whether two objects are equal."""
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
