"""The families of the contract that see a missing check of a lease, and no others: so they are there sooner.

Not collected by itself: test_planted_faults.py names it.
"""

from __future__ import annotations

import pytest

from ropewalk.ports.store.capabilities import COMPLETE
from ropewalk.testing.contract.fence import FenceContract
from ropewalk.testing.contract.leases import NoteContract, RenewContract
from ropewalk.testing.contract.lost_answers import LostAnswerContract
from ropewalk.testing.contract.stale import StaleContract
from tests.backends.postgres.backend import PostgresBackend
from tests.backends.test_memory import MemoryBackend
from tests.backends.test_sqlite import SqliteBackend
from tests.servers.postgres import Postgres
from tests.servers.schemas import Schemas


class Families(FenceContract, StaleContract, RenewContract, NoteContract, LostAnswerContract):
    """What a worker writes, and what becomes of it when its lease is over."""


class TestMemory(Families):
    capabilities = COMPLETE

    @pytest.fixture
    def backend(self) -> MemoryBackend:
        return MemoryBackend()


class TestSqlite(Families):
    @pytest.fixture
    def backend(self) -> SqliteBackend:
        return SqliteBackend()


class TestPostgres(Families):
    @pytest.fixture
    def backend(self, postgres: Postgres, postgres_schemas: Schemas) -> PostgresBackend:
        return PostgresBackend(postgres_schemas, postgres.dsn(), notify="off")
