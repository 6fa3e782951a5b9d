"""O8: one place that hides secrets."""

from __future__ import annotations

from pathlib import Path

import pytest

from ropewalk.domain.redaction import DEPTH_MAX, FACTS, HIDDEN, SECRET_KEYS, is_secret, redacted


@pytest.mark.parametrize(
    "name",
    [
        *("password", "Password", "DB_PASSWORD", "userPassword", "passwd", "pwd", "user_pwd", "passphrase", "passcode"),
        *("secret", "secrets", "client-secret", "secret_key", "access_token", "tokens", "csrfToken", "token2", "otp"),
        *("apiKey", "api_key", "apikey", "X-API-Key", "private_key", "signing_key", "encryption_key", "jwt", "id_jwt"),
        *("Authorization", "auth", "basic_auth", "auth_header", "bearer", "bearer_token", "HTTP_AUTHORIZATION"),
        *("set-cookie", "cookie", "cookies", "session_id", "sessionId", "session-key", "sessid", "JSESSIONID"),
        *("CVV", "cvc", "card_cvc", "cvv2", "pin", "pins", "user_pin", "otp_code", "totp", "mfa_code", "ssn"),
        *("signature", "credential", "credentials", "max_token", "type_token", "limit_password", "count_secret"),
        *("token_value", "password_hash", "secret_id", "token_at_rest"),
    ],
)
def test_names_that_are_secret(name: str) -> None:
    assert is_secret(name)


@pytest.mark.parametrize(
    "name",
    [
        *("tokenize", "secretary", "key", "author", "authors", "authority", "spin", "pinned", "pinboard", "monkey"),
        *("opt", "option", "session", "sessions", "cookiecutter", "bearing", "jwtlib", "unauthorized", "", 7, None),
        *("token_count", "tokens_used", "max_tokens_used", "tokenCount", "TOKEN_LIMIT", "tokens_max", "tokens_min"),
        *("tokens_total", "cookie_policy", "cookie-policy", "token_type", "auth_type", "auth_method", "auth_scheme"),
        *("password_changed_at", "token_expires_at", "tokenExpiresAt", "password_policy"),
        *(
            "pin_limit",
            "secret_version",
            "otp_required",
            "mfa_enabled",
            "session_id_count",
            "cookie_max_age",
            "max_tokens",
            "num_tokens",
        ),
        *("signature_algorithm", "authorization_status", "token_bytes", "password_length"),
    ],
)
def test_names_that_are_not(name: object) -> None:
    assert not is_secret(name)


def test_secret_keys_hide_whatever_their_names_end_with() -> None:
    assert is_secret("token_count", ["token_count"])


def test_everything_under_a_secret_name_is_hidden_at_any_depth() -> None:
    given = {"user": "ada", "seen": [{"token": {"a": 1}}, ("x", {"iban": 1})], 3: {"pin": None}}
    assert redacted(given, ["iban"]) == {
        "user": "ada",
        "seen": [{"token": HIDDEN}, ["x", {"iban": HIDDEN}]],
        3: {"pin": HIDDEN},
    }
    assert given["seen"][0] == {"token": {"a": 1}}, "what it is given stays as it is"  # type: ignore[index]


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


def test_the_guide_names_every_word() -> None:
    guide = (Path(__file__).parents[2] / "docs/guide/observability.md").read_text()
    rows = [line for line in guide.splitlines() if line.startswith("| ")]
    told = {word.replace(" ", "") for row in rows for word in row.split(" | ")[-1].removesuffix(" |").split(", ")}
    assert SECRET_KEYS - {"jsessionid", "phpsessid"} <= told
    assert told >= FACTS
