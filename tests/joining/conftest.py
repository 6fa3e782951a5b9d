"""An app, and somebody's connection to the same database."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import pytest_asyncio

from ropewalk import App
from tests.joining.drivers import Driver
from tests.joining.jobs import JOBS
from tests.servers.binaries import Lane
from tests.servers.databases import fresh_database
from tests.servers.postgres import Postgres


@dataclass
class Place:
    url: str
    """of the app"""
    dsn: str
    """of a driver"""


@pytest.fixture
def kind() -> type[Driver]:
    """Which driver: tests say so with `on`."""
    raise NotImplementedError


@pytest.fixture
def lane() -> Lane:
    return "newest"


@pytest.fixture
def place(
    kind: type[Driver], lane: Lane, tmp_path: Path, shared_servers: Callable[[Lane], Postgres]
) -> Iterator[Place]:
    if kind.store == "sqlite":
        yield Place(f"sqlite:///{tmp_path / 'jobs.db'}", str(tmp_path / "jobs.db"))
        return
    with fresh_database(shared_servers(lane)) as dsn:
        yield Place(f"{dsn}?schema=jobs", dsn)


@pytest_asyncio.fixture
async def app(place: Place) -> AsyncIterator[App]:
    app = App(place.url, jobs=JOBS, allow_weaker_durability=True)
    async with app:
        yield app


@pytest_asyncio.fixture
async def driver(kind: type[Driver], place: Place, app: App) -> AsyncIterator[Driver]:
    """Open, with a table of its owner's."""
    driver = kind()
    await driver.open(place.dsn)
    await driver.run("CREATE TABLE mine (word TEXT)")
    await driver.commit()
    yield driver
    await driver.close()


def on(*kinds: type[Driver]) -> pytest.MarkDecorator:
    """Run on these drivers, those of PostgreSQL also on the oldest server."""
    oldest = [each for each in kinds if each.store == "postgres"]
    newest = [pytest.param(each, "newest", id=each.__name__) for each in kinds]
    system = [pytest.param(each, "oldest", id=f"{each.__name__}-oldest", marks=pytest.mark.system) for each in oldest]
    return pytest.mark.parametrize(("kind", "lane"), [*newest, *system])
