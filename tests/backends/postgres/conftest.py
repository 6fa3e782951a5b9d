"""Stores under the system's clock and threads, on a schema of the test's own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TypeAlias

import pytest
import pytest_asyncio

from ropewalk.backends.postgres import PostgresStore
from ropewalk.runtime.system import SystemRuntime

OpenStore: TypeAlias = Callable[[], Awaitable[PostgresStore]]


@pytest.fixture
def url(postgres_database: str) -> str:
    return f"{postgres_database}?schema=jobs"


@pytest_asyncio.fixture
async def open_store(url: str) -> AsyncIterator[OpenStore]:
    """Each call opens another store on the same data, as another process would."""
    stores: list[PostgresStore] = []

    async def opened() -> PostgresStore:
        store = PostgresStore(url, SystemRuntime(), allow_weaker_durability=True)
        stores.append(store)
        await store.open()
        return store

    yield opened
    for store in stores:
        await store.close()
