"""Keys of mappings: names of secrets in every form, and objects that hold secrets themselves."""

from __future__ import annotations

from collections import ChainMap, Counter, defaultdict
from dataclasses import dataclass
from enum import Enum, IntEnum, StrEnum
from typing import Annotated, Any, NamedTuple

import msgspec
import pytest

from ropewalk import Secret, job
from ropewalk.domain.redaction import HIDDEN, concealed, is_secret, redacted
from tests.naming import shown


class Field(Enum):
    LOGIN = "password"
    TOKEN = 7
    USER = "user"


class Header(StrEnum):
    AUTHORIZATION = "x-auth"
    ACCEPT = "accept"


class Number(IntEnum):
    PIN = 1
    AGE = 2


class Text(str):
    """Compares and shows itself in a way of its own."""

    __slots__ = ()

    def __str__(self) -> str:
        return "a text"

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return 1


@dataclass(frozen=True)
class Payment:
    card: Annotated[str, Secret]
    user: str = "ada"


class Key(msgspec.Struct, frozen=True):
    token: str


class Pair(NamedTuple):
    user: str
    code: Annotated[str, Secret]


@job
async def pay(card: Annotated[str, Secret]) -> None: ...


@pytest.mark.parametrize(
    "name",
    [
        *(b"password", b"X-API-Key", Field.LOGIN, Field.TOKEN, Header.AUTHORIZATION, Number.PIN, Text("password")),
        *(("user", "password"), ("user", b"token"), (1, ("deep", Field.LOGIN)), b"\xff password"),
    ],
    ids=shown,
)
def test_a_name_in_any_form_is_secret(name: object) -> None:
    assert is_secret(name)
    assert redacted({name: "hunter2"}) == {name: HIDDEN}
    assert redacted([{"deep": {name: "hunter2"}}]) == [{"deep": {name: HIDDEN}}]


@pytest.mark.parametrize(
    "name", [b"user", Field.USER, Header.ACCEPT, Number.AGE, Text("author"), ("user", 1), b"", 7, None, 1.5], ids=shown
)
def test_a_name_that_is_not_secret_hides_nothing(name: object) -> None:
    given = {name: "ada"}
    assert not is_secret(name)
    assert redacted(given) is given


@pytest.mark.parametrize("name", [b"iban", Text("iban"), ("of", "iban")], ids=shown)
def test_the_names_that_an_app_adds_are_found_in_any_form(name: object) -> None:
    assert redacted({name: "DE99"}, ["iban"]) == {name: HIDDEN}
    assert concealed({name: "DE99"}, ["iban"]) == {name: HIDDEN}


@pytest.mark.parametrize(
    ("key", "told"),
    [
        (Payment("4111"), f"{{'card': '{HIDDEN}', 'user': 'ada'}}"),
        (Key("4111"), f"{{'token': '{HIDDEN}'}}"),
        (Pair("ada", "4111"), f"{{'user': 'ada', 'code': '{HIDDEN}'}}"),
        (("ada", Payment("4111")), f"['ada', {{'card': '{HIDDEN}', 'user': 'ada'}}]"),
        (frozenset({Key("4111")}), f"[{{'token': '{HIDDEN}'}}]"),
        (ValueError("no", Payment("4111")), f"ValueError: no, {{'card': '{HIDDEN}', 'user': 'ada'}}"),
        (pay("4111"), f"Job(pay card={HIDDEN})"),
    ],
    ids=shown,
)
def test_a_key_that_holds_a_secret_is_replaced_by_a_text(key: Any, told: str) -> None:
    assert redacted({key: 1, "n": 2}) == {told: 1, "n": 2}
    assert "4111" not in str(redacted({"deep": [{key: 1}]}))
    assert "4111" not in str(redacted(defaultdict(int, {key: 1})))
    assert "4111" not in str(redacted(ChainMap({key: 1})))


def test_every_entry_keeps_a_key_of_its_own() -> None:
    told = f"{{'token': '{HIDDEN}'}}"
    assert redacted({Key("4111"): 1, Key("4112"): 2, Key("4113"): 3}) == {told: 1, f"{told}'": 2, f"{told}''": 3}


def test_a_key_with_nothing_to_hide_stays_as_it_is() -> None:
    class Plain(NamedTuple):
        x: int
        y: int

    given = {Plain(1, 2): "a", (3, 4): "b", Field.USER: "c", frozenset({5}): "d"}
    assert redacted(given) is given


def test_views_of_a_mapping_hide_what_the_mapping_hides() -> None:
    given = {"user": "ada", "password": "hunter2", Key("4111"): 1}
    told = {"user": "ada", "password": HIDDEN, f"{{'token': '{HIDDEN}'}}": 1}
    assert redacted(given.items()) == told
    assert "4111" not in str(redacted(given.keys()))
    assert redacted({"a": Key("4111")}.values()) == [{"token": HIDDEN}]
    plain = {"user": "ada"}
    for view in (plain.items(), plain.keys(), plain.values()):
        assert redacted(view) is view


def test_a_count_of_objects_that_hold_secrets() -> None:
    assert redacted(Counter([Key("4111"), Key("4111")])) == {f"{{'token': '{HIDDEN}'}}": 2}
