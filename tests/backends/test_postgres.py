"""The PostgreSQL store keeps the contract."""

from __future__ import annotations

import secrets

import psycopg
import pytest
from msgspec import structs
from psycopg.sql import SQL, Identifier
from tests.servers.postgres import Postgres

from ropewalk.backends.postgres import PostgresStore
from ropewalk.ports.runtime import Runtime
from ropewalk.ports.store import Store
from ropewalk.testing import contract

GAPLESS = """
WITH taken AS (UPDATE numbered SET before = last, last = last + %s RETURNING before, last)
SELECT json_agg(number) FROM taken CROSS JOIN generate_series(taken.before + 1, taken.last) AS number
"""


SET_FORMAT = """
UPDATE standing SET format = %s FROM submitted WHERE standing.seq = submitted.seq AND tenant = %s AND id = %s
"""


class PostgresBackend(contract.Backend):
    """A schema of its own in a database that all of them share. The server need not be durable: nobody pulls a plug."""

    def __init__(self, server: Postgres, *, gapless: bool = False) -> None:
        self._dsn = server.dsn()
        self._gapless = gapless
        self._schema = f"test_{secrets.token_hex(6)}"
        self._stores: list[PostgresStore] = []

    async def open(self, runtime: Runtime) -> Store:
        url = f"{self._dsn}?schema={self._schema}"
        store = PostgresStore(url, runtime, allow_weaker_durability=True, clock="runtime")
        self._stores.append(store)
        await store.open()
        if self._gapless:
            self._number_without_gaps(store)
        return store

    def _number_without_gaps(self, store: PostgresStore) -> None:
        """A sequence does not take back what was rolled back; the model does, and names jobs by number."""
        with psycopg.connect(self._dsn, autocommit=True) as db:
            table = Identifier(self._schema, "numbered")
            db.execute(SQL("CREATE TABLE {} AS SELECT 0::bigint AS before, 0::bigint AS last").format(table))
        for session in (store._changes, store._claims, store._settlements):
            session._sql = structs.replace(session._sql, take_seqs=GAPLESS)

    async def close(self) -> None:
        for store in self._stores:
            await store.close()
        with psycopg.connect(self._dsn, autocommit=True) as db:
            db.execute(SQL("DROP SCHEMA {} CASCADE").format(Identifier(self._schema)))

    async def raise_epoch(self, store: Store, epoch: int) -> None:
        await self._run(store, "UPDATE meta SET epoch = %s", epoch)

    async def set_format(self, store: Store, tenant: str, job_id: str, version: int) -> None:
        await self._run(store, SET_FORMAT, version, tenant, job_id)

    async def _run(self, store: Store, sql: str, *values: int | str) -> None:
        assert isinstance(store, PostgresStore)
        await store._write(lambda tx: tx.run(sql, values))


class TestPostgres(contract.StoreContract):
    @pytest.fixture
    def backend(self, postgres: Postgres) -> PostgresBackend:
        return PostgresBackend(postgres)


def test_the_store_answers_like_the_model(postgres: Postgres) -> None:
    contract.differential(lambda: PostgresBackend(postgres, gapless=True))().test_the_store_answers_like_the_model()
