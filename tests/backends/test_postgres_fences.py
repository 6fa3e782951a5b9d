"""The fence of the PostgreSQL store by the server's own clock: only then claims and completions take one trip."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import cast

import pytest
import pytest_asyncio

from ropewalk.domain.jobs.states import Move
from ropewalk.runtime.system import SystemRuntime
from ropewalk.testing.clock import FakeRuntime
from ropewalk.testing.contract import Backend
from ropewalk.testing.contract.bench import Bench
from ropewalk.testing.contract.builders import settlement
from ropewalk.testing.contract.fence import FenceContract
from tests.backends.postgres.backend import PostgresBackend
from tests.backends.postgres.trips import count_trips
from tests.servers.postgres import Postgres
from tests.servers.schemas import Schemas


class TestPostgresByItsOwnClock(FenceContract):
    @pytest.fixture
    def backend(self, postgres: Postgres, postgres_schemas: Schemas) -> PostgresBackend:
        return PostgresBackend(postgres_schemas, postgres.dsn(), notify="off", clock="server")

    @pytest_asyncio.fixture
    async def bench(self, backend: Backend, runtime: FakeRuntime) -> AsyncIterator[Bench]:
        """Every connection is there already: a first use takes the long way."""
        real = cast("FakeRuntime", SystemRuntime())
        bench = Bench(await backend.open(real), real, backend)
        for _ in range(3):
            await bench.finished()
        yield bench
        await backend.close()

    async def test_what_is_tested_here_are_the_one_statement_ways(
        self, bench: Bench, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A fresh settlement takes one trip; a stale one fails there and is refused on the long way.

        A claim takes the long way, too, whenever it has to look anew at what is ready: on a slow machine that is often.
        """
        trips = count_trips(bench, monkeypatch)
        jobs = [await bench.running() for _ in range(4)]
        assert "claim" in trips
        trips.clear()
        assert (await bench.settle(jobs[0])).move is Move.COMPLETE
        assert trips == ["complete"]
        stale = settlement(jobs[1], result=b"1")
        assert (await bench.settle_all("you", [stale]))[0].move is None
        assert trips[1:] == ["complete, in vain"]
