"""What pytest hands out: a PostgreSQL server for each process that runs tests, a database or schema a test, servers of
one's own on demand.

Tests that ask for any of these run on the newest PostgreSQL in `make test` and on an older one in `make test-system`
(binaries.py). The server they share is not durable.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import TypeAlias

import pytest

from tests.servers.binaries import Lane, pgbouncer_binaries, postgres_binaries
from tests.servers.databases import fresh_database, fresh_schema
from tests.servers.pgbouncer import PgBouncer
from tests.servers.postgres import Postgres, Settings

StartPostgres: TypeAlias = Callable[[Settings], Postgres]
StartPgBouncer: TypeAlias = Callable[[Postgres], PgBouncer]


@pytest.fixture(params=["newest", pytest.param("oldest", marks=pytest.mark.system)])
def postgres_lane(request: pytest.FixtureRequest) -> Lane:
    lane: Lane = request.param
    return lane


@pytest.fixture(scope="session")
def shared_servers() -> Iterator[Callable[[Lane], Postgres]]:
    """A server of each lane, from the first test that asks to the end of the run, in whatever order they ask."""
    running: dict[Lane, Postgres] = {}
    with ExitStack() as servers:

        def of(lane: Lane) -> Postgres:
            if lane not in running:
                running[lane] = servers.enter_context(Postgres(postgres_binaries(lane)))
            return running[lane]

        yield of


@pytest.fixture
def postgres(postgres_lane: Lane, shared_servers: Callable[[Lane], Postgres]) -> Postgres:
    """The shared server: not to be stopped."""
    return shared_servers(postgres_lane)


@pytest.fixture
def postgres_database(postgres: Postgres) -> Iterator[str]:
    """The DSN of a database of the test's own. A connection left open in it is an error."""
    with fresh_database(postgres) as dsn:
        yield dsn


@pytest.fixture
def postgres_schema(postgres: Postgres) -> Iterator[str]:
    """The DSN of a schema of the test's own, in the database all such tests share."""
    with fresh_schema(postgres) as dsn:
        yield dsn


@pytest.fixture
def start_postgres(postgres_lane: Lane) -> Iterator[StartPostgres]:
    """Starts servers of the test's own, to be stopped, killed and restarted."""
    with ExitStack() as servers:
        yield lambda settings: servers.enter_context(Postgres(postgres_binaries(postgres_lane), settings))


@pytest.fixture
def start_pgbouncer() -> Iterator[StartPgBouncer]:
    """Puts PgBouncer in front of a server. Tests that ask for it are marked `system`."""
    with ExitStack() as poolers:
        yield lambda server: poolers.enter_context(PgBouncer(pgbouncer_binaries(), server))
