"""The HTTP protocol of the server, with bounds on what a client may send before its request is complete.

uvicorn alone accepts headers of any size and waits for their end without limit.
"""

from __future__ import annotations

import asyncio
from asyncio.events import TimerHandle
from typing import Any, Final

import msgspec
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from ropewalk.http.errors import APIError, DetailCode, ErrorCode, ErrorDetail

URL_BYTES_MAX: Final = 8 * 1024
HEADER_BYTES_MAX: Final = 16 * 1024
HEADER_SECONDS: Final = 10.0
"""How long a client may take to send the headers of a request."""
_HEAD_BYTES_MAX: Final = URL_BYTES_MAX + HEADER_BYTES_MAX


class _Refused(Exception):
    """The parser is to stop, because the request exceeds a bound."""


class BoundedProtocol(HttpToolsProtocol):
    """Refuses requests whose URL or headers are too large, and closes connections whose headers do not come."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._timer: TimerHandle | None = None
        self._began = False
        """Whether the client has sent anything of a request."""
        self._in_head = True
        """Whether the URL and the headers of a request are not complete yet."""
        self._completed = False
        """Whether a request ended in the bytes that came last, which are then not those of a head alone."""
        self._head_bytes = 0
        self._header_bytes = 0
        self._refusal: tuple[str, str] | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._start_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._timer is None and self._in_head:
            self._start_timer()
        self._completed = False
        super().data_received(data)
        if not self._in_head or self._completed or self.transport.is_closing():
            return
        self._head_bytes += len(data)  # the head has no end yet: all of this belongs to it
        if self._head_bytes > _HEAD_BYTES_MAX:
            self._refuse("headers", f"the URL and headers have more than {_HEAD_BYTES_MAX:,} bytes")

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._began = True
        self._in_head, self._header_bytes = True, 0

    def on_url(self, url: bytes) -> None:
        super().on_url(url)
        if len(self.url) > URL_BYTES_MAX:
            self._stop_parsing("path", f"the URL has more than {URL_BYTES_MAX:,} bytes")

    def on_header(self, name: bytes, value: bytes) -> None:
        self._header_bytes += len(name) + len(value)
        if self._header_bytes > HEADER_BYTES_MAX:
            self._stop_parsing("headers", f"the headers have more than {HEADER_BYTES_MAX:,} bytes")
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._in_head, self._head_bytes = False, 0
        self._stop_timer()
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        super().on_message_complete()
        self._in_head = self._completed = True

    def send_400_response(self, msg: str) -> None:
        """Answers a request that cannot be parsed, in the shape of every other failure."""
        field, message = self._refusal or ("request", "this is not a valid HTTP request")
        self._refuse(field, message)

    def _stop_parsing(self, field: str, message: str) -> None:
        self._refusal = (field, message)
        raise _Refused(message)

    def _refuse(self, field: str, message: str) -> None:
        if self.transport.is_closing():
            return
        self._stop_timer()
        error = APIError(
            code=ErrorCode.INVALID_REQUEST,
            message=message,
            request_id="",
            details=[ErrorDetail(field, DetailCode.LIMIT_EXCEEDED if self._refusal else DetailCode.BAD_INPUT, message)],
        )
        body = msgspec.json.encode(error)
        head = (
            "HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\n"
            f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
        )
        self.transport.write(head.encode() + body)
        self.transport.close()

    def _start_timer(self) -> None:
        self._timer = self.loop.call_later(HEADER_SECONDS, self._give_up)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _give_up(self) -> None:
        self._timer = None
        if self._in_head and self._head_bytes and not self.transport.is_closing():
            self._refuse("headers", f"the headers did not arrive within {HEADER_SECONDS:.0f} seconds")
        elif self._in_head and not self._began:
            self.transport.close()
