"""D5: classes the codec learns: registered ones, and models that validate and dump themselves."""

from __future__ import annotations

from typing import Any, Self

import pytest

from ropewalk.definitions.codec.codec import DEFAULT_CODEC
from ropewalk.definitions.codec.custom import register_type
from ropewalk.definitions.job_types.decorator import job
from ropewalk.errors import DefinitionError, InvalidInput


class Money:
    def __init__(self, cents: int, parts: set[int]) -> None:
        self.cents = cents
        self.parts = parts

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Money) and (self.cents, self.parts) == (other.cents, other.parts)

    __hash__ = None  # type: ignore[assignment] # what Python itself sets

    @classmethod
    def from_pair(cls, pair: tuple[int, set[int]]) -> Money:
        cents, parts = pair
        if cents < 0:
            raise ValueError("money is positive")
        return cls(cents, parts)


register_type(Money, "money", lambda money: (money.cents, money.parts), Money.from_pair)


class Model:
    """As a pydantic model looks from outside."""

    def __init__(self, name: str, size: float) -> None:
        self.name = name
        self.size = size

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Model) and vars(self) == vars(other)

    __hash__ = None  # type: ignore[assignment] # what Python itself sets

    @classmethod
    def model_validate(cls, obj: Any) -> Self:
        if not isinstance(obj, dict) or set(obj) != {"name", "size"}:
            raise ValueError("name and size are needed")
        return cls(**obj)

    def model_dump(self, *, mode: str) -> dict[str, object]:
        assert mode == "json"
        return {"name": self.name, "size": self.size}

    @classmethod
    def model_json_schema(cls) -> dict[str, Any]:
        return {"title": "Model", "type": "object"}


@pytest.mark.parametrize("annotation", [Any, Money, Money | None, list[Money], dict[str, Money]])
def test_a_registered_type_travels_with_and_without_annotation(annotation: Any) -> None:
    money = Money(5, {1, 2})
    value: Any = {list[Money]: [money], dict[str, Money]: {"a": money}}.get(annotation, money)
    assert DEFAULT_CODEC.decode(DEFAULT_CODEC.encode(value, annotation), annotation) == value


def test_the_tag_is_written_only_where_nothing_is_declared() -> None:
    assert DEFAULT_CODEC.encode(Money(5, set()), Any).startswith(b'{"$rw":"money","v":{"$rw":"tuple"')
    assert DEFAULT_CODEC.encode(Money(5, set()), Money).startswith(b'{"$rw":"tuple","v":[5,')


def test_what_decode_refuses_is_refused_at_encode_too() -> None:
    for annotation in (Money, Any):
        data = DEFAULT_CODEC.encode(Money(5, set()), annotation).replace(b"5", b"-5")
        with pytest.raises(InvalidInput, match="money is positive"):
            DEFAULT_CODEC.decode(data, annotation)
    with pytest.raises(InvalidInput, match=r"money is positive at \$\[1\]"):
        DEFAULT_CODEC.encode([Money(1, set()), Money(-1, set())], list[Money])


@pytest.mark.parametrize("size", [1.5, float("inf")])
def test_a_model_travels_by_its_own_methods(size: float) -> None:
    for annotation, value in ((Model, Model("a", size)), (dict[str, Model | None], {"k": Model("a", size), "n": None})):
        assert DEFAULT_CODEC.decode(DEFAULT_CODEC.encode(value, annotation), annotation) == value


def test_a_model_checks_itself() -> None:
    with pytest.raises(InvalidInput, match="name and size are needed"):
        DEFAULT_CODEC.decode(b'{"name":"a"}', Model)
    with pytest.raises(InvalidInput, match="Model cannot be restored exactly where no type is declared"):
        DEFAULT_CODEC.encode(Model("a", 1), Any)


def test_handlers_may_be_declared_with_them() -> None:
    @job
    async def pay(money: Money, model: Model) -> Money:
        return money

    built = pay(Money(5, {1}), model=Model("a", 1))
    assert pay.decode_input(built.input) == {"money": Money(5, {1}), "model": Model("a", 1)}
    assert pay.decode_result(pay.encode_result(Money(5, {1}))) == Money(5, {1})
    properties = next(iter(pay.input_schema()["$defs"].values()))["properties"]
    assert properties == {"money": {"title": "Money"}, "model": {"title": "Model", "type": "object"}}


def test_tags_are_unambiguous() -> None:
    class Other:
        pass

    with pytest.raises(DefinitionError, match="tag 'datetime' belongs to the codec itself"):
        register_type(Other, "datetime", str, lambda _: Other())
    with pytest.raises(DefinitionError, match=r"tag 'money' of .*Other is already the tag of Money"):
        register_type(Other, "money", str, lambda _: Other())


def test_registering_again_replaces() -> None:
    class Box:
        pass

    register_type(Box, "box-1", lambda _: 1, lambda _: Box())
    register_type(Box, "box-2", lambda _: 2, lambda _: Box())
    assert DEFAULT_CODEC.encode(Box(), Any) == b'{"$rw":"box-2","v":2}'
    with pytest.raises(InvalidInput, match="'box-1' is no tag"):
        DEFAULT_CODEC.decode(b'{"$rw":"box-1","v":1}', Any)
