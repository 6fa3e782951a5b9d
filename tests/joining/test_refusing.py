"""S6: a connection that cannot carry a job is refused with a word on what to do, and is as usable as before."""

from __future__ import annotations

import asyncio
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import asyncpg
import psycopg
import pytest
from sqlalchemy import create_engine
from sqlalchemy.ext.asyncio import create_async_engine

import ropewalk
from ropewalk import App, InvalidInput, SchemaMismatch, StoreUnavailable, Unsupported, WeakDurability
from tests.joining.conftest import Place, on
from tests.joining.drivers import (
    AlchemyAsyncSession,
    AlchemySession,
    AlchemySqliteSession,
    Asyncpg,
    Driver,
    Psycopg,
    PsycopgAsync,
    PsycopgThroughSync,
    Sqlite,
)
from tests.joining.jobs import JOBS, greet
from tests.servers.databases import fresh_database
from tests.servers.fixtures import StartPostgres
from tests.servers.postgres import Postgres, Settings

pytestmark = pytest.mark.asyncio


@on(Psycopg)
async def test_psycopg_outside_a_transaction(app: App, place: Place) -> None:
    with psycopg.connect(place.dsn, autocommit=True) as db:
        with pytest.raises(InvalidInput, match=r"no transaction \(autocommit is on\)"):
            await app.enqueue(greet("ada"), connection=db)
        with db.transaction():
            handle = await app.enqueue(greet("ada"), connection=db)
    assert await app.states([handle.id])


@on(Asyncpg)
async def test_asyncpg_outside_a_transaction(app: App, place: Place) -> None:
    db = await asyncpg.connect(place.dsn)
    with pytest.raises(InvalidInput, match="no transaction"):
        await app.enqueue(greet("ada"), connection=db)
    await db.close()
    with pytest.raises(InvalidInput, match="closed"):
        await app.enqueue(greet("ada"), connection=db)


@on(AlchemySession, AlchemyAsyncSession, AlchemySqliteSession)
async def test_sqlalchemy_in_autocommit(app: App, driver: Driver) -> None:
    engine: Any = driver.__dict__["_engine"].execution_options(isolation_level="AUTOCOMMIT")
    if isinstance(driver, AlchemyAsyncSession):
        async with engine.connect() as db:
            with pytest.raises(InvalidInput, match="no transaction"):
                await app.enqueue(greet("ada"), connection=db)
    else:
        with engine.connect() as db, pytest.raises(InvalidInput, match="no transaction"):
            await app.enqueue(greet("ada"), connection=db)


@on(Sqlite)
async def test_sqlite_outside_a_transaction(app: App, place: Place) -> None:
    db = ropewalk.sqlite3.connect(place.dsn, isolation_level=None)
    with pytest.raises(InvalidInput, match="BEGIN IMMEDIATE"):
        await app.enqueue(greet("ada"), connection=db)
    db.execute("BEGIN IMMEDIATE")
    handle = await app.enqueue(greet("ada"), connection=db)
    assert db.in_transaction
    db.execute("COMMIT")
    db.close()
    assert await app.states([handle.id])


@on(Psycopg, PsycopgAsync, Asyncpg, AlchemySession, AlchemyAsyncSession)
@pytest.mark.parametrize("level", ["REPEATABLE READ", "SERIALIZABLE"])
async def test_a_level_that_does_not_see_what_was_committed(app: App, driver: Driver, level: str) -> None:
    await driver.run(f"SET TRANSACTION ISOLATION LEVEL {level}")
    with pytest.raises(InvalidInput, match=f"{level}: use READ COMMITTED"):
        await driver.enqueue(app, greet("ada"))
    await driver.run("INSERT INTO mine VALUES ('still usable')")
    await driver.commit()
    assert await driver.run("SELECT word FROM mine") == [("still usable",)]


@on(Psycopg, PsycopgAsync, Asyncpg)
async def test_a_transaction_that_only_reads(app: App, driver: Driver) -> None:
    await driver.run("SET TRANSACTION READ ONLY")
    with pytest.raises(InvalidInput, match="may only read"):
        await driver.enqueue(app, greet("ada"))


@on(Psycopg)
async def test_a_transaction_in_which_a_statement_failed(app: App, driver: Driver) -> None:
    with pytest.raises(psycopg.Error):
        await driver.run("SELECT nonsense")
    with pytest.raises(InvalidInput, match="roll it back first"):
        await driver.enqueue(app, greet("ada"))


@on(Psycopg)
async def test_a_pipeline_and_an_encoding(app: App, driver: Driver) -> None:
    with driver.connection.pipeline(), pytest.raises(InvalidInput, match="pipeline"):
        await driver.enqueue(app, greet("ada"))
    await driver.run("SET LOCAL client_encoding TO latin1")
    with pytest.raises(InvalidInput, match="client_encoding=LATIN1"):
        await driver.enqueue(app, greet("ada"))


@on(Psycopg)
async def test_another_database_with_the_same_schema(app: App, postgres: Postgres) -> None:
    with fresh_database(postgres) as dsn:
        async with App(f"{dsn}?schema=jobs", jobs=JOBS, allow_weaker_durability=True) as other:
            with psycopg.connect(dsn) as db:
                with pytest.raises(
                    InvalidInput, match="another database than schema jobs of postgresql://ropewalk@127"
                ):
                    await app.enqueue(greet("ada"), connection=db)
                assert await other.enqueue(greet("ada"), connection=db)
        with psycopg.connect(postgres.dsn()) as db, pytest.raises(InvalidInput, match="another database"):
            await app.enqueue(greet("ada"), connection=db)


@on(Sqlite)
async def test_another_file(app: App, place: Place, tmp_path: Path) -> None:
    db = ropewalk.sqlite3.connect(tmp_path / "other.db")
    db.execute("ATTACH ? AS jobs", (place.dsn,))
    with pytest.raises(InvalidInput, match=r"leads to .*other\.db: pass one whose main file is"):
        await app.enqueue(greet("ada"), connection=db)
    db.close()
    db = ropewalk.sqlite3.connect(":memory:")
    with pytest.raises(InvalidInput, match="leads to no file"):
        await app.enqueue(greet("ada"), connection=db)
    db.close()


@on(Sqlite)
async def test_a_connection_made_by_another_sqlite_library(app: App, place: Place) -> None:
    assert ropewalk.sqlite3.Connection is not sqlite3.Connection, "these tests need pysqlite3 beside Python's own"
    db = sqlite3.connect(":memory:")  # not the store's file: that alone would be dangerous
    with pytest.raises(InvalidInput, match=r"made by sqlite3, .* ropewalk\.sqlite3\.connect"):
        await app.enqueue(greet("ada"), connection=db)
    db.close()
    engine = create_engine("sqlite://")
    with engine.connect() as found, pytest.raises(InvalidInput, match=r"create_engine\(\.\.\., module="):
        await app.enqueue(greet("ada"), connection=found)
    engine.dispose()


@on(Sqlite)
async def test_a_temporary_table_that_hides_ours(app: App, driver: Driver) -> None:
    await driver.run("CREATE TEMPORARY TABLE job (id TEXT)")
    with pytest.raises(InvalidInput, match="hide ropewalk's: job"):
        await driver.enqueue(app, greet("ada"))


@on(Sqlite)
async def test_a_file_that_is_not_ready_is_not_waited_for(place: Place) -> None:
    """The store cannot be opened while the user holds the lock, and must not try."""
    db = ropewalk.sqlite3.connect(place.dsn)
    db.execute("BEGIN IMMEDIATE")
    app = App(place.url, jobs=JOBS)
    async with asyncio.timeout(5):
        with pytest.raises(SchemaMismatch, match="open the app before the transaction begins"):
            await app.enqueue(greet("ada"), connection=db)
    db.rollback()
    await app.count()
    await app.close()
    db.execute("BEGIN IMMEDIATE")
    fresh = App(place.url, jobs=JOBS)  # knows nothing of the file yet
    async with asyncio.timeout(5):
        handle = await fresh.enqueue(greet("ada"), connection=db)
    db.commit()
    db.close()
    assert await handle.status()
    await fresh.close()


@on(Sqlite)
async def test_a_refusal_holds_no_lock_that_was_not_there(app: App, driver: Driver) -> None:
    await app.enqueue(greet("ada"), id="taken")
    with pytest.raises(ropewalk.Conflict):
        await driver.enqueue(app, greet("bob"), id="taken")
    assert not driver.connection.in_transaction


@on(Sqlite)
async def test_a_transaction_that_read_before_others_wrote(app: App, driver: Driver) -> None:
    await driver.run("BEGIN")
    await driver.run("SELECT count(*) FROM mine")
    await app.enqueue(greet("meanwhile"))
    with pytest.raises(StoreUnavailable, match="nothing was changed"):
        await driver.enqueue(app, greet("ada"))
    await driver.rollback()


@on(Sqlite)
async def test_a_commit_that_could_be_lost_with_the_power(place: Place) -> None:
    async with App(place.url, jobs=JOBS) as app:
        await app.count()
        db = ropewalk.sqlite3.connect(place.dsn)
        db.execute("PRAGMA synchronous = NORMAL")
        with pytest.raises(WeakDurability, match="synchronous = FULL"):
            await app.enqueue(greet("ada"), connection=db)
        db.close()


async def test_an_asynchronous_commit(start_postgres: StartPostgres) -> None:
    dsn = start_postgres(Settings(durable=True)).dsn()
    async with App(dsn, jobs=JOBS) as app:
        with psycopg.connect(dsn) as db:
            db.execute("SET synchronous_commit = off")
            with pytest.raises(WeakDurability, match="SET LOCAL synchronous_commit = on"):
                await app.enqueue(greet("ada"), connection=db)
            db.execute("SET LOCAL synchronous_commit = on")
            assert await app.enqueue(greet("ada"), connection=db)


@on(Psycopg, Sqlite)
async def test_what_is_no_connection(app: App) -> None:
    wrong: Any
    for wrong in ("postgresql://here", 3, object()):
        with pytest.raises(InvalidInput, match=r"connection=builtins\.\w+ is none this store can join: pass a"):
            await app.enqueue(greet("ada"), connection=wrong)


@on(Psycopg, Sqlite)
async def test_a_cursor_is_called_a_cursor(app: App, driver: Driver) -> None:
    with pytest.raises(InvalidInput, match=r"Cursor is a cursor: pass the connection that it belongs to"):
        await app.enqueue(greet("ada"), connection=driver.connection.cursor())


@on(Psycopg)
async def test_engines_and_connections_of_other_stores(app: App) -> None:
    wrong: Any = create_async_engine("postgresql+asyncpg://nowhere")
    with pytest.raises(InvalidInput, match="AsyncEngine is none"):
        await app.enqueue(greet("ada"), connection=wrong)
    db = ropewalk.sqlite3.connect(":memory:")
    with pytest.raises(InvalidInput, match="is none this store can join"):
        await app.enqueue(greet("ada"), connection=db)
    db.close()


@on(Sqlite)
async def test_an_asynchronous_session_on_sqlite(app: App, postgres: Postgres) -> None:
    engine = create_async_engine(postgres.dsn().replace("postgresql", "postgresql+asyncpg"))
    async with engine.connect() as db:
        with pytest.raises(Unsupported, match="use a Session"):
            await app.enqueue(greet("ada"), connection=db)
    await engine.dispose()


@on(PsycopgAsync, Asyncpg, AlchemyAsyncSession)
async def test_the_blocking_face_does_not_take_a_loops_connection(app: App, driver: Driver) -> None:
    with pytest.raises(InvalidInput, match=r"belongs to an event loop.* await app\.enqueue"):
        app.sync.enqueue(greet("ada"), connection=driver.connection)


@on(PsycopgThroughSync)
async def test_in_memory_there_is_no_transaction(driver: Driver) -> None:
    async with App("memory://", jobs=JOBS) as app:
        with pytest.raises(Unsupported, match="connection= needs sqlite:///… or postgresql://…"):
            await app.enqueue(greet("ada"), connection=driver.connection)


@on(Psycopg)
async def test_using_takes_no_connection(driver: Driver) -> None:
    options: Any = {"connection": driver.connection}
    with pytest.raises(InvalidInput, match="connection"):
        greet("ada").using(**options)


async def test_nobodys_driver_is_imported(tmp_path: Path) -> None:
    program = """
import sys, ropewalk
app = ropewalk.App("sqlite:///jobs.db")
app.sync.count()
db = ropewalk.sqlite3.connect("jobs.db")
try:
    app.sync.enqueue("nothing", {}, connection=db)
except ropewalk.UnknownJobType:
    print(sorted({"sqlalchemy", "asyncpg", "psycopg"} & set(sys.modules)))
db.close()
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("[]\n", "")
