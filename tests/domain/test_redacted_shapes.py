"""Secrets are hidden in values of every shape that can travel, and in the messages of errors."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Annotated, Any, NamedTuple, NewType, TypedDict

import msgspec
import pytest

from ropewalk import Secret
from ropewalk.domain.redaction import HIDDEN, concealed, redacted
from ropewalk.domain.secret_marks import secret_names
from ropewalk.domain.shown_errors import error_text, traceback_text
from tests.naming import shown

Card = NewType("Card", Annotated[str, Secret])


@dataclass(frozen=True, slots=True)
class User:
    name: str
    password: str


@dataclass
class Account:
    owner: User
    number: Annotated[str, Secret]
    notes: list[str] = field(default_factory=list[str])

    def __post_init__(self) -> None:
        if self.number == HIDDEN:
            raise ValueError("no number")


class Login(msgspec.Struct, frozen=True, rename="camel"):
    user_name: str
    second_factor: Annotated[str, Secret] | None = None


class Pair(NamedTuple):
    name: str
    token: str


class Form(TypedDict):
    name: str
    codes: list[Annotated[str, Secret]]


class Model:
    """As a pydantic model looks from outside."""

    def __init__(self, name: str, card: str) -> None:
        self.name = name
        self.card = card

    card: Annotated[str, Secret]

    def model_dump(self, *, mode: str) -> dict[str, object]:
        return vars(self)


class Attributes:
    """As an attrs class looks from outside."""

    __attrs_attrs__ = (SimpleNamespace(name="name"), SimpleNamespace(name="pin"))

    def __init__(self) -> None:
        self.name, self.pin = "ada", 1234


class Plain:
    def __init__(self) -> None:
        self.api_key = "k"
        self.everything = [self]


@dataclass
class Late:
    value: Annotated[str, Secret]
    other: NotDefined | None = None  # type: ignore[name-defined] # noqa: F821 # pyright: ignore[reportUndefinedVariable]


USER = User("ada", "hunter2")
SHOWN = {"name": "ada", "password": HIDDEN}


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (USER, SHOWN),
        ([USER, 1], [SHOWN, 1]),
        ((USER,), [SHOWN]),
        (deque([USER]), [SHOWN]),
        ({USER}, [SHOWN]),
        (Account(USER, "4111"), {"owner": SHOWN, "number": HIDDEN, "notes": []}),
        (Login("ada", "123"), {"user_name": "ada", "second_factor": HIDDEN}),
        (Pair("ada", "t"), {"name": "ada", "token": HIDDEN}),
        (Model("ada", "4111"), {"name": "ada", "card": HIDDEN}),
        (Attributes(), {"name": "ada", "pin": HIDDEN}),
        (SimpleNamespace(user="ada", apiKey="k"), {"user": "ada", "apiKey": HIDDEN}),
        (Plain(), f"<Plain {HIDDEN}>"),
        (ValueError("no", {"password": "p"}), f"ValueError: no, {{'password': '{HIDDEN}'}}"),
        ({"error": KeyError(USER)}, {"error": f"KeyError: {SHOWN}"}),
        (Late("x"), {"value": HIDDEN, "other": None}),
    ],
    ids=shown,
)
def test_every_shape_is_looked_through(value: Any, shown: Any) -> None:
    assert redacted(value) == shown
    assert redacted({"deep": [value]}) == {"deep": [shown]}


@pytest.mark.parametrize(
    "value",
    [Login("ada").user_name, [1, ("a",)], {"a": {1}}, ValueError("no"), Form, object(), Pair, deque([1])],
    ids=shown,
)
def test_what_has_nothing_to_hide_is_passed_on_as_it_is(value: Any) -> None:
    assert redacted(value) is value


def test_functions_of_users_get_objects_of_the_same_class() -> None:
    account, login, pair = Account(USER, "4111"), Login("ada", "1"), Pair("ada", "t")
    seen = concealed({"account": account, "login": login, "pair": pair, "card": "4111"}, {"card", "token"})
    assert type(seen["account"]) is Account and type(seen["login"]) is Login and type(seen["pair"]) is Pair
    assert (seen["account"].number, seen["login"].second_factor, seen["pair"].token) == (HIDDEN, HIDDEN, HIDDEN)
    assert seen["card"] == HIDDEN
    assert seen["account"].owner is USER, "it is not marked"
    assert account.number == "4111"


@pytest.mark.parametrize(
    ("annotation", "names"),
    [
        (Account, {"number"}),
        (dict[str, list[Account] | None], {"number"}),
        (Login | None, {"second_factor"}),
        (Form, {"codes"}),
        (Annotated[Pair, "x"], set[str]()),
        (list[tuple[Model, ...]], {"card"}),
        (Late, {"value"}),
        (int, set[str]()),
    ],
)
def test_names_of_marked_fields_are_found_anywhere_in_an_annotation(annotation: Any, names: set[str]) -> None:
    assert secret_names(annotation) == names


def test_messages_and_tracebacks_hide_what_the_arguments_hold() -> None:
    def fail() -> None:
        try:
            raise LookupError({"password": USER.password})
        except LookupError as error:
            raise RuntimeError("for", USER) from error

    with pytest.raises(RuntimeError) as caught:
        fail()
    assert error_text(caught.value) == f"for, {SHOWN}"
    told = traceback_text(ExceptionGroup("both", [caught.value]))
    assert "hunter2" not in told
    assert "LookupError: {'password': '[hidden]'}" in told and "in fail" in told
    assert error_text(ValueError("plain")) == "plain"
