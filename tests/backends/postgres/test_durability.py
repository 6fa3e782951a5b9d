"""A server whose settings are changed while jobs are accepted: the app says so, and goes on."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial

import psycopg
import pytest

from ropewalk import App, job
from ropewalk.backends.postgres import durability
from ropewalk.errors import StoreUnavailable, WeakDurability
from ropewalk.ports.store.core import Durability
from tests.servers.fixtures import StartPostgres
from tests.servers.postgres import Settings

TIMEOUT_SECONDS = 60
SETTINGS = Settings(durable=True, by_default=True)
pytestmark = pytest.mark.asyncio


@job
async def greet() -> str:
    return "hello"


class Told:
    """Hears errors on any thread."""

    def __init__(self) -> None:
        self.errors: list[str] = []

    def hear(self, error: BaseException, phase: str) -> None:
        if phase == "durability":
            assert isinstance(error, WeakDurability)
            self.errors.append(str(error))


def change(url: str, *statements: str) -> None:
    """Settings of the server, and a reload: open sessions have them when they are next asked anything."""
    with psycopg.connect(url, autocommit=True) as db:
        for statement in (*statements, "SELECT pg_reload_conf()"):
            db.execute(statement.encode())


async def until(done: Callable[[], bool], act: Callable[[], Awaitable[object]]) -> None:
    """Go on enqueueing until it is so: a connection looks after it has answered somebody."""
    async with asyncio.timeout(TIMEOUT_SECONDS):
        while not done():
            await act()


@pytest.fixture
def looked_at_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(durability, "LOOK_SECONDS", 0.05)


@pytest.mark.usefixtures("looked_at_often")
@pytest.mark.parametrize("setting", ["fsync", "full_page_writes", "synchronous_commit"])
async def test_a_reload_that_weakens_durability_is_told_once(start_postgres: StartPostgres, setting: str) -> None:
    """safe-2: by app.durability, on_error and the doctor; and again when it happens again."""
    url, told = start_postgres(SETTINGS).dsn(), Told()
    app = App(url, jobs=[greet], on_error=told.hear)
    async with app:
        await app.enqueue(greet())
        assert (app.durability, told.errors) == (Durability.D2, [])
        for number in (1, 2):
            change(url, f"ALTER SYSTEM SET {setting} = off")
            await until(lambda: app.durability is Durability.D1, lambda: app.enqueue(greet()))
            for _ in range(20):
                await app.enqueue(greet())
                await app.search()
            assert len(told.errors) == number, told.errors
            assert f"{setting} is 'off'" in told.errors[-1]
            [finding] = [each for each in await app.examine() if each.subject == "durability"]
            assert (finding.level, setting in finding.found) == ("bad", True)
            change(url, f"ALTER SYSTEM RESET {setting}")
            await until(lambda: app.durability is Durability.D2, lambda: app.enqueue(greet()))


@pytest.mark.usefixtures("looked_at_often")
async def test_an_idle_worker_notices(start_postgres: StartPostgres) -> None:
    """safe-2: what it does now and then for all is enough."""
    url, heard = start_postgres(SETTINGS).dsn(), asyncio.Event()
    loop = asyncio.get_running_loop()
    app = App(
        url,
        jobs=[greet],
        on_error=lambda error, phase: loop.call_soon_threadsafe(heard.set) if phase == "durability" else None,
    )
    async with app.running():
        change(url, "ALTER SYSTEM SET synchronous_commit = off")
        async with asyncio.timeout(TIMEOUT_SECONDS):
            await heard.wait()
        assert app.durability is Durability.D1


async def _enqueue(app: App) -> None:
    await app.enqueue(greet())


async def _once_it_answers(act: Callable[[], Awaitable[object]]) -> None:
    while True:
        try:
            await act()
        except StoreUnavailable:
            continue
        return


async def test_a_connection_that_is_refused_is_told(start_postgres: StartPostgres) -> None:
    """safe-2: the settings of a role hold for the connections that are made from then on."""
    server = start_postgres(SETTINGS)
    url, told = server.dsn(), Told()
    app = App(url, jobs=[greet], on_error=told.hear)
    async with app:
        await app.enqueue(greet())
        change(url, "ALTER ROLE ropewalk SET synchronous_commit = off")
        server.restart()
        with pytest.raises(WeakDurability, match="synchronous_commit is 'off'"):
            async with asyncio.timeout(TIMEOUT_SECONDS):
                await _once_it_answers(partial(_enqueue, app))
        assert app.durability is Durability.D1
        assert len(told.errors) == 1, told.errors


async def test_where_it_is_allowed_it_is_logged(
    start_postgres: StartPostgres, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """safe-2: nobody has to be told of an error."""
    monkeypatch.setattr(durability, "LOOK_SECONDS", 0.05)
    url, told = start_postgres(SETTINGS).dsn(), Told()
    app = App(url, jobs=[greet], on_error=told.hear, allow_weaker_durability=True)
    async with app:
        await app.enqueue(greet())
        change(url, "ALTER SYSTEM SET fsync = off")
        await until(lambda: app.durability is Durability.D1, lambda: app.enqueue(greet()))
    assert told.errors == []
    assert [each.levelname for each in caplog.records if "fsync is 'off'" in each.message] == ["WARNING"]
