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
    ("headers", "body", "field"),
    [
        (signed(OTHER), BODY, "webhook-signature"),
        (signed(SECRET), BODY + b" ", "webhook-signature"),
        ({**signed(SECRET), "Webhook-Id": "msg-2"}, BODY, "webhook-signature"),
        ({**signed(SECRET), "Webhook-Signature": "v1,ä"}, BODY, "webhook-signature"),
        ({**signed(SECRET), "Webhook-Timestamp": "²"}, BODY, "webhook-timestamp"),
        (signed(SECRET, age_seconds=301), BODY, "webhook-timestamp"),
        (signed(SECRET, age_seconds=-900), BODY, "webhook-timestamp"),
        ({"webhook-id": "msg-1"}, BODY, "webhook-timestamp"),
    ],
)
def test_what_was_not_signed_so_is_refused(headers: dict[str, str], body: bytes, field: str) -> None:
    with pytest.raises(InvalidSignature) as refused:
        verify(body, headers, secret=SECRET)
    assert refused.value.field == field


def test_a_secret_that_is_none_is_named() -> None:
    with pytest.raises(InvalidInput, match="secret is not whsec_"):
        verify(BODY, signed(SECRET), secret="whsec_ä")
