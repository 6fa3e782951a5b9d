"""O8: one place that hides secrets."""

from __future__ import annotations

import pytest

from ropewalk.domain.redaction import DEPTH_MAX, HIDDEN, is_secret, redacted


@pytest.mark.parametrize(
    "name",
    [
        *("password", "Password", "DB_PASSWORD", "userPassword", "passwd", "secret", "client-secret", "access_token"),
        *("tokens", "apiKey", "api_key", "X-API-Key", "Authorization", "set-cookie", "private_key", "CVV", "pin"),
    ],
)
def test_names_that_are_secret(name: str) -> None:
    assert is_secret(name)


@pytest.mark.parametrize("name", ["tokenize", "secretary", "key", "author", "spin", "pinned", "monkey", "", 7, None])
def test_names_that_are_not(name: object) -> None:
    assert not is_secret(name)


def test_everything_under_a_secret_name_is_hidden_at_any_depth() -> None:
    given = {"user": "ada", "auth": [{"token": {"a": 1}}, ("x", {"iban": 1})], 3: {"pin": None}}
    assert redacted(given, ["iban"]) == {
        "user": "ada",
        "auth": [{"token": HIDDEN}, ["x", {"iban": HIDDEN}]],
        3: {"pin": HIDDEN},
    }
    assert given["auth"][0] == {"token": {"a": 1}}, "what it is given stays as it is"  # type: ignore[index]


def test_what_is_too_deep_to_look_through_is_not_shown() -> None:
    deep: dict[str, object] = {}
    for _ in range(DEPTH_MAX + 1):
        deep = {"again": deep}
    shown = redacted(deep)
    for _ in range(DEPTH_MAX + 1):
        shown = shown["again"]
    assert shown == HIDDEN


def test_what_contains_itself_is_shown_once() -> None:
    ring: dict[str, object] = {"pin": 1}
    ring["again"] = [ring] * 100
    assert redacted(ring) == {"pin": HIDDEN, "again": [HIDDEN] * 100}
