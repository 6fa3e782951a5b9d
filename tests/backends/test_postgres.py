"""The PostgreSQL store keeps the contract."""

from __future__ import annotations

import pytest

from ropewalk.testing import contract
from tests.backends.postgres.backend import PostgresBackend
from tests.servers.postgres import Postgres
from tests.servers.schemas import Schemas


class TestPostgres(contract.StoreContract):
    @pytest.fixture
    def backend(self, postgres: Postgres, postgres_schemas: Schemas) -> PostgresBackend:
        return PostgresBackend(postgres_schemas, postgres.dsn())


@pytest.mark.drawn
@pytest.mark.timeout(600)  # thousands of transactions, one after the other
def test_the_store_answers_like_the_model(postgres: Postgres, postgres_schemas: Schemas) -> None:
    machine = contract.differential(lambda: PostgresBackend(postgres_schemas, postgres.dsn(), gapless=True))
    machine().test_the_store_answers_like_the_model()
