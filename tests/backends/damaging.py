"""Stored rows damaged past their store, on each store that keeps rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Final, TypeAlias

import psycopg
import pytest

from ropewalk.backends.sqlite.library import sqlite
from ropewalk.domain.failure import Category
from ropewalk.domain.jobs.record import DEFAULT_TENANT
from ropewalk.domain.jobs.states import Status
from ropewalk.domain.search import Filter, Order
from ropewalk.testing.contract.base import Contract
from ropewalk.testing.contract.bench import Bench
from ropewalk.testing.contract.builders import new_job
from tests.backends.postgres.backend import PostgresBackend
from tests.backends.test_sqlite import SqliteBackend
from tests.servers.postgres import Postgres
from tests.servers.schemas import Schemas

Junk: TypeAlias = int | float | str | bytes | None

HEALTHY: Final = 5
BORN_WITH: Final = frozenset(
    {
        "type",
        "queue",
        "tenant",
        "chain_index",
        "lease_us",
        "timeout_us",
        "max_crashes",
        "backoff",
        "tags",
        "on_failure",
        "origin",
    }
)


class Damaging(Contract, ABC):
    own_instants: tuple[Junk, ...] = ()
    """What only this store can hold in a column of instants."""

    @abstractmethod
    async def damage(self, bench: Bench, table: str, column: str, junk: Junk, *, where: str) -> None:
        """Write junk into a column of some rows, past the store."""

    async def damage_job(self, bench: Bench, column: str, junk: Junk, job_id: str = "damaged") -> None:
        await self.damage(bench, "job", column, junk, where=f"id = '{job_id}'")


class OnSqlite(Damaging):
    own_instants = ("junk", 1.5, 1e300, -1e300, b"\xff")

    @pytest.fixture
    def backend(self) -> SqliteBackend:
        return SqliteBackend()

    async def damage(self, bench: Bench, table: str, column: str, junk: Junk, *, where: str) -> None:
        assert isinstance(bench.backend, SqliteBackend)
        db = sqlite.connect(bench.backend.path, isolation_level=None)
        db.execute(f"UPDATE {table} SET {column} = ? WHERE {where}", (junk,))
        db.close()


class OnPostgres(Damaging):
    @pytest.fixture
    def backend(self, postgres: Postgres, postgres_schemas: Schemas) -> PostgresBackend:
        return PostgresBackend(postgres_schemas, postgres.dsn())

    async def damage(self, bench: Bench, table: str, column: str, junk: Junk, *, where: str) -> None:
        backend = bench.backend
        assert isinstance(backend, PostgresBackend)
        if table == "job":
            table = "submitted" if column in BORN_WITH else "job_by_stage"
            where = f"seq = (SELECT seq FROM submitted WHERE {where})"
        async with await psycopg.AsyncConnection.connect(backend.url, autocommit=True) as db:
            await db.execute(f"SET search_path TO {backend.schema}".encode())
            await db.execute(f"UPDATE {table} SET {column} = %s WHERE {where}".encode(), (junk,))


async def behind_it(bench: Bench, number: int = 0) -> list[str]:
    jobs = [new_job(id=f"h{number}-{each}") for each in range(HEALTHY)]
    return [accepted.id for accepted in await bench.submit(*jobs)]


async def check_set_aside(bench: Bench, column: str, job_id: str = "damaged") -> None:
    job = await bench.job(job_id)
    assert job.status is Status.DEAD_LETTER
    assert job.error is not None
    assert (job.error.category, job.error.code) == (Category.SYSTEM, "damaged_row")
    assert column in job.error.message
    page = await bench.store.search(DEFAULT_TENANT, Filter(), order=Order.CREATED_DESC, cursor=None, limit=9)
    assert job_id in {each.id for each in page.jobs}
    assert [entry.kind for entry in await bench.history(job_id)][-1] == "set_aside"
