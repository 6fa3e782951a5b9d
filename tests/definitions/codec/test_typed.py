"""D5: values with a declared type come back as they were, and what does not fit is refused by path."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from types import MappingProxyType
from typing import Annotated, Any, Literal, NamedTuple, TypedDict
from uuid import UUID
from zoneinfo import ZoneInfo

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ropewalk.definitions.codec.codec import DEFAULT_CODEC
from ropewalk.errors import InvalidInput

ODD_ZONE = timezone(timedelta(minutes=19, seconds=32))
WHEN = datetime(1901, 2, 3, 4, 5, 6, 7, tzinfo=ODD_ZONE)
NOON = datetime(2026, 11, 16, 12, tzinfo=UTC)


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Level(IntEnum):
    LOW = 1


class Word(StrEnum):
    YES = "yes"


@dataclass
class Line:
    article: str
    amount: float = 1.0
    notes: Any = None


@dataclass
class Order:
    id: UUID
    lines: list[Line]
    tags: set[str] = field(default_factory=set[str])
    due: datetime | None = None
    more: list[Order] = field(default_factory=list["Order"])


class Point(NamedTuple):
    x: int
    y: float = 0.0


class Mark(NamedTuple):
    x: int
    what: Any = None


class Settings(TypedDict, total=False):
    name: str
    extra: Any


class Cat(msgspec.Struct, tag="cat"):
    lives: int
    mood: Any = None


class Dog(msgspec.Struct, tag="dog", rename="camel"):
    good_boy: bool
    any_thing: Any = None


class Row(msgspec.Struct, array_like=True, tag=True):
    a: int
    b: Any = None
    c: int | msgspec.UnsetType = msgspec.UNSET


class Renamed(msgspec.Struct, rename={"a": "$rw", "b": "v"}):
    a: str
    b: int


CASES: list[tuple[Any, Any]] = [
    (int, 2**80),
    (float, 1.5),
    (float, -0.0),
    (float, math.inf),
    (float | None, -math.inf),
    (float | None, None),
    (bool, True),
    (str, 'ü$rw"\\ \x00'),
    (str, "$rw"),
    (bytes, b"\x00\xff"),
    (Decimal, Decimal("1.10")),
    (UUID, UUID(int=5)),
    (datetime, NOON),
    (datetime, NOON.replace(tzinfo=None)),
    (datetime, WHEN),
    (date, date(1, 1, 1)),
    (time, time(1, 2, 3, 4)),
    (time, time(1, tzinfo=ODD_ZONE)),
    (timedelta, timedelta(days=-3, microseconds=1)),
    (Colour, Colour.BLUE),
    (Level, Level.LOW),
    (Literal["a", 1], 1),
    (list[int], [1, 2]),
    (tuple[int, ...], (1, 2)),
    (tuple[int, str], (1, "a")),
    (tuple[int, Any], (1, {2})),
    (set[int], {3, 1}),
    (frozenset[str], frozenset({"a", "b"})),
    (set[tuple[int, int]], {(1, 2)}),
    (dict[str, int], {"a": 1}),
    (dict[str, str], {"$rw": "a", "v": "b"}),
    (dict[str, Any], {"$rw": "datetime", "v": "2026"}),
    (list[dict[str, float]], [{"$rw": math.inf}]),
    (dict[int, str], {-1: "a"}),
    (dict[int, float], {1: math.inf}),
    (dict[date, float], {date(2026, 1, 1): math.inf}),
    (dict[datetime, int], {WHEN: 1}),
    (dict[Colour, int], {Colour.RED: 1}),
    (dict[UUID, int], {UUID(int=1): 1}),
    (dict[bytes, int], {b"a": 1}),
    (dict[Decimal, int], {Decimal("1.0"): 1}),
    (dict[Literal["a", "b"], int], {"a": 1}),
    (dict[float, int], {1.5: 1, math.inf: 2}),
    (dict[tuple[int, int], str], {(1, 2): "a"}),
    (dict[bool, int], {True: 1}),
    (dict[int | str, int], {1: 2, "1": 3}),
    (dict[Any, int], {"a": 1}),
    (dict[Any, int], {None: 1, "$rw": 2}),
    (dict, {(1,): {2}}),
    (list, [{1}]),
    (object, {"a": {1}}),
    (dict[str, object], {"a": (1, b"x")}),
    (list[Any] | None, [NOON]),
    (list[Any] | str, "text"),
    (dict[str, Any] | int, 3),
    (dict[str, Any] | list[Any] | None, {"a": {1}}),
    (Any | None, {1}),
    (Annotated[Any, msgspec.Meta(title="x")], {1}),
    (Annotated[int, msgspec.Meta(ge=0)], 0),
    (Line, Line("rope", math.inf, {1})),
    (Order, Order(UUID(int=1), [Line("a"), Line("b", 2, [WHEN])], {"x", "y"}, WHEN, [Order(UUID(int=2), [])])),
    (list[Order] | None, [Order(UUID(int=2), [])]),
    (Point, Point(1, math.inf)),
    (Mark, Mark(1, {2})),
    (Settings, {"name": "a", "extra": {1}}),
    (Cat | Dog, Dog(good_boy=True, any_thing={1})),
    (Cat | Dog, Cat(9)),
    (list[Cat | Dog | None], [Cat(9, {1}), None]),
    (Row, Row(1, {2})),
    (Row, Row(1, {2}, 3)),
    (Renamed, Renamed("a", 1)),
    (tuple[Renamed, float], (Renamed("a", 1), 1.5)),
    (Mapping[str, int], {"a": 1}),
    (Sequence[int], [1]),
    (None, None),
]


# Not by value: a set is written in another order in every process, and those that share tests must agree on names.
NAMES = [f"{number}-{annotation}"[:70] for number, (annotation, _) in enumerate(CASES)]


@pytest.mark.parametrize(("annotation", "value"), CASES, ids=NAMES)
def test_round_trip(annotation: Any, value: Any) -> None:
    back = DEFAULT_CODEC.decode(DEFAULT_CODEC.encode(value, annotation), annotation)
    assert back == value
    assert type(back) is type(value)


@pytest.mark.parametrize(("annotation", "value"), CASES, ids=NAMES)
def test_what_is_written_is_json(annotation: Any, value: Any) -> None:
    msgspec.json.decode(DEFAULT_CODEC.encode(value, annotation))


def test_nan_is_not_none() -> None:
    line = Line("a", math.nan)
    cases = ((float, math.nan), (float | None, math.nan), (list[float | None], [None, math.nan]), (Line, line))
    for annotation, value in cases:
        back = DEFAULT_CODEC.decode(DEFAULT_CODEC.encode(value, annotation), annotation)
        assert repr(back) == repr(value)


def test_typed_json_is_what_other_languages_expect() -> None:
    order = Order(UUID(int=1), [Line("rope", 2.5, {"k": [1]})], {"b", "a"}, NOON)
    assert msgspec.json.decode(DEFAULT_CODEC.encode(order, Order)) == {
        "id": "00000000-0000-0000-0000-000000000001",
        "lines": [{"article": "rope", "amount": 2.5, "notes": {"k": [1]}}],
        "tags": ["a", "b"],
        "due": "2026-11-16T12:00:00Z",
        "more": [],
    }


def test_sets_are_written_in_one_order() -> None:
    words = [f"word{number}" for number in range(50)]
    assert DEFAULT_CODEC.encode(set(words), set[str]) == msgspec.json.encode(sorted(words))
    assert DEFAULT_CODEC.encode(set(words), Any) == msgspec.json.encode({"$rw": "set", "v": sorted(words)})


class Text(str):
    __slots__ = ()


class Number(int):
    pass


class Fraction(float):
    pass


class Blob(bytes):
    pass


@pytest.mark.parametrize(
    ("annotation", "value", "back"),
    [
        (str, Word.YES, "yes"),
        (str, Text("a"), "a"),
        (int, Level.LOW, 1),
        (int, Number(3), 3),
        (float, 1, 1.0),
        (float, Fraction(1.5), 1.5),
        (bytes, Blob(b"a"), b"a"),
        (list[int], (1, 2), [1, 2]),
        (Sequence[int], range(2), [0, 1]),
        (Sequence[Any], range(2), [0, 1]),
        (list[int], deque([1]), [1]),
        (Mapping[str, int], MappingProxyType({"a": 1}), {"a": 1}),
        (Mapping[str, Any], MappingProxyType({"a": {1}}), {"a": {1}}),
        (Order, {"id": UUID(int=1), "lines": [{"article": "a"}]}, Order(UUID(int=1), [Line("a")])),
        (Cat | Dog, {"type": "dog", "goodBoy": True, "anyThing": {1}}, Dog(good_boy=True, any_thing={1})),
        (Line | None, {"article": "a", "notes": {1}}, Line("a", notes={1})),
    ],
)
def test_what_fits_without_being_the_very_type(annotation: Any, value: Any, back: Any) -> None:
    got = DEFAULT_CODEC.decode(DEFAULT_CODEC.encode(value, annotation), annotation)
    assert got == back
    assert type(got) is type(back)


class Opaque:
    pass


@pytest.mark.parametrize(
    ("annotation", "value", "told"),
    [
        (str, 1, "expected `str`, got `int`"),
        (int, "1", "expected `int`, got `str`"),
        (int, True, "expected `int`, got `bool`"),
        (int, 1.0, "expected `int`, got `float`"),
        (int, None, "expected `int`"),
        (str, NOON, "expected `str`, got `datetime`"),
        (datetime, "2026-01-01T00:00:00", "expected `datetime`, got `str`"),
        (str, b"a", "expected `str`, got `bytes`"),
        (bytes, "a", "expected `bytes`, got `str`"),
        (bool, 1, "expected `bool`, got `int`"),
        (list[int], [1, "a"], "got `str` at $[1]"),
        (list[int], "ab", "expected `array`, got `str`"),
        (list[Any], {1}, "expected `array`, got `set`"),
        (list[Any] | None, {1}, "expected `array`, got `set`"),
        (set[int], [1], "expected `set`, got `list`"),
        (set[int], {"a"}, "expected `int`, got `str` at $[0]"),
        (tuple[int, Any], (1,), "expected `array of length 2`, got `tuple`"),
        (tuple[int, Any], (1, object()), "cannot be restored exactly where no type is declared: annotate it"),
        (dict[str, int], [1], "expected `object`, got `array`"),
        (dict[str, Any], [1], "expected `object`, got `list`"),
        (dict[str, Any], {"a": {"b": [object()]}}, "at $['a']['b'][0]"),
        (dict[str, Any], {1: 2}, "expected `str`, got `int`"),
        (dict[float, int], {"a": 1}, "expected `float`, got `str`"),
        (dict[str, list[int]], {"a": [1, None]}, "expected `int`, got `null`"),
        (Line, Line("a", "b"), "expected `float`, got `str` at $.amount"),  # type: ignore[arg-type]
        (Line, Line("a", 1, Opaque()), "Opaque cannot be restored exactly"),
        (Line, Line("a", 1, [Opaque()]), "at $.notes[0]"),
        (Line, 3, "expected `object`, got `int`"),
        (Line, Opaque(), "expected `object`, got `Opaque`"),
        (str, Opaque(), "Opaque does not fit"),
        (Cat | Dog, Line("a"), "missing required field `type`"),
        (Colour, "green", "invalid enum value 'green'"),
        (Opaque, Opaque(), "a Opaque travels only when it is registered"),
        (Annotated[int, msgspec.Meta(ge=0)], -1, "expected `int` >= 0"),
        (str, "\ud800", "surrogates not allowed"),
    ],
)
def test_misfits_are_refused(annotation: Any, value: Any, told: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        DEFAULT_CODEC.encode(value, annotation)
    assert told.lower() in str(refusal.value).lower()


@pytest.mark.parametrize(
    ("annotation", "data", "told"),
    [
        (Order, b'{"id":1,"lines":[]}', "expected `uuid`, got `int` at $.id"),
        (Order, b'{"id":"00000000-0000-0000-0000-000000000001","lines":[{"article":1}]}', "at $.lines[0].article"),
        (Order, b'{"lines":[]}', "object missing required field `id`"),
        (Cat | Dog, b'{"type":"cow"}', "invalid value 'cow' at $.type"),
        (list[float], b'[{"$rw":"float","v":"x"}]', "$rw='float' does not hold a float"),
        (list[float], b'[{"$rw":"floaty","v":"x"}]', "$rw='floaty' is no tag known here"),
        (list[int], b'[{"$rw":"x"}]', "$rw='x' is no tag known here"),
        (dict[str, int], b'{"a":1', "this is not JSON"),
    ],
)
def test_bad_payloads_name_path_and_expectation(annotation: Any, data: bytes, told: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        DEFAULT_CODEC.decode(data, annotation)
    assert told in str(refusal.value)


def test_an_annotation_that_cannot_be_remembered_still_works() -> None:
    annotation = Annotated[int, ["unhashable"]]
    assert DEFAULT_CODEC.decode(DEFAULT_CODEC.encode(3, annotation), annotation) == 3


def test_an_integer_too_long_for_text_is_refused() -> None:
    for annotation in (int, Any):
        with pytest.raises(InvalidInput, match="exceeds the limit"):
            DEFAULT_CODEC.encode(10**5000, annotation)


def test_cycles_are_refused() -> None:
    endless: list[Any] = []
    endless.append(endless)
    for annotation in (Any, list[Any], list[list[int]]):
        with pytest.raises(InvalidInput):
            DEFAULT_CODEC.encode(endless, annotation)


@st.composite
def orders(draw: st.DrawFn, depth: int = 2) -> Order:
    lines = st.lists(st.builds(Line, st.text(), st.floats(allow_nan=False), st.sets(st.integers())), max_size=3)
    zones = st.sampled_from([None, UTC, ODD_ZONE, ZoneInfo("Europe/Amsterdam"), ZoneInfo("Asia/Kathmandu")])
    due = st.datetimes(timezones=zones) | st.none()
    more = draw(st.lists(orders(depth - 1), max_size=2)) if depth else []
    return Order(draw(st.uuids()), draw(lines), draw(st.sets(st.text())), draw(due), more)


@given(orders())
def test_any_order_comes_back(order: Order) -> None:
    back = DEFAULT_CODEC.decode(DEFAULT_CODEC.encode(order, Order), Order)
    assert _comparable(back) == _comparable(order)


@given(st.dictionaries(st.text(), st.floats() | st.none()))
def test_any_floats_come_back(values: dict[str, float | None]) -> None:
    annotation = dict[str, float | None]
    assert repr(DEFAULT_CODEC.decode(DEFAULT_CODEC.encode(values, annotation), annotation)) == repr(values)


@given(st.timedeltas(), st.decimals(), st.binary(), st.times())
def test_any_scalars_come_back(span: timedelta, number: Decimal, blob: bytes, at: time) -> None:
    annotation = tuple[timedelta, Decimal, bytes, time]
    value = (span, number, blob, at.replace(fold=0))
    assert repr(DEFAULT_CODEC.decode(DEFAULT_CODEC.encode(value, annotation), annotation)) == repr(value)


def _comparable(value: Any) -> Any:
    """A moment in a fold is never equal to one in another zone, so moments are compared by offset."""
    return [
        value.id,
        value.lines,
        value.tags,
        value.due and value.due.isoformat(),
        [_comparable(m) for m in value.more],
    ]
