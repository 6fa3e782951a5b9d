"""Whether the server lives, and whether it can answer: for load balancers and orchestrators."""

from __future__ import annotations

import asyncio
from typing import Final

from msgspec import Struct

from ropewalk.errors import RopewalkError
from ropewalk.http.answer import Reply, Text
from ropewalk.http.call import Call, NoQuery
from ropewalk.http.identity.identity import Role
from ropewalk.http.routing import Access, Routes
from ropewalk.http.service import Service

routes = Routes("health", prefix="")

STORE_SECONDS: Final = 5.0
"""How long the store may take to answer before the server counts as not ready."""


class Readiness(Struct, frozen=True, kw_only=True):
    ready: bool
    reason: str | None = None
    """Why it is not ready."""


class Health(Struct, frozen=True, kw_only=True):
    ready: bool
    reason: str | None
    store: str
    """The kind of store."""
    durability: str
    draining: bool


@routes.get("/health/live", role=Access.PUBLIC)
async def live(call: Call[None, NoQuery]) -> Text:
    """Answer while the process can answer anything."""
    return Text("ok\n")


@routes.get("/health/ready", role=Access.PUBLIC, statuses=(200, 503))
async def ready(call: Call[None, NoQuery]) -> Reply[Readiness]:
    """Answer 200 while the store answers and the server is not about to stop, else 503."""
    reason = await _obstacle(call.service)
    return Reply(Readiness(ready=reason is None, reason=reason), 200 if reason is None else 503)


@routes.get("/health", role=Role.READ, statuses=(200, 503))
async def health(call: Call[None, NoQuery]) -> Reply[Health]:
    """Tell what the server knows of itself and its store."""
    reason = await _obstacle(call.service)
    answer = Health(
        ready=reason is None,
        reason=reason,
        store=call.store.name,
        durability=call.store.durability.name,
        draining=call.service.draining.is_set(),
    )
    return Reply(answer, 200 if reason is None else 503)


@routes.get("/metrics", role=Role.READ, every_tenant=True)
async def metrics(call: Call[None, NoQuery]) -> Text:
    """Metrics of this process and gauges of the store, as Prometheus reads them."""
    return Text(await call.service.app.metrics.text(), "text/plain; version=0.0.4; charset=utf-8")


async def _obstacle(service: Service) -> str | None:
    if service.draining.is_set():
        return "draining"
    try:
        async with asyncio.timeout(STORE_SECONDS):
            await service.open()
            await service.store.clock()
    except (RopewalkError, TimeoutError):
        return "store"
    return None
