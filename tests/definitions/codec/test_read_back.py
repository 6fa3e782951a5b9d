"""What could not be read back, or would come back as something else, is refused when it is encoded."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from enum import Enum, IntEnum
from typing import Annotated, Any, Literal, NamedTuple, Self, TypedDict

import msgspec
import pytest

from ropewalk.definitions.codec.codec import DEFAULT_CODEC
from ropewalk.definitions.codec.custom import register_type
from ropewalk.definitions.job_types.batch_decorator import batch_job
from ropewalk.definitions.job_types.decorator import job
from ropewalk.domain.secret_marks import Secret
from ropewalk.errors import InvalidInput
from tests.naming import shown

NOON = datetime(2026, 11, 16, 12, tzinfo=UTC)
ODD = NOON.astimezone(timezone(timedelta(minutes=19, seconds=32)))


class Colour(Enum):
    RED = "red"
    TAG = "$rw"


class Shade(Enum):
    RED = "red"


class Level(IntEnum):
    LOW = 1


@dataclass
class Animal:
    name: str


@dataclass
class Dog(Animal):
    tail: int = 1


class Base(msgspec.Struct):
    a: int = 1


class Derived(Base):
    b: int = 2


class Cat(msgspec.Struct, tag="cat"):
    mood: Any = None


class Kitten(Cat, tag="kitten"):
    weeks: int = 1


class Row(msgspec.Struct, array_like=True):
    a: int
    b: int | msgspec.UnsetType = msgspec.UNSET
    c: Any = 0


class Pair(NamedTuple):
    one: int
    two: int


class OtherPair(NamedTuple):
    one: int
    two: int


class Settings(TypedDict):
    name: str


class Renamed(msgspec.Struct, rename={"a": "$rw", "b": "v"}):
    a: float
    b: Any = None


class Marked(msgspec.Struct, tag_field="$rw", tag="datetime"):
    v: float


@dataclass
class Counted:
    count: int

    def __post_init__(self) -> None:
        self.count += 1


@dataclass
class Trimmed:
    name: str

    def __post_init__(self) -> None:
        self.name = self.name.strip()


@dataclass
class Measured:
    size: float


BEYOND = 2**53 + 1
"""an int that no float equals"""


class Sealed:
    """Its functions disagree: what one writes the other does not read."""

    def __init__(self, text: str) -> None:
        self.text = text

    @classmethod
    def read(cls, data: dict[str, str]) -> Self:
        return cls(data["missing"])


register_type(Sealed, "sealed", lambda sealed: {"text": sealed.text}, Sealed.read)


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (tuple[datetime, float, None], (NOON, math.nan, None)),
        (tuple[datetime, dict[str, float]], (NOON, {"a": math.inf})),
        (tuple[datetime, dict[str, float]], (ODD, {"$rw": math.nan})),
        (dict[str, datetime], {"$rw": ODD, "v": NOON}),
        (list[dict[str, float | None]], [{"$rw": None, "v": math.nan}]),
        (dict[Colour, Any], {Colour.TAG: {1}, Colour.RED: 2}),
        (dict[tuple[Level, int], str], {(Level.LOW, 1): "a"}),
        (dict[tuple[Colour, Decimal], float], {(Colour.TAG, Decimal("-0")): math.nan}),
        (dict[Decimal, int], {Decimal("-0"): 1, Decimal("1.10"): 2}),
        (tuple[Renamed, Any], (Renamed(math.nan, {1}), {2})),
        (tuple[Marked, float], (Marked(1.0), math.nan)),
        (Cat | Kitten, Kitten({1}, 3)),
        (Trimmed, Trimmed(" ada ")),
        (list[float], [1, 2.5]),
        (float, 2**60),
        (list[float], [2**53, -(2**53)]),
        (int | float, 2**53 + 1),
    ],
    ids=shown,
)
def test_what_once_was_lost_comes_back(annotation: Any, value: Any) -> None:
    back = DEFAULT_CODEC.decode(DEFAULT_CODEC.encode(value, annotation), annotation)
    assert repr(back) == repr(value) or back == value


@pytest.mark.parametrize(
    ("annotation", "value", "told"),
    [
        (Animal, Dog("rex", 3), "a Dog would come back as a Animal"),
        (tuple[Any, list[Base]], ({1}, [Base(), Derived()]), "a Derived would come back as a Base at $[1][1]"),
        (Cat, Kitten({1}, 3), "a Kitten would come back as a Cat"),
        (tuple[Pair, Any], (OtherPair(1, 2), 1), "a OtherPair would come back as a Pair at $[0]"),
        (Animal, Base(), "missing required field `name`"),
        (dict[str, int], Base(), "another value of type dict, given Base(a=1)"),
        (Settings, {"name": "a", "size": 1}, "given 'size' at $['size']"),
        (Base, {"a": 1, "c": 2}, "Base has no field 'c', so it would be lost"),
        (list[int], {1, 2}, "another value of type list, given {1, 2}"),
        (tuple[datetime, list[int]], (NOON, {1}), "another value of type list, given {1} at $[1]"),
        (str, Colour.RED, "another value of type str, given <Colour.RED: 'red'>"),
        (Colour, Shade.RED, "another value of type Colour, given <Shade.RED: 'red'>"),
        (float, Decimal("1.5"), "it could not be read back: expected `float`, got `str`, given Decimal('1.5')"),
        (list[float], [Decimal("1.5")], "it could not be read back"),
        (float | str, Decimal("1.5"), "given Decimal('1.5')"),
        (float, BEYOND, f"no float equals this int, so it would come back as another: annotate int, given {BEYOND}"),
        (float, -BEYOND, f"given {-BEYOND}"),
        (float, 10**400, "number out of range"),
        (float | None, BEYOND, "no float equals this int"),
        (list[float], [1.0, BEYOND], f"given {BEYOND} at $[1]"),
        (tuple[float, ...], (BEYOND,), "at $[0]"),
        (dict[str, list[float]], {"a": [BEYOND]}, "at $['a'][0]"),
        (dict[str, float | None], {"a": BEYOND}, "at $['a']"),
        (set[float], {BEYOND}, f"given {BEYOND}"),
        (tuple[datetime, float], (NOON, BEYOND), "at $[1]"),
        (Measured, Measured(BEYOND), "at $.size"),
        (Measured, {"size": BEYOND}, "at $.size"),
        (Marked, Marked(BEYOND), "at $.v"),
        (Row, Row(1, msgspec.UNSET, 3), "at $.b"),
        (Counted, Counted(1), "another value of type int, given 2 at $.count"),
        (Sealed, Sealed("x"), "a Sealed cannot be read: KeyError: 'missing'"),
        (list[Any], [Sealed("x")], "does not hold a sealed: KeyError: 'missing'"),
        (datetime, NOON.astimezone(timezone(timedelta(microseconds=1))), "another value of type datetime"),
    ],
    ids=shown,
)
def test_what_would_be_lost_is_refused(annotation: Any, value: Any, told: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        DEFAULT_CODEC.encode(value, annotation)
    assert told in str(refusal.value)


@pytest.mark.parametrize("annotation", [Any, list[Any], dict[str, Any]])
def test_a_value_nested_too_deeply_for_a_worker_is_refused(annotation: Any) -> None:
    def nested(levels: int) -> Any:
        value: Any = '[{"'
        for _ in range(levels):
            value = [value, '"]]}']
        return {"a": value} if annotation == dict[str, Any] else [value]

    assert DEFAULT_CODEC.decode(DEFAULT_CODEC.encode(nested(127), annotation), annotation) == nested(127)
    with pytest.raises(InvalidInput, match="nested over 128 levels deep"):
        DEFAULT_CODEC.encode(nested(128), annotation)


@pytest.mark.parametrize("data", [b'{"$rw":"decimal","v":"x"}', b'{"$rw":"sealed","v":{}}', b'{"$rw":"dict","v":[1]}'])
def test_whatever_a_function_raises_is_said_about_the_payload(data: bytes) -> None:
    with pytest.raises(InvalidInput, match="does not hold a"):
        DEFAULT_CODEC.decode(data, Any)


@job
async def measure(at: datetime, value: float, unit: Literal["m", "$rw"] = "m") -> tuple[datetime, float, None]:
    return at, value, None


def test_arguments_and_results_come_back() -> None:
    built = measure(NOON, math.nan)
    assert repr(measure.decode_input(built.input)) == repr({"at": NOON, "value": math.nan, "unit": "m"})
    result = measure.encode_result((ODD, math.nan, None))
    at, value, nothing = measure.decode_result(result)
    assert (at.isoformat(), repr(value), nothing) == (ODD.isoformat(), "nan", None)


@job
async def seal(pet: Animal, sealed: Sealed | None = None, code: Annotated[Colour, Secret] = Colour.RED) -> Animal:
    return pet


@batch_job(size=2)
async def seal_all(pets: list[Animal]) -> list[None]: ...


def test_a_refusal_names_the_argument_and_the_value() -> None:
    with pytest.raises(InvalidInput) as refusal:
        seal(Animal("rex"), Sealed("x"))
    assert refusal.value.field == "sealed"
    assert str(refusal.value) == "seal: argument 'sealed': a Sealed cannot be read: KeyError: 'missing'"
    with pytest.raises(InvalidInput, match=r"argument 'pet': expected `str`, got `int` at \$\.name"):
        seal(Animal(1))  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="argument 'pet': a Dog would come back as a Animal") as refusal:
        seal(Dog("rex"))
    assert refusal.value.field == "pet"
    with pytest.raises(InvalidInput, match="measure: argument 'value': no float equals this int") as refusal:
        measure(NOON, BEYOND)
    assert refusal.value.field == "value"
    with pytest.raises(InvalidInput, match="the item does not fit: a Dog would come back as a Animal"):
        seal_all(Dog("rex"))
    with pytest.raises(InvalidInput, match="the result does not fit: a Dog would come back as a Animal"):
        seal.encode_result(Dog("rex"))


def test_a_refusal_does_not_show_a_secret() -> None:
    with pytest.raises(InvalidInput, match=r"argument 'code': it would come back as another value of type Colour$"):
        seal(Animal("rex"), code=Shade.RED)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput) as refusal:
        DEFAULT_CODEC.encode({"password": [Decimal("1.5")]}, dict[str, list[float]])
    assert "1.5" not in str(refusal.value)
