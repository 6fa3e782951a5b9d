"""Behind PgBouncer in transaction mode every transaction may run in another session: nothing of ours is in any."""

from __future__ import annotations

from contextlib import ExitStack

import psycopg
import pytest

from ropewalk.backends.postgres import PostgresStore
from ropewalk.domain.jobs.record import DEFAULT_TENANT
from ropewalk.runtime.system import SystemRuntime
from ropewalk.testing.contract.builders import keyed, new_job, settlement
from tests.backends.postgres.test_races import claimed, holder, submitted
from tests.servers.binaries import pgbouncer_binaries
from tests.servers.fixtures import StartPgBouncer, StartPostgres
from tests.servers.pgbouncer import PgBouncer
from tests.servers.postgres import Postgres, Settings

pytestmark = [pytest.mark.asyncio, pytest.mark.system]


async def test_a_group_behind_a_pooler(start_postgres: StartPostgres, start_pgbouncer: StartPgBouncer) -> None:
    pooler = start_pgbouncer(start_postgres(Settings(durable=True)))
    stores = [PostgresStore(f"{pooler.dsn()}?notify={notify}", SystemRuntime()) for notify in ("off", "on")]
    one, other = stores
    try:
        for number in range(20):
            await submitted(one, keyed(f"k{number}", id=f"root-{number}"))
            [root] = await claimed(other, 1, owner="w")
            await submitted(one, new_job("b", parent_id=root.id, spawn_key="k"), under=holder(root))
            await other.settle("w", [settlement(root)])
            [member] = await claimed(one, 1, owner="w", types=["b"])
            answer = await other.settle("w", [settlement(member)])
            assert [group.id for group in answer.consequences.closed] == [root.id]
            assert (await one.groups(DEFAULT_TENANT, [root.id]))[root.id].completed == 2
    finally:
        for store in stores:
            await store.close()


@pytest.mark.parametrize("pooled", [True, False], ids=["behind a pooler", "directly"])
async def test_statements_are_prepared_only_where_the_session_is_ours(
    postgres: Postgres, postgres_database: str, pooled: bool
) -> None:
    """The pooler has one session for everybody: whatever anybody had prepared would be found in it."""
    database = postgres_database.rpartition("/")[2]
    with ExitStack() as running:
        dsn = postgres_database
        if pooled:
            dsn = running.enter_context(PgBouncer(pgbouncer_binaries(), postgres, sessions_max=1)).dsn(database)
        store = PostgresStore(dsn, SystemRuntime(), allow_weaker_durability=True)
        try:
            await submitted(store, new_job(id="a"))
            [job] = await claimed(store, 1, owner="w")
            await store.settle("w", [settlement(job)])
            prepared = await store._write(lambda tx: tx.value("SELECT count(*) FROM pg_prepared_statements"))
            assert prepared == 0 if pooled else prepared > 1  # the question itself is one
            if pooled:
                with psycopg.connect(dsn, autocommit=True, prepare_threshold=None) as other:
                    assert other.execute("SELECT count(*) FROM pg_prepared_statements").fetchone() == (0,)
        finally:
            await store.close()
