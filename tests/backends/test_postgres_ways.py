"""The PostgreSQL store keeps the contract in every way it can be reached: through a pooler, and without wake-ups.

In both no hint finds its way from store to store; the contract leaves that to notifiers which can. On the newest server
alone: what the versions differ in, the store that is reached directly meets on every one of them.
"""

from __future__ import annotations

import pytest

from ropewalk.testing import contract
from ropewalk.testing.contract.notify import HintBetweenStoresContract
from tests.backends.postgres.backend import PostgresBackend, SchemasOf
from tests.servers.pgbouncer import PgBouncer
from tests.servers.postgres import Postgres

pytestmark = pytest.mark.system

FAMILIES = [family for family in contract.StoreContract.__bases__ if family is not HintBetweenStoresContract]


class QuietContract(*FAMILIES):  # type: ignore[misc] # no checker follows bases from a list
    """Everything but what goes from store to store."""


class TestThroughPgBouncer(QuietContract):
    @pytest.fixture
    def backend(self, newest_postgres: Postgres, schemas_of: SchemasOf, shared_pooler: PgBouncer) -> PostgresBackend:
        return PostgresBackend(schemas_of(newest_postgres), shared_pooler.dsn())


class TestWithoutWakeUps(QuietContract):
    @pytest.fixture
    def backend(self, newest_postgres: Postgres, schemas_of: SchemasOf) -> PostgresBackend:
        return PostgresBackend(schemas_of(newest_postgres), newest_postgres.dsn(), notify="off")


@pytest.mark.drawn
@pytest.mark.timeout(600)  # thousands of transactions, one after the other
def test_a_pooled_store_answers_like_the_model(
    newest_postgres: Postgres, schemas_of: SchemasOf, shared_pooler: PgBouncer
) -> None:
    schemas, dsn = schemas_of(newest_postgres), shared_pooler.dsn()
    contract.differential(lambda: PostgresBackend(schemas, dsn, gapless=True))().test_the_store_answers_like_the_model()


@pytest.mark.drawn
@pytest.mark.timeout(600)
def test_a_quiet_store_answers_like_the_model(newest_postgres: Postgres, schemas_of: SchemasOf) -> None:
    schemas, dsn = schemas_of(newest_postgres), newest_postgres.dsn()
    machine = contract.differential(lambda: PostgresBackend(schemas, dsn, notify="off", gapless=True))
    machine().test_the_store_answers_like_the_model()
