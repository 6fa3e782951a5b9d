"""H5: what an examination finds on real servers that something is wrong with."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator

import psycopg
import pytest
import pytest_asyncio

from ropewalk import App, job
from ropewalk.backends.postgres import PostgresStore, findings
from ropewalk.backends.postgres.address import Address
from ropewalk.backends.postgres.diagnosis import PostgresFacts, facts
from ropewalk.ports.store.findings import Finding
from ropewalk.runtime.system import SystemRuntime
from tests.servers.fixtures import StartPgBouncer, StartPostgres
from tests.servers.postgres import Postgres, Settings

pytestmark = pytest.mark.asyncio


@job
async def nothing() -> None: ...


@pytest_asyncio.fixture
async def app(url: str) -> AsyncIterator[App]:
    async with App(url, jobs=[nothing], allow_weaker_durability=True) as app:
        yield app


async def examined(app: App) -> dict[str, Finding]:
    return {each.subject: each for each in await app.examine()}


async def looked(url: str) -> PostgresFacts:
    return await SystemRuntime().in_thread(lambda: facts(Address.of(url)))


async def test_a_durable_server_is_well(start_postgres: StartPostgres) -> None:
    url = start_postgres(Settings(durable=True)).dsn()
    async with App(url, jobs=[nothing]) as app, app.worker():
        await app.enqueue(nothing()).result(10)
        found = await examined(app)
    assert {subject: each.level for subject, each in found.items() if each.level != "ok"} == {}
    assert found["wake-ups"].found.startswith("a hint arrives after ")
    assert found["pooler"].found == "none: connections go straight to the server"
    assert found["clock"].found.startswith("the store's and this machine's agree within ")


async def test_commits_that_do_not_wait(start_postgres: StartPostgres) -> None:
    url = start_postgres(Settings(durable=True)).dsn()
    with psycopg.connect(url, autocommit=True) as db:
        db.execute("ALTER ROLE ropewalk SET synchronous_commit = off")
        db.execute("ALTER ROLE ropewalk SET default_transaction_isolation = 'serializable'")
    async with App(url, jobs=[nothing], allow_weaker_durability=True) as app:
        found = await examined(app)
    assert found["durability"].level == "bad"
    assert found["durability"].found == "a crash of the server may lose acknowledged jobs: synchronous_commit is 'off'"
    assert found["server"].level == "note"


async def test_a_transaction_left_open(url: str, app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its age is what the server says; half a minute of it would be too long for a test."""
    monkeypatch.setattr(findings, "IDLE_LONG", 0)
    with psycopg.connect(url.partition("?")[0], application_name="left open") as db:
        db.execute("SELECT 1")
        found = (await examined(app))["transactions"]
        assert found.level == "warn"
        assert found.found.startswith(f"1 transaction open and idle: pid {db.info.backend_pid} (left open) for ")
        assert found.advice is not None and "pg_terminate_backend" in found.advice
    assert (await examined(app))["transactions"].level == "ok"


async def test_sessions_that_wait_for_a_lock(url: str, app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(findings, "LOCKED_LONG", 0)
    dsn = url.partition("?")[0]
    assert await app.queues() == []
    with psycopg.connect(dsn) as holder, psycopg.connect(dsn) as waiter:
        holder.execute("LOCK TABLE jobs.once_key")
        waiting = threading.Thread(target=lambda: waiter.execute("LOCK TABLE jobs.once_key"))
        waiting.start()
        async with asyncio.timeout(20):
            while not (seen := await looked(url)).lock_waits:
                await asyncio.sleep(0.02)
        [wait] = seen.lock_waits
        assert (wait.pid, wait.blocked_by) == (waiter.info.backend_pid, [holder.info.backend_pid])
        assert (await examined(app))["locks"].level == "warn"
        holder.rollback()
        waiting.join(10)
        waiter.rollback()


async def test_a_role_that_may_not_do_everything(url: str, app: App) -> None:
    dsn = url.partition("?")[0]
    await app.queues()
    with psycopg.connect(dsn, autocommit=True) as db:
        db.execute("DROP ROLE IF EXISTS clerk")
        db.execute("CREATE ROLE clerk LOGIN")
        db.execute("GRANT USAGE ON SCHEMA jobs TO clerk")
        db.execute("GRANT SELECT, INSERT, UPDATE ON ALL TABLES IN SCHEMA jobs TO clerk")
        try:
            seen = await looked(url.replace("//ropewalk@", "//clerk@"))
        finally:
            db.execute("DROP OWNED BY clerk")
            db.execute("DROP ROLE clerk")
    assert "DELETE on submitted" in seen.rights_missing
    assert all(needed.startswith("DELETE on ") for needed in seen.rights_missing)
    assert not seen.sees_all_sessions
    assert [each.level for each in findings.rights(seen)] == ["bad", "note"]


async def test_the_tables_that_change(url: str, app: App) -> None:
    async with app.worker():
        await app.enqueue(nothing()).result(10)
    seen = await looked(url)
    assert [table.name for table in seen.tables] == ["finished", "ready", "running", "submitted", "waiting", "worker"]
    assert all(table.total_bytes > 0 for table in seen.tables)
    assert 0 < seen.connections < seen.connections_max
    assert 0 < seen.oldest_xid_age < seen.freeze_at_age
    assert (seen.schema, seen.notify, seen.pooled, seen.in_recovery) == ("jobs", True, False, False)


async def test_a_schema_that_is_missing_is_not_made(url: str) -> None:
    app = App(url, allow_weaker_durability=True)
    [finding] = await app.examine()
    await app.close()
    assert (finding.level, finding.subject) == ("bad", "schema")
    with psycopg.connect(url.partition("?")[0]) as db:
        assert db.execute("SELECT count(*) FROM pg_namespace WHERE nspname = 'jobs'").fetchone() == (0,)


async def test_without_wake_ups(url: str, app: App) -> None:
    await app.queues()
    async with App(f"{url}&notify=off", allow_weaker_durability=True) as quiet:
        assert (await examined(quiet))["wake-ups"].found.startswith("turned off (notify=off)")


@pytest.mark.system
async def test_behind_a_pooler(postgres: Postgres, start_pgbouncer: StartPgBouncer) -> None:
    """In transaction mode nobody hears a NOTIFY."""
    pooler = start_pgbouncer(postgres)
    async with App(f"{pooler.dsn()}?schema=pooled", jobs=[nothing], allow_weaker_durability=True) as app:
        await app.queues()
        found = await examined(app)
    assert found["pooler"].level == "note"
    assert found["wake-ups"].found == "a hint did not arrive: workers find work by looking, once a second"
    assert "LISTEN does not work through a pooler" in (found["wake-ups"].advice or "")
    with psycopg.connect(postgres.dsn(), autocommit=True) as db:
        db.execute("DROP SCHEMA pooled CASCADE")


async def test_dead_rows_are_counted(url: str) -> None:
    """By the server's own statistics, once they are told."""
    store = PostgresStore(url, SystemRuntime(), allow_weaker_durability=True)
    await store.open()
    with psycopg.connect(url.partition("?")[0], autocommit=True) as db:
        db.execute("ALTER TABLE jobs.worker SET (autovacuum_enabled = off)")
        for _ in range(50):
            db.execute("INSERT INTO jobs.worker VALUES ('w', 'h', 1, '[]', NULL, NULL, 1, 1, 1, 1)")
            db.execute("DELETE FROM jobs.worker")
        async with asyncio.timeout(20):
            while True:
                db.execute("SELECT 1")  # PostgreSQL 14 reports what a session has done with its next statement only
                [table] = [each for each in (await looked(url)).tables if each.name == "worker"]
                if table.dead >= 50:
                    break
                await asyncio.sleep(0.1)
        assert table.vacuumed_at is None
        db.execute("VACUUM jobs.worker")
        async with asyncio.timeout(20):
            while True:
                db.execute("SELECT 1")
                [table] = [each for each in (await looked(url)).tables if each.name == "worker"]
                if table.vacuumed_at is not None:
                    break
                await asyncio.sleep(0.1)
    await store.close()
