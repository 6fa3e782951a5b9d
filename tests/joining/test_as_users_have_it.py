"""S6: whatever users set on their connections, jobs come in, and the settings stay theirs."""

from __future__ import annotations

import asyncio
import gc
import json
import threading
import weakref
from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from psycopg.rows import dict_row
from psycopg.types.json import set_json_loads
from sqlalchemy import create_engine, text
from sqlalchemy.orm import Session

import ropewalk
from ropewalk import App, Conflict, Event
from tests.joining.conftest import Place, on
from tests.joining.drivers import (
    AlchemySession,
    AlchemySqliteSession,
    Asyncpg,
    AsyncpgPool,
    Driver,
    Psycopg,
    PsycopgAsync,
    Sqlite,
)
from tests.joining.hearing import SECONDS_MAX, listening
from tests.joining.jobs import JOBS, greet, measure

pytestmark = pytest.mark.asyncio


async def comes_in(app: App, connection: Any, commit: Callable[[], object]) -> None:
    """By every path of an intake: plain, repeated, keyed, behind another."""
    first = greet("ada")
    await app.enqueue(first, connection=connection)
    assert (await app.enqueue(first, connection=connection)).duplicate
    keyed = await app.enqueue(greet("bob"), connection=connection, idempotency_key="once", tags={"a": 'é"\\'})
    assert (await app.enqueue(greet("bob"), connection=connection, idempotency_key="once")).id == keyed.id
    last = await app.enqueue(measure("four"), connection=connection, depends_on=[first, keyed])
    done = commit()
    if asyncio.iscoroutine(done):
        await done
    async with app.worker():
        assert await last.result(timeout=SECONDS_MAX) == 4
        assert (await keyed.status()).tags == {"a": 'é"\\'}


@on(Psycopg)
async def test_psycopg_with_rows_cursors_and_json_of_ones_own(app: App, place: Place) -> None:
    with psycopg.connect(place.dsn, row_factory=dict_row, cursor_factory=psycopg.ClientCursor) as db:
        set_json_loads(lambda data: {"mine": json.loads(data)}, db)
        db.execute("SET LOCAL search_path TO pg_catalog")
        db.execute("SET LOCAL lock_timeout TO '3s'")
        await comes_in(app, db, lambda: None if shown(db) == ("pg_catalog", "3s") else 1 / 0)
        db.commit()


def shown(db: psycopg.Connection[Any]) -> tuple[Any, ...]:
    asked = "SELECT current_setting('search_path') AS path, current_setting('lock_timeout') AS wait"
    found = db.execute(asked).fetchone()
    assert found is not None
    db.commit()
    return tuple(found.values())


@on(Asyncpg, AsyncpgPool)
async def test_asyncpg_with_json_of_ones_own(app: App, driver: Driver) -> None:
    for kind in ("json", "jsonb"):
        await driver.connection.set_type_codec(kind, encoder=json.dumps, decoder=json.loads, schema="pg_catalog")
    await comes_in(app, driver.connection, driver.commit)


@on(Sqlite)
async def test_sqlite_with_rows_and_text_of_ones_own(app: App, place: Place) -> None:
    db = ropewalk.sqlite3.connect(place.dsn)
    rows: Any = lambda cursor, row: {column[0]: value for column, value in zip(cursor.description, row, strict=True)}  # noqa: E731
    db.row_factory, db.text_factory = rows, bytes
    await comes_in(app, db, db.commit)
    assert (db.row_factory, db.text_factory) == (rows, bytes)
    with pytest.raises(Conflict):
        await app.enqueue(greet("eve"), connection=db, id=(await app.search()).jobs[0].id)
    assert (db.row_factory, db.text_factory) == (rows, bytes)
    db.close()


@on(Sqlite)
async def test_sqlite_from_the_thread_it_belongs_to(app: App, place: Place) -> None:
    """Python refuses its use in any other."""
    ids: list[str] = []

    def in_a_thread() -> None:
        db = ropewalk.sqlite3.connect(place.dsn)
        with db:
            ids.append(app.sync.enqueue(greet("ada"), connection=db).id)
            ids.extend(each.id for each in app.sync.enqueue_many([greet("bob")], connection=db))
            ids.append(app.sync.tenant("acme").enqueue("greet", {"name": "eve"}, connection=db).id)
        db.close()

    thread = threading.Thread(target=in_a_thread)
    thread.start()
    await asyncio.to_thread(thread.join, SECONDS_MAX)
    assert len(ids) == 3
    assert set(await app.states(ids)) == set(ids[:2])


@on(PsycopgAsync, Asyncpg)
async def test_calls_at_once_on_one_connection_take_turns(app: App, driver: Driver) -> None:
    """Crossing savepoints would take back what was acknowledged."""
    await app.enqueue(greet("ada"), id="taken")
    calls = [driver.enqueue(app, greet(f"{n}"), id=f"job-{n}" if n % 3 else "taken") for n in range(30)]
    answers = await asyncio.gather(*calls, return_exceptions=True)
    await driver.commit()
    refused = [n for n, answer in enumerate(answers) if isinstance(answer, Conflict)]
    assert refused == list(range(0, 30, 3))
    assert await app.count() == 1 + 20


@on(AlchemySession)
async def test_a_session_inside_somebody_elses_transaction(app: App, place: Place) -> None:
    """As test suites do: the session's commit is not the last word."""
    told: list[str] = []
    app._app_state.events.hook_type("greet", lambda event: told.append(event.job_id))
    engine = create_engine(place.dsn.replace("postgresql", "postgresql+psycopg"))
    with listening(app) as heard, engine.connect() as outer:
        for ending, queue in ((outer.rollback, "undone"), (outer.commit, "kept")):
            outer.begin()
            with Session(outer, join_transaction_mode="create_savepoint") as session:
                await app.enqueue(greet("ada"), connection=session, queue=queue)
                session.commit()
            ending()
        await heard.queue("kept")
        assert heard.queues == {"kept"}
    engine.dispose()
    assert told == []


@on(AlchemySession, AlchemySqliteSession)
async def test_a_session_used_again_and_again(app: App, driver: Driver) -> None:
    told: list[str] = []
    app._app_state.events.hook_type("greet", lambda event: told.append(event.job_id))
    first = await driver.enqueue(app, greet("first"))
    driver.connection.close()  # without a word
    await asyncio.sleep(0)
    second = await driver.enqueue(app, greet("second"))
    await driver.commit()
    await driver.commit()
    await app.count()
    assert told == [second.id]
    assert await app.states([first.id]) == {}


@on(AlchemySqliteSession)
async def test_nothing_keeps_a_session_alive(app: App, driver: Driver) -> None:
    session = Session(driver.connection.get_bind())
    await app.enqueue(greet("ada"), connection=session)
    session.commit()
    session.close()
    gone = weakref.ref(session)
    del session
    gc.collect()
    assert gone() is None


@on(AlchemySqliteSession)
async def test_hooks_hear_of_commits_in_other_threads(app: App, driver: Driver) -> None:
    """They are called on a loop, whatever they are."""
    told: list[tuple[str, str]] = []
    heard = threading.Event()

    async def hook(event: Event) -> None:
        told.append((event.kind, event.job_id))
        heard.set()

    app._app_state.events.hook_type("greet", hook)
    ids: list[str] = []

    def in_a_thread() -> None:
        with Session(driver.connection.get_bind()) as session:
            session.execute(text("INSERT INTO mine VALUES ('ada')"))
            ids.append(app.sync.enqueue(greet("ada"), connection=session).id)
            session.commit()

    thread = threading.Thread(target=in_a_thread)
    thread.start()
    await asyncio.to_thread(thread.join, SECONDS_MAX)
    assert await asyncio.to_thread(heard.wait, SECONDS_MAX)
    assert told == [("queued", ids[0])]


@on(Psycopg)
async def test_without_notifications_nothing_is_said(place: Place) -> None:
    async with App(f"{place.url}&notify=off", jobs=JOBS, allow_weaker_durability=True) as app:
        with psycopg.connect(place.dsn, autocommit=True) as ear, psycopg.connect(place.dsn) as db:
            channel = app._app_state.store.notifier.__dict__["_channel"]
            ear.execute(f"LISTEN {channel}".encode())
            handle = await app.enqueue(greet("ada"), connection=db)
            db.execute("SELECT pg_notify(%s, 'the end')", (channel,))
            db.commit()
            assert next(ear.notifies(timeout=SECONDS_MAX)).payload == "the end"
        assert await app.states([handle.id])


@on(Psycopg)
async def test_one_transaction_says_it_once(app: App, place: Place) -> None:
    with psycopg.connect(place.dsn, autocommit=True) as ear, psycopg.connect(place.dsn) as db:
        channel = app._app_state.store.notifier.__dict__["_channel"]
        ear.execute(f"LISTEN {channel}".encode())
        for number in range(5):
            await app.enqueue(greet(f"{number}"), connection=db)
        db.execute("SELECT pg_notify(%s, 'the end')", (channel,))
        db.commit()
        said = [notify.payload for notify in ear.notifies(timeout=SECONDS_MAX, stop_after=2)]
        assert [json.loads(said[0])["hint"], said[1]] == [{"ready": ["default"]}, "the end"]
