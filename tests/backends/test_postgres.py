"""The PostgreSQL store keeps the contract."""

from __future__ import annotations

import pytest

from ropewalk.testing import contract
from ropewalk.testing.clock import FakeRuntime
from ropewalk.testing.contract.bench import Bench
from tests.backends.postgres.backend import PostgresBackend
from tests.backends.postgres.server_clock import ServerClockBackend
from tests.backends.postgres.trips import count_trips
from tests.servers.postgres import Postgres
from tests.servers.schemas import Schemas


class TestPostgres(contract.StoreContract):
    """By the server's clock, as in production: claims and completions that concern nobody else take one statement."""

    @pytest.fixture
    def backend(
        self, postgres: Postgres, postgres_schemas: Schemas, monkeypatch: pytest.MonkeyPatch
    ) -> ServerClockBackend:
        return ServerClockBackend(postgres_schemas, postgres.dsn(), monkeypatch)

    @pytest.fixture
    def runtime(self, backend: ServerClockBackend) -> FakeRuntime:
        return backend.clock

    async def test_claims_and_completions_take_one_statement(
        self, bench: Bench, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """What is tested here are the ways of production. The first claim has to look at what is ready."""
        trips = count_trips(bench, monkeypatch)
        for _ in range(3):
            await bench.finished()
        assert trips == ["complete", "claim", "complete", "claim", "complete"]

    async def test_the_time_is_what_the_server_says(self, bench: Bench) -> None:
        """A store whose clock this is would know nothing of a clock that only the server shows."""
        assert await bench.store.clock() == bench.runtime.now()
        await bench.runtime.advance(hours=1)
        bench.runtime.set_clock(back_seconds=0.000_001)
        assert await bench.store.clock() == bench.runtime.now()


@pytest.mark.drawn
@pytest.mark.timeout(600)  # thousands of transactions, one after the other
def test_the_store_answers_like_the_model(postgres: Postgres, postgres_schemas: Schemas) -> None:
    machine = contract.differential(lambda: PostgresBackend(postgres_schemas, postgres.dsn(), gapless=True))
    machine().test_the_store_answers_like_the_model()
