"""Which names a request may use for this server.

A page of an attacker can make its own name resolve to this machine, and then sends requests that look as if they came
from the page's own server (DNS rebinding). They carry that name as Host. An address cannot be made to resolve.
"""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import ip_address

from ropewalk.domain import checks
from ropewalk.http.errors import ErrorCode, HttpError
from ropewalk.http.request import Request


class Hosts:
    """Allows addresses, localhost, and the names that are given."""

    def __init__(self, names: Iterable[str]) -> None:
        self._names = frozenset({"localhost", *(name.lower() for name in checks.names(names, "hosts"))})

    def check(self, request: Request) -> None:
        """Raises HttpError for a request that uses another name. On a Unix socket there is none to check."""
        if request.peer is None:
            return
        host = _without_port(request.headers.get("host", ""))
        if host.lower() in self._names or _is_address(host):
            return
        message = f"this server is not known as {host[:100]!r}: allow the name where the server is started"
        raise HttpError(ErrorCode.FORBIDDEN, message)


def _without_port(host: str) -> str:
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0]


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True
