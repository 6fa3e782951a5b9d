"""Random graphs through the stores, against the evaluator.

A failing graph is printed; `ROPEWALK_GRAPH=<seed>` runs that one alone. `make verify` draws more of them.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeAlias

import pytest

from ropewalk.backends.memory.store import MemoryStore
from ropewalk.backends.sqlite import SqliteStore
from ropewalk.backends.workflow.propagation import Propagation
from ropewalk.backends.workflow.unit_of_work import UnitOfWork
from ropewalk.ports.store.core import Store
from ropewalk.testing import FakeRuntime
from tests.backends.postgres.backend import PostgresBackend, SchemasOf
from tests.budget import BUDGET
from tests.servers.postgres import Postgres
from tests.servers.schemas import Schemas
from tests.workflow.checking import check
from tests.workflow.drawing import draw

pytestmark = pytest.mark.drawn

Opening: TypeAlias = Callable[[FakeRuntime, int], Awaitable[Store]]

PER_STORE = 50
"""graphs that share a store, each as a tenant of its own"""
ONE = os.environ.get("ROPEWALK_GRAPH")


def seeds(usual: int, *, in_verify: int | None = None, first: int = 0) -> range:
    """Of the graphs to draw; with a larger budget `in_verify` times the budget, where it is given."""
    if ONE is not None:
        return range(int(ONE), int(ONE) + 1)
    return range(first, first + (usual if BUDGET == 1 else (in_verify or usual) * BUDGET))


async def run_all(seeds: range, opened: Opening) -> None:
    store: Store | None = None
    runtime = FakeRuntime()
    for number, seed in enumerate(seeds):
        if store is None or number % PER_STORE == 0:
            if store is not None:
                await store.close()
            runtime = FakeRuntime()
            store = await opened(runtime, seed)
        graph = draw(seed)
        try:
            await check(store, runtime, graph, tenant=f"tenant-{seed}")
        except BaseException as failure:
            failure.add_note(f"{graph}\nrepeat: ROPEWALK_GRAPH={seed} pytest tests/workflow/test_random_graphs.py")
            raise
    if store is not None:
        await store.close()


async def in_memory(runtime: FakeRuntime, _: int) -> Store:
    return MemoryStore(runtime)


@pytest.fixture
def on_disk() -> Iterator[Opening]:
    # What is asked here does not depend on the disk; thousands of real fsyncs would take minutes.
    fast = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with TemporaryDirectory(prefix="ropewalk-graphs-", dir=fast) as directory:

        async def opened(runtime: FakeRuntime, number: int) -> Store:
            store = SqliteStore(Path(directory) / f"{number}.db", runtime)
            await store.open()
            return store

        yield opened


def on_server(schemas: Schemas, server: Postgres) -> Opening:
    async def opened(runtime: FakeRuntime, _: int) -> Store:
        # The schema goes with the server: another store gets another one.
        return await PostgresBackend(schemas, server.dsn()).open(runtime)

    return opened


@pytest.fixture(params=[1000, 2], ids=["at once", "in small steps"])
def budget(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """How much of what follows from an ending is done in its own transaction; the rest goes on in `cascade`."""
    most, begin = int(request.param), Propagation.__init__

    def begin_with_less(propagation: Propagation, unit_of_work: UnitOfWork, budget: int = most) -> None:
        begin(propagation, unit_of_work, min(budget, most))

    monkeypatch.setattr(Propagation, "__init__", begin_with_less)
    return most


async def test_memory_does_with_every_graph_what_it_must(budget: int) -> None:
    await run_all(seeds(500, in_verify=2000), in_memory)


async def test_sqlite_does_with_every_graph_what_it_must(on_disk: Opening, budget: int) -> None:
    await run_all(seeds(100, in_verify=300), on_disk)


@pytest.mark.timeout(400)  # on a busy machine it took 77 s
async def test_postgres_does_with_every_graph_what_it_must(
    postgres: Postgres, postgres_schemas: Schemas, budget: int
) -> None:
    """A graph is some four hundred statements, one after the other: a fifth of a second."""
    await run_all(seeds(50), on_server(postgres_schemas, postgres))


@pytest.mark.system
@pytest.mark.timeout(600)
async def test_postgres_does_with_more_graphs_what_it_must(
    newest_postgres: Postgres, schemas_of: SchemasOf, budget: int
) -> None:
    await run_all(seeds(150, first=50), on_server(schemas_of(newest_postgres), newest_postgres))
