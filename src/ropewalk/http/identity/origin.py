"""Refuses requests that a foreign page made a browser send."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

from ropewalk.http.errors import ErrorCode, HttpError
from ropewalk.http.request import Request

SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS"})


def check_origin(request: Request) -> None:
    """Raises HttpError for a request that changes something, carries no token, and may come from a foreign page.

    A browser sends cookies by itself, and a proxy may add identities by itself; a token in the Authorization header is
    only ever sent on purpose.
    """
    headers = request.headers
    if request.method in SAFE or "authorization" in headers:
        return
    same_site = headers.get("sec-fetch-site")
    same_origin = same_site == "same-origin" if same_site is not None else _is_own(headers)
    if not same_origin or headers.get("x-ropewalk") != "1":
        message = "a request without a token must come from the page of this server and have the header X-Ropewalk: 1"
        raise HttpError(ErrorCode.FORBIDDEN, message)


def _is_own(headers: dict[str, str]) -> bool:
    origin, host = headers.get("origin"), headers.get("host")
    return origin is not None and host is not None and urlsplit(origin).netloc == host
