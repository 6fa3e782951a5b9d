"""S6, safe-12: user transactions side by side, cancelled, broken; what each holds up and what it does not."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager

import psycopg
import pytest

import ropewalk
from ropewalk import App, Handle, InvalidInput, StoreUnavailable
from ropewalk.backends.postgres.drivers.asyncpg import AsyncpgConnection
from ropewalk.backends.postgres.drivers.psycopg3 import AsyncPsycopgConnection
from tests.joining.conftest import Place, on
from tests.joining.drivers import (
    ASYNCHRONOUS,
    ON_POSTGRES,
    Asyncpg,
    Driver,
    Psycopg,
    PsycopgAsync,
    Sqlite,
    SqliteThroughSync,
)
from tests.joining.hearing import SECONDS_MAX
from tests.joining.jobs import greet, measure

pytestmark = pytest.mark.asyncio

STATEMENTS_MAX = 100
WAITING = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"


@asynccontextmanager
async def second(kind: type[Driver], place: Place) -> AsyncIterator[Driver]:
    other = kind()
    await other.open(place.dsn)
    try:
        yield other
    finally:
        await other.close()


async def until_somebody_waits(place: Place) -> None:
    """Until a statement stands behind somebody's lock."""
    async with asyncio.timeout(SECONDS_MAX), await psycopg.AsyncConnection.connect(place.dsn, autocommit=True) as db:
        while True:
            cursor = await db.execute(WAITING)
            if await cursor.fetchone() != (0,):
                return


@on(*ASYNCHRONOUS)
@pytest.mark.parametrize("ending", ["commit", "rollback"])
async def test_one_key_in_two_transactions(app: App, driver: Driver, place: Place, ending: str) -> None:
    first = await driver.enqueue(app, greet("ada"), idempotency_key="once")
    async with second(type(driver), place) as other:
        asked = asyncio.ensure_future(other.enqueue(app, greet("ada"), idempotency_key="once"))
        await until_somebody_waits(place)
        assert not asked.done()
        await (driver.commit() if ending == "commit" else driver.rollback())
        again = await asyncio.wait_for(asked, SECONDS_MAX)
        await other.commit()
        assert again.duplicate == (ending == "commit")
        assert (again.id == first.id) == (ending == "commit")
    assert await app.count() == 1


@on(Psycopg)
async def test_one_key_in_two_threads(app: App, driver: Driver, place: Place) -> None:
    first = await driver.enqueue(app, greet("ada"), idempotency_key="once")
    answers: list[tuple[str, bool]] = []

    def ask() -> None:
        with psycopg.connect(place.dsn) as db:
            handle = app.sync.enqueue(greet("ada"), idempotency_key="once", connection=db)
            answers.append((handle.id, handle.duplicate))

    thread = threading.Thread(target=ask)
    thread.start()
    await until_somebody_waits(place)
    await driver.commit()
    await asyncio.to_thread(thread.join, SECONDS_MAX)
    assert answers == [(first.id, True)]


@on(*ASYNCHRONOUS)
async def test_a_cancelled_call_leaves_the_transaction_usable(app: App, driver: Driver, place: Place) -> None:
    await driver.run("INSERT INTO mine VALUES ('before')")
    before = await driver.run("SHOW search_path")
    async with second(type(driver), place) as other:
        await other.enqueue(app, greet("theirs"), idempotency_key="once")
        asked = asyncio.ensure_future(driver.enqueue(app, greet("mine"), idempotency_key="once"))
        await until_somebody_waits(place)
        asked.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(asked, SECONDS_MAX)
        assert await driver.run("SHOW search_path") == before
        kept = await driver.enqueue(app, greet("kept"))
        await driver.commit()
        await other.rollback()
    assert await driver.run("SELECT word FROM mine") == [("before",)]
    assert [each.id for each in (await app.search()).jobs] == [kept.id]


@on(*ASYNCHRONOUS)
async def test_cancelled_at_any_statement(app: App, driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    """From the first to the last: the transaction goes on, with what was acknowledged in it."""
    acknowledged: list[str] = []
    for moment in range(STATEMENTS_MAX):
        with cancelling_after(moment, monkeypatch) as watched:
            watched.call = asyncio.ensure_future(driver.enqueue(app, greet("ada"), idempotency_key=f"{moment}"))
            [answer] = await asyncio.gather(watched.call, return_exceptions=True)
        await driver.run(f"INSERT INTO mine VALUES ('{moment}')")
        if not isinstance(answer, asyncio.CancelledError):
            assert isinstance(answer, Handle), answer
            acknowledged.append(answer.id)
            break
    await driver.commit()
    assert moment > 8, "so many statements there are at least"
    assert len(await driver.run("SELECT word FROM mine")) == moment + 1
    stored = [each.id for each in (await app.search()).jobs]
    # Only the last statement of all is too late to be taken back.
    assert (set(acknowledged) <= set(stored), len(stored)) == (True, 2)


class Watched:
    call: asyncio.Future[object]
    seen = 0


@contextmanager
def cancelling_after(statements: int, monkeypatch: pytest.MonkeyPatch) -> Iterator[Watched]:
    """Cancel the call while it hears the answer to its next statement after so many."""
    watched = Watched()

    def cancelling(execute: Callable[..., Awaitable[object]]) -> Callable[..., Awaitable[object]]:
        async def executed(*args: object, **options: object) -> object:
            answer = await execute(*args, **options)
            watched.seen += 1
            if watched.seen == statements + 1:
                watched.call.cancel()
                for _ in range(20):
                    await asyncio.sleep(0)  # the cancellation travels from task to task
            return answer

        return executed

    with monkeypatch.context() as patch:
        for speaker in (AsyncPsycopgConnection, AsyncpgConnection):
            patch.setattr(speaker, "execute", cancelling(speaker.execute))
        yield watched


@on(PsycopgAsync, Asyncpg)
async def test_a_timeout_around_the_call(app: App, driver: Driver, place: Place) -> None:
    async with second(type(driver), place) as other:
        await other.enqueue(app, greet("theirs"), idempotency_key="once")
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.5):
                await driver.enqueue(app, greet("mine"), idempotency_key="once")
        await driver.run("INSERT INTO mine VALUES ('usable')")
        await driver.commit()


@on(*ON_POSTGRES)
async def test_an_open_transaction_holds_up_nobody_elses_jobs(app: App, driver: Driver) -> None:
    """The first job of its type and queue, too."""
    mine = await driver.enqueue(app, measure("first"), queue="new")
    theirs = await asyncio.wait_for(app.enqueue(measure("second"), queue="new"), 5)
    async with app.worker():
        assert await theirs.result(timeout=SECONDS_MAX) == 6
    await driver.commit()
    assert await app.states([mine.id])


@on(PsycopgAsync, Asyncpg)
async def test_transactions_that_wait_for_one_another(app: App, driver: Driver, place: Place) -> None:
    """Whoever is refused can go on, or roll back and let the other."""
    async with second(type(driver), place) as other:
        await driver.enqueue(app, greet("a"), idempotency_key="a")
        await other.enqueue(app, greet("b"), idempotency_key="b")
        crossing = [
            asyncio.ensure_future(driver.enqueue(app, greet("b"), idempotency_key="b")),
            asyncio.ensure_future(other.enqueue(app, greet("a"), idempotency_key="a")),
        ]
        done, left = await asyncio.wait(crossing, timeout=30, return_when=asyncio.FIRST_COMPLETED)
        assert [type(each.exception()) for each in done] == [StoreUnavailable]
        loser, winner = (driver, other) if crossing[0] in done else (other, driver)
        await loser.run("INSERT INTO mine VALUES ('the loser goes on')")
        await loser.rollback()
        assert not (await asyncio.wait_for(left.pop(), SECONDS_MAX)).duplicate
        await winner.commit()
    assert await app.count() == 2


@on(PsycopgAsync, Asyncpg, Psycopg)
async def test_a_connection_that_broke(app: App, driver: Driver, place: Place) -> None:
    async with second_that_breaks(type(driver), place) as other:
        with pytest.raises((StoreUnavailable, InvalidInput), match=r"closed or broken|nothing was changed|is closed"):
            await asyncio.wait_for(other.enqueue(app, greet("ada")), SECONDS_MAX)
    assert await app.count() == 0


@asynccontextmanager
async def second_that_breaks(kind: type[Driver], place: Place) -> AsyncIterator[Driver]:
    other = kind()
    await other.open(place.dsn)
    [(pid,)] = await other.run("SELECT pg_backend_pid()")
    with psycopg.connect(place.dsn, autocommit=True) as db:
        db.execute("SELECT pg_terminate_backend(%s, 5000)", (pid,))
    yield other
    if isinstance(other, Asyncpg):
        other.connection.terminate()
    else:
        await other.close()


@on(Sqlite, SqliteThroughSync)
async def test_one_key_in_two_sqlite_transactions(app: App, driver: Driver, place: Place) -> None:
    """SQLite has one writer: the second waits for the first, and finds what it wrote."""
    first = await driver.enqueue(app, greet("ada"), idempotency_key="once")
    answers: list[tuple[str, bool]] = []
    waiting = threading.Event()

    def ask() -> None:
        db = ropewalk.sqlite3.connect(place.dsn, timeout=SECONDS_MAX)
        waiting.set()
        handle = app.sync.enqueue(greet("ada"), idempotency_key="once", connection=db)
        db.commit()
        db.close()
        answers.append((handle.id, handle.duplicate))

    thread = threading.Thread(target=ask)
    thread.start()
    await asyncio.to_thread(waiting.wait, SECONDS_MAX)
    await driver.commit()
    await asyncio.to_thread(thread.join, SECONDS_MAX)
    assert answers == [(first.id, True)]


@on(Sqlite)
async def test_the_lock_of_a_user_who_waits_for_the_app(app: App, driver: Driver) -> None:
    """An ordinary enqueue waits for the user's own lock; inside the transaction it need not."""
    await driver.run("INSERT INTO mine VALUES ('mine')")
    outside = asyncio.ensure_future(app.enqueue(greet("outside")))
    inside = await asyncio.wait_for(driver.enqueue(app, greet("inside")), 5)
    assert not outside.done()
    await driver.commit()
    assert await asyncio.wait_for(outside, SECONDS_MAX)
    assert await app.states([inside.id])
