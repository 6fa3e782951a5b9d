"""Every engine test runs on every store; jobs are defined at module level, apps are made here and closed again.

A test whose clock is a fake runs on the stores that take the time from their process: `on_embedded_stores` says so for
a test, `store_kind = embedded_store_kind` for a module. A PostgreSQL store asks its server for the time; what it must
do as time passes is in the contract of a store.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from ropewalk import App
from tests.servers.postgres import Postgres

if TYPE_CHECKING:
    # Processes that run handlers import the module of their test, and with it this one. The contract suite and the
    # driver of PostgreSQL would double what each of them costs: 0.45 s of CPU time instead of 0.25.
    from tests.backends.postgres.backend import SchemasOf

MakeApp = Callable[..., App]

EMBEDDED: Final = ("memory", "sqlite")
on_embedded_stores = pytest.mark.parametrize("store_kind", EMBEDDED, indirect=True)
on_shared_stores = pytest.mark.parametrize("store_kind", ["sqlite", "postgres"], indirect=True)
"""For tests of several apps, which no store in the memory of one of them can serve."""


@pytest.fixture(params=[*EMBEDDED, "postgres"])
def store_kind(request: pytest.FixtureRequest) -> str:
    kind: str = request.param
    return kind


@pytest.fixture(params=EMBEDDED)
def embedded_store_kind(request: pytest.FixtureRequest) -> str:
    kind: str = request.param
    return kind


@pytest.fixture
def url(store_kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[str]:
    if store_kind == "memory":
        yield "memory://"
    elif store_kind == "sqlite":
        yield f"sqlite:///{tmp_path}/jobs.db"
    else:
        server: Postgres = request.getfixturevalue("newest_postgres")
        schemas_of: SchemasOf = request.getfixturevalue("schemas_of")
        schemas = schemas_of(server)
        schema = schemas.take()
        yield f"{server.dsn()}?schema={schema}"
        schemas.give_back(schema)


@pytest.fixture
def new_app(url: str, store_kind: str) -> MakeApp:
    """Makes apps that the test closes. A server that is not durable, such as that of the tests, has to be allowed."""

    def new(*jobs: Any, **options: Any) -> App:
        return App(url, jobs=jobs, allow_weaker_durability=store_kind == "postgres", **options)

    return new


@pytest.fixture
async def make_app(new_app: MakeApp) -> AsyncIterator[MakeApp]:
    """Makes apps that are closed after the test."""
    apps: list[App] = []

    def make(*jobs: Any, **options: Any) -> App:
        app = new_app(*jobs, **options)
        apps.append(app)
        return app

    yield make
    for app in apps:
        await app.close()
