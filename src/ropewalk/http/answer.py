"""What a route answers, and how it is sent."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any, Final, Generic, TypeVar, cast

import msgspec

from ropewalk.http.request import Send

T = TypeVar("T")

JSON: Final = "application/json"
VERSION: Final = version("ropewalk")
_ENCODER: Final = msgspec.json.Encoder()


@dataclass(frozen=True, slots=True)
class Reply(Generic[T]):
    """A value with a status or headers of its own. A route that returns a bare value answers 200 with it."""

    value: T
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True)
class Text:
    """A body that is text and not JSON."""

    text: str
    media_type: str = "text/plain; charset=utf-8"


@dataclass(frozen=True, slots=True)
class Stream:
    """A body that is sent piece by piece, such as server-sent events. The iterator is closed when the client goes."""

    chunks: AsyncGenerator[bytes]
    media_type: str
    cut_off: asyncio.Event | None = None
    """Set when the client has fallen too far behind: the connection is closed then."""


async def send_reply(send: Send, reply: object, headers: Mapping[str, str], *, head: bool = False) -> int:
    """Sends a value, a Reply or a Text, and returns the status. `head`: without the body, as HEAD asks for."""
    whole = cast("Reply[object]", reply) if isinstance(reply, Reply) else Reply(reply)
    status, value, headers = whole.status, whole.value, {**headers, **whole.headers}
    if value is None:
        body, media_type = b"", None
        status = 204 if status == 200 else status
    elif isinstance(value, Text):
        body, media_type = value.text.encode(), value.media_type
    else:
        body, media_type = _ENCODER.encode(value), JSON
    await send(_start(status, headers, media_type, length=len(body)))
    await send({"type": "http.response.body", "body": b"" if head else body})
    return status


async def send_stream(send: Send, stream: Stream, headers: Mapping[str, str]) -> None:
    await send(_start(200, headers, stream.media_type, length=None))
    async for chunk in stream.chunks:
        await send({"type": "http.response.body", "body": chunk, "more_body": True})
    await send({"type": "http.response.body", "body": b""})


def _start(status: int, headers: Mapping[str, str], media_type: str | None, *, length: int | None) -> dict[str, Any]:
    sent = {"ropewalk-version": VERSION, "cache-control": "no-store", "x-content-type-options": "nosniff"}
    if media_type is not None:
        sent["content-type"] = media_type
    if length is not None and status != 204:
        sent["content-length"] = str(length)
    sent.update((name.lower(), value) for name, value in headers.items())
    raw = [(name.encode("latin-1"), value.encode("latin-1", "replace")) for name, value in sent.items()]
    return {"type": "http.response.start", "status": status, "headers": raw}
