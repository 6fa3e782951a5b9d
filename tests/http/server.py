"""Servers for tests: the real application behind a real server, on a port of its own, on the loop of the test."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Final

import httpx2
import uvicorn

from ropewalk.http import Identity, Payloads, Request, Role, Serve

EVERYTHING: Final = frozenset(Role)


class _Server(uvicorn.Server):
    """Leaves the signal handlers of the test run alone."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


@asynccontextmanager
async def serving(application: Serve) -> AsyncIterator[str]:
    """Serves until the block ends; gives the base URL."""
    server = _Server(uvicorn.Config(application, port=0, log_level="warning", lifespan="on"))
    task = asyncio.create_task(server.serve())
    while not server.started:
        if task.done():
            task.result()
        await asyncio.sleep(0.01)
    [listener] = server.servers[0].sockets
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        application.drain()
        server.should_exit = True
        await task


class People:
    """An authenticator for tests: the bearer token is the name of somebody in a table."""

    def __init__(self, **identities: Identity) -> None:
        self.identities = identities

    async def __call__(self, request: Request) -> Identity | None:
        scheme, _, name = request.headers.get("authorization", "").partition(" ")
        return self.identities.get(name) if scheme == "Bearer" else None


def somebody(*, tenant: str = "default", roles: frozenset[Role] = EVERYTHING, **more: object) -> Identity:
    settings = {"payloads": Payloads.FULL, **more}
    return Identity(subject="somebody", tenant=tenant, roles=roles, **settings)  # type: ignore[arg-type]


@asynccontextmanager
async def client_of(url: str, name: str = "anna") -> AsyncIterator[httpx2.AsyncClient]:
    async with httpx2.AsyncClient(
        base_url=url, headers={"authorization": f"Bearer {name}"}, timeout=30, trust_env=False
    ) as client:
        yield client


async def finish(task: asyncio.Task[object]) -> None:
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
