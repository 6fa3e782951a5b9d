"""Values without a declared type, as JSON and back, exactly.

What JSON has no word for is written `{"$rw": "datetime", "v": "2026-11-16T12:00:00"}`. Only exact types are taken:
a subclass would come back as its base, and that is refused rather than done silently. Knows no annotations.

An exception as it comes back from a store: text, never the class, so nothing stored is imported or raised.
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
from ropewalk.definitions.codec.mismatch import ValueMismatch, misfit
from ropewalk.domain.failure import clipped
from ropewalk.domain.shown_errors import error_text, traceback_text


class ExceptionData(Struct, frozen=True, kw_only=True):
    type: str
    """module and name of the class, the name alone for a built-in one"""
    message: str
    traceback: str | None = None


def exception_data(error: BaseException) -> ExceptionData:
    kind = type(error)
    name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    trace = None if error.__traceback__ is None else clipped(traceback_text(error))
    return ExceptionData(type=name, message=clipped(error_text(error)), traceback=trace)


TAG: Final = "$rw"
VALUE: Final = "v"
TAG_BYTES: Final = b'"$rw"'
"""what JSON bytes contain when (and, but for a string of that text, only when) there is a tag in them"""


def tag(value: object) -> object:
    """`value` as a tree that JSON can hold. Raises Misfit for what `revive` could not give back as it is."""
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


def revive(tree: object) -> object:
    """The value that `tag` wrote as this tree. Raises Misfit for a tag nobody knows."""
    if type(tree) is list:
        return _each(revive, cast("list[object]", tree), count())
    if type(tree) is dict:
        node = cast("dict[str, object]", tree)
        if TAG in node:
            return _untagged(node)
        return dict(zip(node, _each(revive, node.values(), node), strict=True))
    return tree


def escape(tree: object) -> object:
    """`tree` of plain builtins, with only that tagged which JSON (as msgspec writes it) would lose or confuse."""
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
    """A dict with text keys, from values already written; as pairs where a key looks like a tag."""
    return pairs(written.items()) if TAG in written else written


def pairs(items: Iterable[tuple[object, object]]) -> object:
    """A dict whose keys JSON cannot hold, from keys and values already written."""
    return _tagged("dict", [[key, item] for key, item in items])


def ordered(items: Iterable[object]) -> list[object]:
    """Members of a set in an order that every process agrees on: equal inputs must have equal bytes."""
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
    """`do` on every item; what does not fit is named by its step."""
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
    """A JSON object that is a key, until it is converted to what its annotation says."""

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


def _untagged(node: dict[str, object]) -> object:
    name, value = node[TAG], node.get(VALUE)
    read = _READERS.get(name) if isinstance(name, str) else None
    if read is None and isinstance(name, str) and (known := custom.tagged(name)) is not None:
        read = known.decode
    if read is None or node.keys() != {TAG, VALUE}:
        problem = f"{TAG}={name!r} is no tag known here: register its type, or escape the key"
        raise ValueMismatch(problem, quotes=True)
    try:
        return read(revive(value))
    except Exception as error:  # a registered type's function may raise anything
        problem = f"{TAG}={name!r} does not hold a {name}: {misfit(error).problem}"
        raise ValueMismatch(problem, quotes=True) from error


_PLAIN: Final = frozenset({str, int, bool, type(None)})

# One row a scalar: its tag, how it becomes text and a value again. isoformat keeps odd offsets, str keeps digits.
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
