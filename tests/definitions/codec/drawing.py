"""Annotations drawn at random, each with a function that draws values of exactly that annotation."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum, IntEnum, IntFlag, StrEnum
from functools import reduce
from operator import or_
from random import Random
from types import GenericAlias
from typing import Annotated, Any, Literal, NamedTuple, NotRequired, Optional, TypeAlias, TypedDict, TypeVar, get_args
from uuid import UUID
from zoneinfo import ZoneInfo

import msgspec

T = TypeVar("T")
Draw: TypeAlias = Callable[[Random], Any]
Drawn: TypeAlias = tuple[Any, Draw]

ZONES = (
    None,
    UTC,
    timezone(timedelta(hours=-23, minutes=-59)),
    timezone(timedelta(minutes=19, seconds=32)),
    timezone(-timedelta(hours=1, microseconds=1)),
    ZoneInfo("Europe/Amsterdam"),
    ZoneInfo("America/New_York"),
)
MOMENTS = tuple(
    datetime.fromisoformat(written)
    for written in (
        "0001-01-01",
        "9999-12-31T23:59:59.999999",
        "1901-02-03T04:05:06.000007",
        "2026-03-29T02:30:00.000005",
    )
)
TEXTS = ("", "$rw", "v", "null", "NaN", "1", "true", "2026-01-01", 'ü"\\\x00\U0001f600', '"$rw"', "float")
SPANS = (timedelta.max, timedelta.min, timedelta(microseconds=-1), timedelta(0), timedelta(days=-3, seconds=5))
FLOATS = (math.nan, math.inf, -math.inf, -0.0, 0.0, 1.0, 5e-324, 1.7976931348623157e308, 0.1)
DECIMALS = ("-0", "0E-7", "-0.00", "NaN", "-NaN", "NaN123", "Infinity", "1E+400", "1.10", "-12.5")
INTEGERS = (0, -1, 1, 2**53 + 1, 2**63, -(2**63) - 1, 2**64, 2**80)


class Odd(Enum):
    TAG = "$rw"
    EMPTY = ""
    NULL = "null"
    ONE = "1"


class Word(StrEnum):
    TAG = "$rw"
    VALUE = "v"


class Level(IntEnum):
    LOW = -1
    HIGH = 2**40


class Rights(IntFlag):
    READ = 1
    WRITE = 2


@dataclass(frozen=True)
class Key:
    number: int
    moment: date | None = None


class Pair(NamedTuple):
    first: float
    second: Any = None


class Cell(NamedTuple):
    row: int
    level: Level


class Settings(TypedDict):
    name: str
    at: NotRequired[datetime]
    extra: NotRequired[Any]


Tagged = TypedDict("Tagged", {"$rw": float, "v": NotRequired[str]})


class Renamed(msgspec.Struct, rename={"one": "$rw", "two": "v"}):
    one: str
    two: float
    three: Any = None


class Cat(msgspec.Struct, tag_field="$rw", tag="cat"):
    lives: float
    mood: Any = None


class Kitten(Cat, tag_field="$rw", tag="kitten"):
    weeks: int = 1


class Row(msgspec.Struct, array_like=True, tag=True):
    amount: float
    note: Any = None


@dataclass
class Tree:
    value: object
    born: datetime | None = None
    weights: dict[Decimal, float] = field(default_factory=dict[Decimal, float])
    children: list[Tree] = field(default_factory=list["Tree"])
    by_key: dict[tuple[Level, int], Tree] = field(default_factory=dict[tuple[Level, int], "Tree"])


def one_of(choices: tuple[T, ...], random: Random) -> T:
    return choices[int(random.random() * len(choices))]


def text(random: Random) -> str:
    return one_of(TEXTS, random) if random.random() < 0.7 else "".join(random.choices("ab$é ", k=3))


def integer(random: Random) -> int:
    return one_of(INTEGERS, random) if random.random() < 0.5 else random.randrange(-99, 99)


def number(random: Random) -> float:
    return one_of(FLOATS, random) if random.random() < 0.6 else random.uniform(-1e6, 1e6)


def moment(random: Random) -> datetime:
    naive = one_of(MOMENTS, random).replace(fold=random.randrange(2))
    # A zone of a name has no offset for the first and last moments there are.
    zone = one_of(ZONES[:5] if naive in MOMENTS[:2] else ZONES, random)
    return naive.replace(tzinfo=zone)


def hour(random: Random) -> time:
    return time(random.randrange(24), 59, 0, random.choice([0, 1, 999_999]), one_of(ZONES[:5], random))


def day(random: Random) -> date:
    return random.choice([date.min, date.max, date(2026, 11, 16)])


def odd_value(random: Random) -> Any:
    """A value that travels without a declared type."""
    drawn = one_of(SCALARS, random)[1](random)
    if isinstance(drawn, Enum):
        drawn = drawn.value
    match random.randrange(9):
        case 0:
            return [drawn, odd_value(random)]
        case 1:
            return {text(random): drawn, "k": odd_value(random)}
        case 2:
            return (drawn, text(random))
        case 3:
            return {(integer(random), text(random)): drawn}
        case 4:
            return {1, text(random), day(random)}
        case 5:
            return {frozenset({text(random)}): {"$rw": drawn}}
        case _:
            return drawn


SCALARS: tuple[Drawn, ...] = (
    (int, integer),
    (float, number),
    (bool, lambda random: random.random() < 0.5),
    (str, text),
    (bytes, lambda random: random.randbytes(random.randrange(4))),
    (Decimal, lambda random: Decimal(one_of(DECIMALS, random))),
    (UUID, lambda random: UUID(int=random.getrandbits(128))),
    (datetime, moment),
    (date, day),
    (time, hour),
    (timedelta, lambda random: one_of(SPANS, random)),
    (None, lambda _: None),
    (Odd, lambda random: one_of(tuple(Odd), random)),
    (Word, lambda random: one_of(tuple(Word), random)),
    (Level, lambda random: one_of(tuple(Level), random)),
    (Rights, lambda random: Rights(random.randrange(4))),
    (Literal["$rw", "v", "1"], lambda random: random.choice(["$rw", "v", "1"])),
    (Literal[1, 2], lambda random: random.choice([1, 2])),
    (Annotated[int, msgspec.Meta(title="number")], integer),
)


def _tree(random: Random, levels: int = 2) -> Tree:
    children = [_tree(random, levels - 1) for _ in range(random.randrange(3))] if levels else []
    by_key = {(one_of(tuple(Level), random), integer(random)): child for child in children}
    weights = {Decimal(one_of(DECIMALS, random)): number(random)}
    return Tree(odd_value(random), random.choice([None, moment(random)]), weights, children, by_key)


def _settings(random: Random) -> Settings:
    settings = Settings(name=text(random))
    if random.random() < 0.5:
        settings["at"] = moment(random)
    if random.random() < 0.5:
        settings["extra"] = odd_value(random)
    return settings


def _kitten(random: Random) -> Kitten:
    return Kitten(number(random), odd_value(random), integer(random))


CLASSES: tuple[Drawn, ...] = (
    (Any, odd_value),
    (object, odd_value),
    (Key, lambda random: Key(integer(random), random.choice([None, day(random)]))),
    (Pair, lambda random: Pair(number(random), odd_value(random))),
    (Cell, lambda random: Cell(integer(random), one_of(tuple(Level), random))),
    (Settings, _settings),
    (Tagged, lambda random: {"$rw": number(random), "v": text(random)}),
    (Renamed, lambda random: Renamed(text(random), number(random), odd_value(random))),
    (Cat | Kitten, lambda random: _kitten(random) if random.random() < 0.5 else Cat(number(random), odd_value(random))),
    (Row, lambda random: Row(number(random), odd_value(random))),
    (Tree, _tree),
)

HASHED: tuple[Drawn, ...] = (
    *SCALARS,
    (Key, CLASSES[2][1]),
    (Cell, CLASSES[4][1]),
    (tuple[Level, int], lambda random: (one_of(tuple(Level), random), integer(random))),
    (tuple[Odd, float], lambda random: (one_of(tuple(Odd), random), number(random))),
    (tuple[Key, Decimal], lambda random: (CLASSES[2][1](random), Decimal(one_of(DECIMALS, random)))),
    (tuple[tuple[date, ...], str], lambda random: ((day(random),) * random.randrange(3), text(random))),
    (frozenset[Level], lambda random: frozenset({one_of(tuple(Level), random)})),
    (tuple[int, Any], lambda random: (integer(random), (text(random), day(random)))),
    (int | str, lambda random: random.choice([integer, text])(random)),
    (float | None, lambda random: random.choice([number(random), None])),
    (datetime | None, lambda random: random.choice([moment(random), None])),
    (Decimal | None, lambda random: random.choice([Decimal(one_of(DECIMALS, random)), None])),
)


def annotation(random: Random, depth: int = 3) -> Drawn:
    """Some are refused when a codec is built for them, as unions that JSON cannot tell apart."""
    if depth == 0 or random.random() < 0.2:
        return one_of(SCALARS if random.random() < 0.7 else CLASSES, random)
    return one_of(_CONTAINERS, random)(random, depth - 1)


def _list(random: Random, depth: int) -> Drawn:
    item, draw = annotation(random, depth)
    return GenericAlias(list, item), lambda random: [draw(random) for _ in range(random.randrange(4))]


def _tuple(random: Random, depth: int) -> Drawn:
    parts = [annotation(random, depth) for _ in range(random.randrange(1, 4))]
    declared = GenericAlias(tuple, tuple(item for item, _ in parts))
    return declared, lambda random: tuple(draw(random) for _, draw in parts)


def _any_tuple(random: Random, depth: int) -> Drawn:
    item, draw = annotation(random, depth)
    return GenericAlias(tuple, (item, ...)), lambda random: tuple(draw(random) for _ in range(random.randrange(4)))


def _set(random: Random, _: int) -> Drawn:
    item, draw = one_of(HASHED, random)
    kind = random.choice([set, frozenset])
    return GenericAlias(kind, item), lambda random: kind(draw(random) for _ in range(random.randrange(4)))


def _dict(random: Random, depth: int) -> Drawn:
    (key, draw_key), (item, draw) = one_of(HASHED, random), annotation(random, depth)
    return GenericAlias(dict, (key, item)), lambda random: {
        draw_key(random): draw(random) for _ in range(random.randrange(4))
    }


def _optional(random: Random, depth: int) -> Drawn:
    inner, draw = annotation(random, depth)
    return Optional[inner], lambda random: draw(random) if random.random() < 0.7 else None  # noqa: UP045


def _union(random: Random, depth: int) -> Drawn:
    members = [annotation(random, depth) for _ in range(random.randrange(2, 4))]
    # Beside None no other member can be joined with `|`, and beside Any the others say nothing.
    if any(each is None or {each, *get_args(each)} & {Any, object} for each, _ in members):
        return _optional(random, depth)
    declared = reduce(or_, (each for each, _ in members))
    return declared, lambda random: random.choice(members)[1](random)


def _fields(random: Random, depth: int) -> dict[str, Drawn]:
    return {name: annotation(random, depth) for name in ("a", "b_c", "_d")[: random.randrange(1, 4)]}


def _dataclass(random: Random, depth: int) -> Drawn:
    fields = _fields(random, depth)
    made = dataclasses.make_dataclass("Made", [(name, each) for name, (each, _) in fields.items()])
    return made, lambda random: made(*[draw(random) for _, draw in fields.values()])


def _struct(random: Random, depth: int) -> Drawn:
    fields = _fields(random, depth)
    made = msgspec.defstruct(
        "Made",
        [(name, each) for name, (each, _) in fields.items()],
        rename=random.choice([None, "camel", {"a": "$rw", "b_c": "v"}]),
        array_like=random.random() < 0.2,
        tag=random.choice([None, True]),
    )
    return made, lambda random: made(*[draw(random) for _, draw in fields.values()])


def _typed_dict(random: Random, depth: int) -> Drawn:
    fields = _fields(random, depth)
    made = TypedDict("Made", {name: each for name, (each, _) in fields.items()})  # type: ignore[misc]
    return made, lambda random: {name: draw(random) for name, (_, draw) in fields.items()}


_CONTAINERS = (_list, _tuple, _any_tuple, _set, _dict, _dict, _optional, _union, _dataclass, _struct, _typed_dict)
