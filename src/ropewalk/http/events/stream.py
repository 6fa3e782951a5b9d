"""One stream of server-sent events: what it has to send, what it leaves out, and how it ends."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import suppress
from typing import Any, Final

import msgspec
from msgspec import structs

from ropewalk.http.call import Call
from ropewalk.http.events.shapes import EventQuery, StreamedEvent
from ropewalk.http.identity.identity import Identity, Payloads

COMMENT_SECONDS: Final = 15.0
"""How often a comment is sent, so that proxies keep a silent stream open."""
CHECK_SECONDS: Final = 1.0
"""How often it is checked whether the identity is still valid."""
PER_SECOND_MAX: Final = 1000
BEHIND_BYTES_MAX: Final = 1024 * 1024
RETRY_MS: Final = (1_000, 4_000)
"""The shortest pause that a client is asked to make before it comes back, and what is added to it at random."""


class EventStream:
    """Collects events for one client."""

    def __init__(self, call: Call[None, EventQuery], is_valid: Callable[[], Awaitable[bool]]) -> None:
        self._query = call.query
        self._identity: Identity = call.identity
        self._tenant = call.tenant
        self._draining = call.service.draining
        self._runtime = call.service.runtime
        self._is_valid = is_valid
        self._waiting: deque[bytes] = deque()
        self._waiting_bytes = 0
        self._arrived = asyncio.Event()
        self.too_far_behind: Final = asyncio.Event()
        self._second = 0
        self._in_second = 0
        self._dropped = 0

    def wants(self, event: StreamedEvent) -> bool:
        query = self._query
        return (
            (query.every_tenant or event.tenant == self._tenant)
            and (not query.type or event.type in query.type)
            and (not query.kind or event.kind in query.kind)
            and self._identity.reaches(event.type, event.queue)
        )

    def put(self, event: StreamedEvent, event_id: str | None = None) -> None:
        """Sends an event if the client wants it and is not sent too many."""
        if not self.wants(event) or not self._counted():
            return
        if self._identity.payloads is Payloads.NONE and event.error is not None:
            event = structs.replace(event, error=structs.replace(event.error, message=None))
        self.send(event.kind, event, event_id)

    def send(self, name: str, data: Any, event_id: str | None = None, retry_ms: int | None = None) -> None:
        lines = [] if event_id is None else [b"id: " + event_id.encode()]
        lines += [] if retry_ms is None else [b"retry: " + str(retry_ms).encode()]
        lines += [b"event: " + name.encode(), b"data: " + msgspec.json.encode(data)]
        self._append(b"\n".join(lines) + b"\n\n")

    async def chunks(self) -> AsyncGenerator[bytes]:
        """The bytes of the stream, until the identity is lost or the server is about to stop."""
        commented = checked = self._runtime.monotonic()
        yield b": ropewalk\n\n"
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(CHECK_SECONDS):
                    await self._arrived.wait()
            now = self._runtime.monotonic()
            if self._draining.is_set() or (now - checked >= CHECK_SECONDS and not await self._is_valid()):
                self.send("bye", {}, retry_ms=RETRY_MS[0] + int(self._runtime.random() * RETRY_MS[1]))
                yield self._taken()
                return
            if now - checked >= CHECK_SECONDS:
                checked = now
                self._tell_dropped()
            if self._waiting:
                commented = now
                yield self._taken()
            elif now - commented >= COMMENT_SECONDS:
                commented = now
                yield b": still here\n\n"

    def _append(self, chunk: bytes) -> None:
        self._waiting.append(chunk)
        self._waiting_bytes += len(chunk)
        if self._waiting_bytes > BEHIND_BYTES_MAX:
            self.too_far_behind.set()
        self._arrived.set()

    def _taken(self) -> bytes:
        """Everything that waits, which the client is sent now."""
        taken = b"".join(self._waiting)
        self._waiting.clear()
        self._waiting_bytes = 0
        self._arrived.clear()
        return taken

    def _counted(self) -> bool:
        second = int(self._runtime.monotonic())
        if second != self._second:
            self._second, self._in_second = second, 0
        self._in_second += 1
        if self._in_second <= PER_SECOND_MAX:
            return True
        self._dropped += 1
        return False

    def _tell_dropped(self) -> None:
        if self._dropped:
            dropped, self._dropped = self._dropped, 0
            self.send("dropped", {"dropped": dropped})
