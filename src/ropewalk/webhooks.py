"""For receivers of webhooks: checks that a request comes from the ropewalk server that has the secret.

Signatures follow the Standard Webhooks specification, so that any of its libraries can check them, too.

>>> verify(body, headers, secret="whsec_…")    # in the handler of the web framework
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from ropewalk.domain import checks
from ropewalk.domain.time import SECOND
from ropewalk.errors import InvalidInput
from ropewalk.runtime.system import SystemRuntime

SECRET_PREFIX: Final = "whsec_"  # noqa: S105  how a secret begins
VERSION: Final = "v1"
TOLERANCE_SECONDS: Final = 300.0


class InvalidSignature(InvalidInput):
    """The request was not signed with this secret, or too long ago. It must not be acted upon."""


def verify(
    body: bytes,
    headers: Mapping[str, str],
    *,
    secret: str | Sequence[str],
    tolerance_seconds: float = TOLERANCE_SECONDS,
) -> dict[str, Any]:
    """The decoded body of a webhook. Raises InvalidSignature.

    During a rotation give both secrets. A delivery can arrive more than once: its `webhook-id` stays the same.
    """
    given = {name.lower(): value for name, value in headers.items()}
    missing = [name for name in ("webhook-id", "webhook-timestamp", "webhook-signature") if name not in given]
    if missing:
        raise InvalidSignature(f"the request has no header {missing[0]}", field=missing[0])
    timestamp = given["webhook-timestamp"]
    if not timestamp.isascii() or not timestamp.isdigit():
        raise InvalidSignature(f"webhook-timestamp={timestamp[:40]!r} is not a number", field="webhook-timestamp")
    age_seconds = SystemRuntime().now() / SECOND - int(timestamp)
    if abs(age_seconds) > tolerance_seconds:
        raise InvalidSignature(
            f"webhook-timestamp={timestamp} is {age_seconds:.0f} seconds from now, over {tolerance_seconds:g}: "
            "the request is a repetition, or a clock is wrong",
            field="webhook-timestamp",
        )
    secrets = [secret] if isinstance(secret, str) else list(secret)
    expected = [signature(body, given["webhook-id"], int(timestamp), each) for each in secrets]
    sent = given["webhook-signature"].split()
    if not any(hmac.compare_digest(one.encode(), other.encode()) for one in expected for other in sent):
        raise InvalidSignature("webhook-signature fits none of the secrets", field="webhook-signature")
    decoded: dict[str, Any] = msgspec.json.decode(body)
    return decoded


def signature(body: bytes, webhook_id: str, timestamp_seconds: int, secret: str) -> str:
    """What `webhook-signature` contains for one secret."""
    signed = b".".join([webhook_id.encode(), str(timestamp_seconds).encode(), body])
    digest = hmac.new(_key(secret), signed, hashlib.sha256).digest()
    return f"{VERSION},{base64.b64encode(digest).decode()}"


def _key(secret: str) -> bytes:
    checks.text(secret, "secret")
    try:
        return base64.b64decode(secret.removeprefix(SECRET_PREFIX), validate=True)
    except (binascii.Error, ValueError) as error:
        raise InvalidInput(f"secret is not {SECRET_PREFIX}… as the server showed it", field="secret") from error
