"""Fixtures for tests of the service."""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx2
import pytest

from ropewalk import App
from ropewalk.http import Serve
from tests.apps import MakeApp
from tests.http.jobs import ALL_JOBS
from tests.http.server import People, client_of, serving, somebody


@pytest.fixture
def app(make_app: MakeApp) -> App:
    return make_app(*ALL_JOBS)


@pytest.fixture
def people() -> People:
    """Who may call the server of a test: "anna", who may do everything in the tenant "default"."""
    return People(anna=somebody())


@pytest.fixture
async def server_url(app: App, people: People) -> AsyncIterator[str]:
    async with serving(Serve(app, authenticate=people)) as url:
        yield url


@pytest.fixture
async def client(server_url: str) -> AsyncIterator[httpx2.AsyncClient]:
    async with client_of(server_url) as client:
        yield client
