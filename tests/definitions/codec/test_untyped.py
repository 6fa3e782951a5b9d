"""D5: values without a declared type come back exactly, or are refused."""

from __future__ import annotations

import math
from collections import OrderedDict
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import IntEnum
from typing import Any, NamedTuple
from uuid import UUID

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ropewalk.definitions.codec.codec import DEFAULT_CODEC
from ropewalk.definitions.codec.tagged import ExceptionData
from ropewalk.errors import InvalidInput

keys = (
    st.text(max_size=5)
    | st.sampled_from(["$rw", "v"])
    | st.integers()
    | st.booleans()
    | st.none()
    | st.dates()
    | st.binary(max_size=5)
    | st.tuples(st.integers(), st.text(max_size=3))
    | st.frozensets(st.integers(), max_size=3)
    | st.floats(allow_nan=False)
)
scalars = (
    keys
    | st.floats()
    | st.decimals()
    | st.uuids()
    | st.datetimes(timezones=st.none() | st.timezones(), allow_imaginary=False)
    | st.times()
    | st.timedeltas()
    | st.sampled_from(["$rw", "datetime"])
)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.tuples(inner, inner)
        | st.dictionaries(keys, inner, max_size=4)
        | st.sets(keys, max_size=4)
    ),
    max_leaves=12,
)


@given(values)
def test_anything_comes_back(value: Any) -> None:
    back = DEFAULT_CODEC.decode(DEFAULT_CODEC.encode(value, Any), Any)
    assert _exact(back) == _exact(value)


@given(values)
def test_anything_comes_back_inside_a_typed_value(value: Any) -> None:
    for annotation, wrapped in ((dict[str, Any], {"k": value}), (list[object], [value])):
        back = DEFAULT_CODEC.decode(DEFAULT_CODEC.encode(wrapped, annotation), annotation)
        assert _exact(back) == _exact(wrapped)


def test_plain_json_stays_plain() -> None:
    value = {"a": [1, 2.5, None, True, "x"], "b": {"c": {}}}
    assert msgspec.json.decode(DEFAULT_CODEC.encode(value, Any)) == value


def test_the_written_form() -> None:
    """Stored data is read for years: this form must not change."""
    value = {
        "datetime": datetime(2026, 11, 16, 12, tzinfo=UTC),
        "date": date(2026, 11, 16),
        "time": time(1, 2),
        "timedelta": timedelta(seconds=90),
        "decimal": Decimal("1.10"),
        "uuid": UUID(int=1),
        "bytes": b"\xff",
        "float": math.inf,
        "tuple": (1, 2),
        "set": {2, 1},
        "frozenset": frozenset({1}),
        "dict": {1: "a"},
        "escaped": {"$rw": "x"},
        "exception": ExceptionData(type="ValueError", message="no"),
    }
    written = {
        "datetime": "2026-11-16T12:00:00+00:00",
        "date": "2026-11-16",
        "time": "01:02:00",
        "timedelta": "PT90S",
        "decimal": "1.10",
        "uuid": "00000000-0000-0000-0000-000000000001",
        "bytes": "/w==",
        "float": "inf",
        "tuple": [1, 2],
        "set": [1, 2],
        "frozenset": [1],
        "dict": [[1, "a"]],
        "exception": {"type": "ValueError", "message": "no", "traceback": None},
    }
    expected: dict[str, Any] = {name: {"$rw": name, "v": each} for name, each in written.items()}
    expected["escaped"] = {"$rw": "dict", "v": [["$rw", "x"]]}
    data = DEFAULT_CODEC.encode(value, Any)
    assert msgspec.json.decode(data) == expected
    assert DEFAULT_CODEC.decode(data, Any) == value


def test_exceptions_become_data_and_never_a_class() -> None:
    try:
        raise KeyError("gone")
    except KeyError as error:
        back = DEFAULT_CODEC.decode(DEFAULT_CODEC.encode([error], Any), Any)
    assert isinstance(back, list)
    (told,) = back
    assert isinstance(told, ExceptionData)
    assert (told.type, told.message) == ("KeyError", "'gone'")
    assert "raise KeyError" in (told.traceback or "")
    assert DEFAULT_CODEC.decode(DEFAULT_CODEC.encode(told, Any), Any) == told
    assert DEFAULT_CODEC.decode(DEFAULT_CODEC.encode(InvalidInput("x"), Any), Any) == ExceptionData(
        type="ropewalk.errors.InvalidInput", message="x"
    )


class Level(IntEnum):
    LOW = 1


class Point(NamedTuple):
    x: int


class Plain:
    pass


@pytest.mark.parametrize(
    "value",
    [Level.LOW, Point(1), OrderedDict(a=1), Plain(), Plain, 1j, bytearray(b"a"), range(3), {Level.LOW: 1}, b"a".hex],
)
def test_what_would_come_back_as_something_else_is_refused(value: Any) -> None:
    with pytest.raises(InvalidInput, match="cannot be restored exactly"):
        DEFAULT_CODEC.encode({"k": [value]}, Any)


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b'{"a":[{"$rw":"nope","v":1}]}', "$rw='nope' is no tag known here: register its type, or escape the key"),
        (b'{"a":[{"$rw":"nope","v":1}]}', "at $['a'][0]"),
        (b'{"$rw":"date","v":"x"}', "$rw='date' does not hold a date"),
        (b'{"$rw":"date","v":1}', "$rw='date' does not hold a date"),
        (b'{"$rw":"date"}', "is no tag known here"),
        (b'{"$rw":"date","v":"2026-01-01","w":1}', "is no tag known here"),
        (b'{"$rw":1,"v":1}', "$rw=1 is no tag known here"),
        (b'{"$rw":"bytes","v":"!"}', "does not hold a bytes"),
        (b'{"$rw":"set","v":[[1]]}', "does not hold a set"),
        (b'{"$rw":"dict","v":[[1]]}', "does not hold a dict"),
        (b'{"$rw":"exception","v":{"type":1}}', "does not hold a exception"),
        (b'"$rw', "this is not JSON"),
        (b"[" * 100_000 + b'"$rw"', "nested too deeply"),
    ],
)
def test_bad_payloads(data: bytes, told: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        DEFAULT_CODEC.decode(data, Any)
    assert told in str(refusal.value)


def _exact(value: Any) -> Any:
    """A form in which equal means: same types, same NaN, same offsets (a fold is an offset already)."""
    match value:
        case list() | tuple():
            return type(value), [_exact(each) for each in value]
        case dict():
            return "dict", [(_exact(key), _exact(each)) for key, each in value.items()]
        case set() | frozenset():
            return type(value), sorted(map(_exact, value), key=repr)
        case datetime() | time():
            return type(value), value.isoformat()
        case _:
            return type(value), repr(value)
