"""The proxy does to connections what it says."""

from __future__ import annotations

import asyncio
import time

import psycopg
import pytest

from tests.servers.free_port import HOST
from tests.servers.postgres import USER, Postgres
from tests.servers.proxy import LostPart, Proxy

AsyncConnection = psycopg.AsyncConnection[tuple[object, ...]]


async def through(proxy: Proxy, database: str) -> AsyncConnection:
    return await psycopg.AsyncConnection.connect(f"postgresql://{USER}@{HOST}:{proxy.port}/{database}", autocommit=True)


@pytest.fixture
def database(postgres_database: str) -> str:
    return postgres_database.rpartition("/")[2]


async def value(connection: AsyncConnection, statement: str) -> object:
    cursor = await connection.execute(statement.encode())
    [answer] = await cursor.fetchone() or (None,)
    return answer


async def test_packets_are_late(postgres: Postgres, database: str) -> None:
    async with Proxy(postgres.port) as proxy, await through(proxy, database) as connection:
        proxy.latency_seconds = 0.1
        began = time.monotonic()
        assert await value(connection, "SELECT 7") == 7
        assert time.monotonic() - began >= 0.2


async def test_connections_are_cut_on_both_sides(postgres: Postgres, database: str) -> None:
    async with Proxy(postgres.port) as proxy:
        connection = await through(proxy, database)
        pid = connection.info.backend_pid
        proxy.cut()
        with pytest.raises(psycopg.OperationalError):
            await value(connection, "SELECT 7")
        await connection.close()
        async with await through(proxy, database) as other, asyncio.timeout(10):
            while await value(other, f"SELECT count(*) FROM pg_stat_activity WHERE pid = {pid}"):
                await asyncio.sleep(0.01)


@pytest.mark.parametrize("forgetting", [True, False])
async def test_a_black_hole_says_nothing(postgres: Postgres, database: str, forgetting: bool) -> None:
    async with Proxy(postgres.port) as proxy:
        connection = await through(proxy, database)
        proxy.go_mute()
        asked = asyncio.create_task(value(connection, "SELECT 7"))
        greeted = asyncio.create_task(through(proxy, database))
        done, _ = await asyncio.wait([asked, greeted], timeout=0.3)
        assert not done
        proxy.speak_again(forgetting=forgetting)
        async with await through(proxy, database) as other:
            assert await value(other, "SELECT 8") == 8
        if forgetting:
            done, _ = await asyncio.wait([asked, greeted], timeout=0.3)
            assert not done
            for task in (asked, greeted):
                task.cancel()
            await asyncio.gather(asked, greeted, return_exceptions=True)
        else:
            assert await asked == 7
            await (await greeted).close()
        await connection.close()


@pytest.mark.parametrize(("part", "there"), [("reply", 1), ("silence", 1), ("request", 0)])
async def test_one_commit_is_lost(postgres: Postgres, database: str, part: LostPart, there: int) -> None:
    async with Proxy(postgres.port) as proxy:
        connection = await through(proxy, database)
        await connection.execute(b"CREATE TABLE note (body text)")
        proxy.lose_commit(part, mentioning=b"marked")
        for body in (b"plain", b"marked"):
            await connection.execute(b"BEGIN")
            await connection.execute(b"INSERT INTO note VALUES ('" + body + b"')")
            if body == b"plain":
                await connection.execute(b"COMMIT")
        assert proxy.commits_lost == 0
        committing = asyncio.create_task(connection.execute(b"COMMIT"))
        done, _ = await asyncio.wait([committing], timeout=0.5 if part == "silence" else 10)
        assert bool(done) is (part != "silence")
        proxy.cut()
        with pytest.raises(psycopg.OperationalError):
            await committing
        await connection.close()
        assert proxy.commits_lost == 1
        async with await through(proxy, database) as other:
            assert await value(other, "SELECT count(*) FROM note WHERE body = 'marked'") == there
            assert await value(other, "SELECT count(*) FROM note WHERE body = 'plain'") == 1
