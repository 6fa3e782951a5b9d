"""The PostgreSQL store as the contract suite asks for it, and the fixtures that hand it out.

Each test has a schema of its own in a database that all of them share. The server need not be durable: nobody pulls a
plug.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Literal, TypeAlias

import psycopg
import pytest
from msgspec import structs
from psycopg.sql import SQL, Identifier

from ropewalk.backends.postgres import PostgresStore
from ropewalk.backends.postgres.address import Address
from ropewalk.backends.postgres.connections import Clock
from ropewalk.backends.postgres.opening import migrated
from ropewalk.ports.runtime import Runtime
from ropewalk.ports.store.core import Store
from ropewalk.testing import contract
from tests.backends.postgres.kept_sessions import KeptSessions
from tests.servers.binaries import Lane, pgbouncer_binaries
from tests.servers.pgbouncer import PgBouncer
from tests.servers.postgres import Postgres
from tests.servers.schemas import Schemas

SchemasOf: TypeAlias = Callable[[Postgres], Schemas]

GAPLESS = """
WITH taken AS (UPDATE numbered SET before = last, last = last + %s RETURNING before, last)
SELECT json_agg(number), (SELECT control FROM meta)
FROM taken
CROSS JOIN generate_series(taken.before + 1, taken.last) AS number
"""

SET_FORMAT = """
UPDATE job_by_stage SET format = %s FROM submitted WHERE job_by_stage.seq = submitted.seq AND tenant = %s AND id = %s
"""


class PostgresBackend(contract.Backend):
    """`dsn` may lead through a pooler to the database of the schemas."""

    def __init__(
        self,
        schemas: Schemas,
        dsn: str,
        *,
        notify: Literal["on", "off"] = "on",
        gapless: bool = False,
        clock: Clock = "runtime",
    ) -> None:
        self._schemas = schemas
        self.schema = self._schema = schemas.take()
        self.url = self._dsn = dsn
        self._url = f"{dsn}?schema={self._schema}&notify={notify}"
        self._gapless = gapless
        self._clock: Clock = clock
        self._stores: list[PostgresStore] = []

    async def open(self, runtime: Runtime) -> Store:
        store = PostgresStore(self._url, runtime, allow_weaker_durability=True, clock=self._clock)
        if self._gapless:
            self._number_without_gaps(store)
        self._stores.append(store)
        await store.open()
        return store

    def _number_without_gaps(self, store: PostgresStore) -> None:
        """A sequence does not take back what was rolled back; the model does, and names jobs by number."""
        table = Identifier(self._schema, "numbered")
        with psycopg.connect(self._dsn, autocommit=True) as db:
            db.execute(SQL("DROP TABLE IF EXISTS {}").format(table))
            db.execute(SQL("CREATE TABLE {} AS SELECT 0::bigint AS before, 0::bigint AS last").format(table))
        for session in (store._changes, store._claims, store._settlements):
            session._sql = structs.replace(session._sql, take_numbers=GAPLESS, next_seq="")

    async def close(self) -> None:
        for store in self._stores:
            await store.close()
        self._schemas.give_back(self._schema)

    async def raise_epoch(self, store: Store, epoch: int) -> None:
        await self._run(store, "UPDATE meta SET epoch = %s", epoch)

    async def set_format(self, store: Store, tenant: str, job_id: str, version: int) -> None:
        await self._run(store, SET_FORMAT, version, tenant, job_id)

    async def _run(self, store: Store, sql: str, *values: int | str) -> None:
        assert isinstance(store, PostgresStore)
        await store._write(lambda tx: tx.run(sql, values))


@pytest.fixture(scope="session")
def schemas_of() -> Iterator[SchemasOf]:
    """Schemas with this release's tables, which go with their server. Stores in them use sessions again."""
    known: dict[int, Schemas] = {}
    sessions = KeptSessions()

    def of(server: Postgres) -> Schemas:
        if server.port not in known:
            dsn = server.dsn()
            sessions.keep(Address.of(dsn).url)
            known[server.port] = Schemas(dsn, lambda schema: migrated(Address.of(f"{dsn}?schema={schema}")))
        return known[server.port]

    with sessions.used_by_stores():
        yield of
    for schemas in known.values():
        schemas.close()


@pytest.fixture
def postgres_schemas(postgres: Postgres, schemas_of: SchemasOf) -> Schemas:
    return schemas_of(postgres)


@pytest.fixture(scope="session")
def newest_postgres(shared_servers: Callable[[Lane], Postgres]) -> Postgres:
    """The shared server, for tests that have a reason not to run on every version."""
    return shared_servers("newest")


@pytest.fixture(scope="session")
def shared_pooler(newest_postgres: Postgres) -> Iterator[PgBouncer]:
    """PgBouncer in front of the shared server. Tests that ask for it are marked `system`."""
    with PgBouncer(pgbouncer_binaries(), newest_postgres) as pooler:
        yield pooler
