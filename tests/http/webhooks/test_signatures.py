"""Signatures of webhooks, checked by the reference library of the specification and by our own function."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from standardwebhooks.webhooks import Webhook

from ropewalk.errors import InvalidInput
from ropewalk.webhooks import InvalidSignature, signature, verify

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
OTHER = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"
BODY = b'{"type": "job.completed"}'


def signed(*secrets: str, age_seconds: int = 0) -> dict[str, str]:
    now = int(datetime.now(UTC).timestamp()) - age_seconds
    made = " ".join(signature(BODY, "msg-1", now, each) for each in secrets)
    return {"Webhook-Id": "msg-1", "Webhook-Timestamp": str(now), "Webhook-Signature": made}


def test_the_reference_library_accepts_our_signature() -> None:
    headers = {name.lower(): value for name, value in signed(SECRET).items()}
    assert Webhook(SECRET).verify(BODY, headers) == {"type": "job.completed"}


def test_we_accept_the_signature_of_the_reference_library() -> None:
    now = datetime.now(UTC)
    made = Webhook(SECRET).sign("msg-1", now, BODY.decode())
    headers = {"webhook-id": "msg-1", "webhook-timestamp": str(int(now.timestamp())), "webhook-signature": made}
    assert verify(BODY, headers, secret=SECRET) == {"type": "job.completed"}


def test_either_secret_of_a_rotation_is_accepted() -> None:
    assert verify(BODY, signed(OTHER, SECRET), secret=SECRET)
    assert verify(BODY, signed(OTHER), secret=[SECRET, OTHER])


@pytest.mark.parametrize(
    ("secret", "changed", "body"),
    [
        (OTHER, {}, BODY),
        (SECRET, {}, BODY + b" "),
        (SECRET, {"Webhook-Id": "msg-2"}, BODY),
        (SECRET, {"Webhook-Signature": "v1,ä"}, BODY),
    ],
)
def test_what_was_not_signed_so_is_refused(secret: str, changed: dict[str, str], body: bytes) -> None:
    assert refused_field(body, {**signed(secret), **changed}) == "webhook-signature"


@pytest.mark.parametrize("age_seconds", [301, -900])
def test_a_signature_that_is_too_old_or_from_the_future_is_refused(age_seconds: int) -> None:
    assert refused_field(BODY, signed(SECRET, age_seconds=age_seconds)) == "webhook-timestamp"


def test_without_a_time_it_is_refused() -> None:
    assert refused_field(BODY, {**signed(SECRET), "Webhook-Timestamp": "²"}) == "webhook-timestamp"
    assert refused_field(BODY, {"webhook-id": "msg-1"}) == "webhook-timestamp"


def refused_field(body: bytes, headers: dict[str, str]) -> str | None:
    with pytest.raises(InvalidSignature) as refused:
        verify(body, headers, secret=SECRET)
    return refused.value.field


def test_a_secret_that_is_none_is_named() -> None:
    with pytest.raises(InvalidInput, match="secret is not whsec_"):
        verify(BODY, signed(SECRET), secret="whsec_ä")
