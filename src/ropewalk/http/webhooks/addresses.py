"""Which URLs a webhook may have, and which addresses may be connected to.

Whoever may set a callback must not be able to make the server send requests into its own network. The URL is checked
when it is given, and every address that its name resolves to when a request is sent; the connection goes to an address
that was checked, so that a name which resolves differently a moment later changes nothing.
"""

from __future__ import annotations

import asyncio
import socket
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Final
from urllib.parse import urlsplit

from msgspec import Struct

from ropewalk.domain.shown_values import shown
from ropewalk.errors import InvalidInput

URL_CHARS_MAX: Final = 2048
HTTPS_PORT: Final = 443
FREE_PORT_MIN: Final = 1024
_FORBIDDEN_4: Final = tuple(map(IPv4Network, ("192.0.0.0/24", "192.88.99.0/24")))
_ALLOWED_6: Final = IPv6Network("2000::/3")
_FORBIDDEN_6: Final = tuple(map(IPv6Network, ("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20")))


class Target(Struct, frozen=True):
    """Where a webhook is sent to."""

    host: str
    port: int
    path: str
    """The path with its query."""

    @property
    def authority(self) -> str:
        """The Host header."""
        name = f"[{self.host}]" if ":" in self.host else self.host
        return name if self.port == HTTPS_PORT else f"{name}:{self.port}"


class ForbiddenAddress(InvalidInput):
    """The name of a webhook resolves to an address that must not be connected to."""


def checked_url(url: str, field: str = "url") -> Target:
    """Raises InvalidInput for a URL that no webhook may have."""
    if len(url) > URL_CHARS_MAX:
        raise InvalidInput(f"{field} has {len(url)} characters, over {URL_CHARS_MAX}", field=field)
    if not url.isascii() or any(character <= " " or character == "\x7f" for character in url):
        raise _refused(url, field, "it has characters that must be percent-encoded")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise _refused(url, field, "it is not a URL") from None
    if parts.scheme != "https":
        raise _refused(url, field, "only https:// is allowed")
    if parts.username is not None or parts.password is not None or "@" in parts.netloc:
        raise _refused(url, field, "it has a user name or a password")
    if not parts.hostname or "\\" in url:
        raise _refused(url, field, "it has no host")
    port = HTTPS_PORT if port is None else port
    if port != HTTPS_PORT and port < FREE_PORT_MIN:
        raise _refused(url, field, f"port {port} is not allowed: use 443, or one from 1024 on")
    path = parts.path or "/"
    target = Target(parts.hostname, port, f"{path}?{parts.query}" if parts.query else path)
    literal = _literal(target.host)
    if literal is not None and not is_allowed(literal):
        raise _refused(url, field, "it is an address that is not public")
    return target


def is_allowed(address: IPv4Address | IPv6Address) -> bool:
    """Whether an address is public. `is_global` alone would admit addresses that translate to private ones."""
    if isinstance(address, IPv4Address):
        return address.is_global and not address.is_multicast and not any(address in each for each in _FORBIDDEN_4)
    return address in _ALLOWED_6 and not any(address in each for each in _FORBIDDEN_6)


async def resolve(target: Target) -> list[str]:
    """The addresses of a target, all of them checked. Raises ForbiddenAddress, and OSError if there are none."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(target.host, target.port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP)
    addresses = list(dict.fromkeys(str(each[4][0]) for each in found))
    for each in addresses:
        if not is_allowed(ip_address(each.partition("%")[0])):
            message = f"{target.host} resolves to {each}, which is not a public address"
            raise ForbiddenAddress(message, field="url")
    return addresses


def _literal(host: str) -> IPv4Address | IPv6Address | None:
    """The address that a host is, also in the old forms that the C library reads, such as 2130706433 or 0x7f.1."""
    try:
        return ip_address(host)
    except ValueError:
        pass
    try:
        return IPv4Address(socket.inet_aton(host))
    except (OSError, ValueError):
        return None


def _refused(url: str, field: str, why: str) -> InvalidInput:
    return InvalidInput(f"{field}={shown(url)}: {why}", field=field)
