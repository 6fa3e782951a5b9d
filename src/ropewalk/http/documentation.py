"""The OpenAPI document of this server."""

from __future__ import annotations

from typing import Any

from ropewalk.http.call import Call, NoQuery
from ropewalk.http.routing import Access, Routes

routes = Routes("documentation", prefix="")


@routes.get("/openapi.json", role=Access.PUBLIC)
async def openapi(call: Call[None, NoQuery]) -> dict[str, Any]:
    """The description of every operation, in OpenAPI 3.1."""
    from ropewalk.http.openapi import document  # it is made from the table of all routes, of which this is one

    return document()
