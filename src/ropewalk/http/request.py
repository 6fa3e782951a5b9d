"""A request as it came in: read from ASGI, not interpreted yet."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import suppress
from typing import Any, Final, TypeAlias
from urllib.parse import unquote_to_bytes

from ropewalk.http.errors import ErrorCode, HttpError, invalid

Scope: TypeAlias = MutableMapping[str, Any]
Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]

BODY_BYTES_MAX: Final = 16 * 1024 * 1024
BODY_SECONDS: Final = 30.0
"""How long a client may take to send a body."""
DISCARDED_BYTES_MAX: Final = 64 * 1024 * 1024
DISCARD_SECONDS: Final = 5.0
"""How much of a body that is too large is still read, so that its client sees the answer."""
_SAFE_ID: Final = re.compile(r"[A-Za-z0-9._:-]{1,64}")


class Request:
    """One HTTP request. Its body is read when somebody asks for it."""

    def __init__(self, scope: Scope, receive: Receive, request_id: str) -> None:
        self.scope: Final = scope
        """The scope that the server gave, for authenticators that read more than headers."""
        self.method: Final[str] = scope["method"]
        self.query: Final[bytes] = scope.get("query_string", b"")
        self._receive = receive
        self._headers: dict[str, str] | None = None
        self._fresh_id = request_id
        self._body: bytes | None = None
        self._ended = False
        """Whether all of the request has come, or its client has gone."""

    @property
    def headers(self) -> dict[str, str]:
        """The headers by lower-case name. Repeated headers are joined by commas, as HTTP defines them to be equal."""
        if self._headers is None:
            found: dict[str, str] = {}
            for raw_name, raw_value in self.scope.get("headers", ()):
                name, value = raw_name.decode("latin-1").lower(), raw_value.decode("latin-1")
                found[name] = f"{found[name]}, {value}" if name in found else value
            self._headers = found
        return self._headers

    @property
    def id(self) -> str:
        """The caller's X-Request-ID if it is short and safe, else one of our own."""
        given = self.headers.get("x-request-id", "")
        return given if _SAFE_ID.fullmatch(given) else self._fresh_id

    @property
    def path(self) -> str:
        """The path below the mount point, as it was sent: percent-encoded."""
        scope = self.scope
        raw: bytes = scope.get("raw_path") or scope["path"].encode()
        path = raw.split(b"?", 1)[0].decode("latin-1")
        root: str = scope.get("root_path", "")
        return path.removeprefix(root) if root else path

    def segments(self) -> tuple[str, ...]:
        """The path, split before it is decoded, so that an encoded slash stays inside its segment."""
        return tuple(_decoded(segment) for segment in self.path.lstrip("/").split("/"))

    @property
    def peer(self) -> str | None:
        """The address at the other end of the socket. None on a Unix socket."""
        client = self.scope.get("client")
        return None if client is None else str(client[0])

    @property
    def https(self) -> bool:
        return bool(self.scope.get("scheme") == "https")

    async def body(self, limit: int = BODY_BYTES_MAX) -> bytes:
        """The whole body. Raises HttpError if it is too large or too slow, or if the client has gone."""
        if self._body is None:
            self._body = await self._read(limit)
        return self._body

    async def _read(self, limit: int) -> bytes:
        announced = self.headers.get("content-length")
        if announced is not None and announced.isdigit() and int(announced) > limit:
            raise _too_large(limit)
        chunks: list[bytes] = []
        size = 0
        try:
            async with asyncio.timeout(BODY_SECONDS):
                while True:
                    message = await self._receive()
                    if message["type"] == "http.disconnect":
                        self._ended = True
                        raise Disconnected
                    chunk: bytes = message.get("body", b"")
                    size += len(chunk)
                    self._ended = not message.get("more_body", False)
                    if size > limit:
                        raise _too_large(limit)
                    chunks.append(chunk)
                    if self._ended:
                        return b"".join(chunks)
        except TimeoutError as error:
            raise invalid(f"the body did not arrive within {BODY_SECONDS:.0f} seconds", field="body") from error

    async def discard(self) -> None:
        """Reads and forgets what still comes of the body, within bounds.

        A connection that is closed while its client still sends is reset, and the client never sees the answer.
        """
        left = DISCARDED_BYTES_MAX
        with suppress(TimeoutError):
            async with asyncio.timeout(DISCARD_SECONDS):
                while not self._ended and left > 0:
                    message = await self._receive()
                    left -= len(message.get("body", b""))
                    self._ended = not message.get("more_body", False)

    async def disconnected(self) -> None:
        """Returns when the client has gone. To be awaited beside the work for it, after the body was read."""
        while True:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                return


class Disconnected(Exception):
    """The client has gone; nobody is there to answer."""


def _decoded(segment: str) -> str:
    try:
        return unquote_to_bytes(segment).decode()
    except UnicodeDecodeError as error:
        raise invalid(f"the path has a part that is not UTF-8: {segment[:80]!r}", field="path") from error


def _too_large(limit: int) -> HttpError:
    return HttpError(ErrorCode.PAYLOAD_TOO_LARGE, f"the body is larger than {limit:,} bytes")
