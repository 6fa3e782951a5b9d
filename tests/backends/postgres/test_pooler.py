"""Behind PgBouncer in transaction mode every transaction may run in another session: nothing of ours is in any."""

from __future__ import annotations

import pytest
from tests.backends.postgres.test_races import claimed, holder, submitted
from tests.servers.fixtures import StartPgBouncer, StartPostgres
from tests.servers.postgres import Settings

from ropewalk.backends.postgres import PostgresStore
from ropewalk.domain.job import DEFAULT_TENANT
from ropewalk.engine.runtime import SystemRuntime
from ropewalk.testing.contract.build import keyed, new_job, settlement

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
            assert [group.id for group in answer.ripple.closed] == [root.id]
            assert (await one.groups(DEFAULT_TENANT, [root.id]))[root.id].completed == 2
    finally:
        for store in stores:
            await store.close()
