"""Fixtures for tests of remote workers."""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx2
import pytest

from ropewalk import App
from tests.apps import MakeApp
from tests.http.remote_workers.jobs import REMOTE_JOBS
from tests.http.remote_workers.worker import RemoteWorker
from tests.http.server import People, client_of, somebody


@pytest.fixture
def app(make_app: MakeApp) -> App:
    return make_app(*REMOTE_JOBS)


@pytest.fixture
def people() -> People:
    """Somebody who may do everything, and the tokens of two fleets of workers."""
    return People(anna=somebody(), fleet=somebody(token_id="fleet"), other=somebody(token_id="other"))


@pytest.fixture
async def fleet(server_url: str) -> AsyncIterator[httpx2.AsyncClient]:
    """A client with the token of a fleet."""
    async with client_of(server_url, "fleet") as client:
        yield client


@pytest.fixture
async def worker(fleet: httpx2.AsyncClient) -> RemoteWorker:
    return await RemoteWorker.register(fleet)
