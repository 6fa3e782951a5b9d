"""Values without a declared type are written as JSON with tags, so that exactly these values are read back.

A value of a type that JSON lacks is written with a tag: `{"$rw": "datetime", "v": "2026-11-16T12:00:00"}`. An object of
a subclass would come back as an object of the base class, so it is refused. This module knows no annotations.

An exception is stored as text and comes back as ExceptionData, so that nothing stored is ever imported or raised.
"""

from __future__ import annotations

import math
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from itertools import count
from typing import Any, Final, cast
from uuid import UUID

import msgspec
from msgspec import Struct

from ropewalk.definitions.codec import custom
from ropewalk.definitions.codec.mismatch import ValueMismatch, as_mismatch
from ropewalk.domain.failure import clipped
from ropewalk.domain.shown_errors import error_text, traceback_text


class ExceptionData(Struct, frozen=True, kw_only=True):
    """An exception as data, in the form in which it comes back from a store."""

    type: str
    """The module and name of the class; for a built-in exception the name alone."""
    message: str
    traceback: str | None = None


def exception_data(error: BaseException) -> ExceptionData:
    """This exception as data, with long texts clipped."""
    kind = type(error)
    name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    trace = None if error.__traceback__ is None else clipped(traceback_text(error))
    return ExceptionData(type=name, message=clipped(error_text(error)), traceback=trace)


TAG: Final = "$rw"
"""The key that holds the name of the type."""

VALUE: Final = "v"
"""The key that holds the value."""

TAG_BYTES: Final = b'"$rw"'
"""JSON with a tag contains these bytes; JSON without a tag contains them only if a string has this text."""


def tag(value: object) -> object:
    """The tree of builtins that stands for a value in JSON. Raises ValueMismatch if `untag` could not restore it."""
    kind = type(value)
    if kind in _PLAIN:
        return value
    if (write := _WRITERS.get(kind)) is not None:
        return write(value)
    if (registered := custom.registered(kind)) is not None:
        return _tagged(registered.tag, tag(registered.encode(value)))
    if isinstance(value, BaseException):
        return _exception(exception_data(value))
    raise ValueMismatch(
        f"a {kind.__module__}.{kind.__qualname__} cannot be restored exactly where no type is declared: "
        "annotate it, or see register_type"
    )


def untag(tree: object) -> object:
    """The value that `tag` wrote as this tree. Raises ValueMismatch for an unknown tag."""
    if type(tree) is list:
        return _each(untag, cast("list[object]", tree), count())
    if type(tree) is dict:
        node = cast("dict[str, object]", tree)
        if TAG in node:
            return _value_of_tag(node)
        return dict(zip(node, _each(untag, node.values(), node), strict=True))
    return tree


def escape(tree: object) -> object:
    """The tree of builtins with tags where JSON, as msgspec writes it, would lose or confuse a value."""
    match tree:
        case float():
            return _float(tree)
        case datetime() | time():
            return _whole_minutes(tree)
        case dict():
            node = cast("dict[object, object]", tree)
            return json_object({key: escape(item) for key, item in node.items()})
        case list() | tuple():
            return [escape(item) for item in cast("Iterable[object]", tree)]
        case _:
            return tree


def json_object(written: Mapping[Any, object]) -> object:
    """A JSON object of trees; it becomes tagged pairs if one of its keys is the tag."""
    return pairs(written.items()) if TAG in written else written


def pairs(items: Iterable[tuple[object, object]]) -> object:
    """A dict whose keys JSON cannot hold, as tagged pairs of trees."""
    return _tagged("dict", [[key, item] for key, item in items])


def ordered(items: Iterable[object]) -> list[object]:
    """The members of a set in the same order in every process, so that equal inputs have equal bytes."""
    return sorted(items, key=msgspec.json.encode)


def _tagged(name: str, value: object) -> dict[str, object]:
    return {TAG: name, VALUE: value}


def _float(value: float) -> object:
    return value if math.isfinite(value) else _tagged("float", repr(value))


def _whole_minutes(value: datetime | time) -> object:
    # msgspec cuts an offset like +00:19:32 (Amsterdam before 1937) to minutes, which would move the instant.
    offset = value.utcoffset()
    if offset is None or offset % timedelta(minutes=1) == timedelta(0):
        return value
    return _tagged(type(value).__name__, value.isoformat())


def _list(value: Iterable[object]) -> list[object]:
    return _each(tag, value, count())


def _dict(value: dict[object, object]) -> object:
    written = _each(tag, value.values(), value)
    if TAG not in value and all(type(key) is str for key in value):
        return dict(zip(value, written, strict=True))
    return pairs(zip(_each(tag, value, value), written, strict=True))


def _each(do: Callable[[object], object], items: Iterable[object], steps: Iterable[object]) -> list[object]:
    """Call `do` with every item; a mismatch gets the step that leads to its item."""
    done: list[object] = []
    for item, step in zip(items, steps, strict=False):
        try:
            done.append(do(item))
        except ValueMismatch as error:
            raise error.under(f"[{step!r}]") from error
    return done


def _exception(value: ExceptionData) -> object:
    return _tagged("exception", msgspec.structs.asdict(value))


class _Key(dict[object, object]):
    """A JSON object that is the key of a dict, until it is converted to the type of its annotation."""

    def __hash__(self) -> int:  # type: ignore[override]
        return id(self)


def _from_pairs(items: Iterable[tuple[object, object]]) -> dict[object, object]:
    return {_hashable(key): item for key, item in items}


def _hashable(key: object) -> object:
    if isinstance(key, list | tuple):
        return tuple(map(_hashable, cast("Iterable[object]", key)))
    if isinstance(key, dict):
        return _Key({name: _hashable(item) for name, item in cast("dict[object, object]", key).items()})
    return key


def _value_of_tag(node: dict[str, object]) -> object:
    name, value = node[TAG], node.get(VALUE)
    read = _READERS.get(name) if isinstance(name, str) else None
    if read is None and isinstance(name, str) and (known := custom.tagged(name)) is not None:
        read = known.decode
    if read is None or node.keys() != {TAG, VALUE}:
        problem = f"{TAG}={name!r} is no tag known here: register its type, or escape the key"
        raise ValueMismatch(problem, quotes=True)
    try:
        return read(untag(value))
    except Exception as error:  # a registered type's function may raise anything
        problem = f"{TAG}={name!r} does not hold a {name}: {as_mismatch(error).problem}"
        raise ValueMismatch(problem, quotes=True) from error


_PLAIN: Final = frozenset({str, int, bool, type(None)})

# Each row has the tag of a scalar, its type, and the functions to text and back. isoformat keeps offsets with seconds,
# and str keeps all digits of a Decimal.
_SCALARS: Final[tuple[tuple[str, type, Callable[[Any], str], Callable[[Any], object]], ...]] = (
    ("datetime", datetime, datetime.isoformat, datetime.fromisoformat),
    ("date", date, date.isoformat, date.fromisoformat),
    ("time", time, time.isoformat, time.fromisoformat),
    ("timedelta", timedelta, msgspec.to_builtins, lambda text: msgspec.convert(text, timedelta)),
    ("decimal", Decimal, str, Decimal),
    ("uuid", UUID, str, UUID),
    ("bytes", bytes, lambda data: b64encode(data).decode(), lambda text: b64decode(text, validate=True)),
)


def _scalar(name: str, text: Callable[[Any], str]) -> Callable[[Any], object]:
    return lambda value: _tagged(name, text(value))


_WRITERS: Final[dict[type, Callable[[Any], object]]] = {
    float: _float,
    list: _list,
    dict: _dict,
    tuple: lambda value: _tagged("tuple", _list(value)),
    set: lambda value: _tagged("set", ordered(_list(value))),
    frozenset: lambda value: _tagged("frozenset", ordered(_list(value))),
    ExceptionData: _exception,
    **{kind: _scalar(name, text) for name, kind, text, _ in _SCALARS},
}

_READERS: Final[dict[str, Callable[[Any], object]]] = {
    "float": float,
    "dict": _from_pairs,
    "tuple": tuple,
    "set": set,
    "frozenset": frozenset,
    "exception": lambda fields: msgspec.convert(fields, ExceptionData),
    **{name: read for name, _, _, read in _SCALARS},
}

custom.reserve(_READERS)
