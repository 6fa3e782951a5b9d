"""Requests that are made from the table of routes, so that no route is left out of a test."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import quote

import httpx2

from ropewalk.http.answer import Stream
from ropewalk.http.routing import Route

OWN_PAGE = {"sec-fetch-site": "same-origin", "x-ropewalk": "1"}
"""What a browser sends from the page of the server itself."""


async def call(
    client: httpx2.AsyncClient,
    route: Route,
    name: str = "nothing",
    *,
    headers: Mapping[str, str] | None = None,
    body: object = None,
) -> httpx2.Response:
    """Calls a route with its example. `name` takes the place of every variable part of the path whose words are not
    known. Of a stream, which has no end, only the status and the headers are read."""
    path = route.path
    for part in route.params:
        values = route.path_values.get(part)
        path = path.replace(f"{{{part}}}", quote(name if values is None else values[0], safe=""))
    if path.endswith("/wait"):
        path += "?timeout=0"
    content = body if body is not None else route.example
    told = {"x-request-id": "the-same", **(headers or {})}
    async with client.stream(route.method, path, json=content, headers=told) as answer:
        endless = route.answer is Stream and answer.status_code == 200
        data = b"" if endless else await answer.aread()
        return httpx2.Response(answer.status_code, headers=answer.headers, content=data)
