"""One request of a webhook: to an address that was checked, without redirects, with a bound on time and answer."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, TypeAlias

from msgspec import Struct

from ropewalk.http.webhooks.addresses import Target, resolve

ANSWER_SECONDS: Final = 15.0
ANSWER_BYTES_MAX: Final = 64 * 1024
_GONE: Final = 410


class WebhookAnswer(Struct, frozen=True):
    status: int
    retry_after_seconds: float | None = None

    @property
    def accepted(self) -> bool:
        return 200 <= self.status < 300

    @property
    def gone(self) -> bool:
        """Whether the receiver asks to be sent nothing more."""
        return self.status == _GONE


Resolve: TypeAlias = Callable[[Target], Awaitable[list[str]]]


async def post(
    target: Target,
    body: bytes,
    headers: Mapping[str, str],
    *,
    context: ssl.SSLContext | None = None,
    resolved: Resolve = resolve,
) -> WebhookAnswer:
    """Sends a request and reads the beginning of its answer. Raises OSError, TimeoutError, ValueError and
    ForbiddenAddress."""
    async with asyncio.timeout(ANSWER_SECONDS):
        addresses = await resolved(target)
        reader, writer = await asyncio.open_connection(
            addresses[0],
            target.port,
            ssl=context or ssl.create_default_context(),
            server_hostname=target.host,
            limit=ANSWER_BYTES_MAX,
        )
        try:
            lines = [
                f"POST {target.path} HTTP/1.1",
                f"Host: {target.authority}",
                "Connection: close",
                f"Content-Length: {len(body)}",
                *(f"{name}: {value}" for name, value in headers.items()),
            ]
            writer.write("\r\n".join([*lines, "", ""]).encode("ascii") + body)
            await writer.drain()
            answer = _answer(await _head(reader))
            while answer.status < 200:  # an interim answer, such as 100 Continue
                answer = _answer(await _head(reader))
            return answer
        finally:
            writer.close()


async def _head(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.readuntil(b"\r\n\r\n")
    except asyncio.LimitOverrunError as error:
        raise ValueError(f"the answer has more than {ANSWER_BYTES_MAX:,} bytes of headers") from error
    except asyncio.IncompleteReadError as error:
        raise ConnectionError("the receiver closed the connection before it had answered") from error


def _answer(head: bytes) -> WebhookAnswer:
    first, *rest = head.decode("latin-1").split("\r\n")
    version, _, after = first.partition(" ")
    status = after[:3]
    if not version.startswith("HTTP/1.") or not status.isdigit():
        raise ValueError(f"the answer does not begin like HTTP: {first[:80]!r}")
    retry_after = None
    for line in rest:
        name, _, value = line.partition(":")
        if name.strip().lower() == "retry-after" and value.strip().isdigit():
            retry_after = float(value.strip())
    return WebhookAnswer(int(status), retry_after)
