"""The OpenAPI document of this server, and a page that shows it."""

from __future__ import annotations

from typing import Any, Final

from ropewalk.http.answer import Reply, Text
from ropewalk.http.call import Call, NoQuery
from ropewalk.http.documentation_page import STYLE_HASH, page
from ropewalk.http.routing import Access, Routes

routes = Routes("documentation", prefix="")

_HEADERS: Final = {
    "Content-Security-Policy": (
        f"default-src 'none'; style-src '{STYLE_HASH}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "Referrer-Policy": "no-referrer",
}
"""The page may show text in its own style and nothing else: it has no script, no image and no form."""


@routes.get("/openapi.json", role=Access.PUBLIC)
async def openapi(call: Call[None, NoQuery]) -> dict[str, Any]:
    """The description of every operation, in OpenAPI 3.1."""
    from ropewalk.http.openapi import document  # it is made from the table of all routes, of which this is one

    return document()


@routes.get("/docs", role=Access.PUBLIC, media_type="text/html")
async def docs(call: Call[None, NoQuery]) -> Reply[Text]:
    """The same description as a page for people."""
    from ropewalk.http.openapi import document

    return Reply(Text(page(document()), "text/html; charset=utf-8"), headers=_HEADERS)
