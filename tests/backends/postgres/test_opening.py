"""What is refused before any job is accepted, and migrating."""

from __future__ import annotations

import asyncio
from urllib.parse import urlsplit

import psycopg
import pytest

from ropewalk import App, job
from ropewalk.backends.postgres import PostgresStore
from ropewalk.backends.postgres.address import Address
from ropewalk.connect import connect
from ropewalk.errors import InvalidInput, SchemaMismatch, StoreRefused, StoreUnavailable, WeakDurability
from ropewalk.ports.store.core import Durability
from ropewalk.ports.store.urls import masked
from ropewalk.runtime.system import SystemRuntime
from tests.servers.fixtures import StartPostgres
from tests.servers.postgres import Settings


@job
async def greet(name: str) -> str:
    return name


async def tried(url: str, *, weaker: bool = True) -> Durability:
    store = PostgresStore(url, SystemRuntime(), allow_weaker_durability=weaker)
    try:
        await store.open()
        return store.durability
    finally:
        await store.close()


def execute(url: str, *statements: str) -> None:
    with psycopg.connect(url.partition("?")[0], autocommit=True) as db:
        for statement in statements:
            db.execute(statement.encode())


@pytest.mark.asyncio
class TestDurability:
    async def test_a_server_that_loses_commits_is_refused(self, url: str) -> None:
        with pytest.raises(WeakDurability, match=r"fsync is 'off'.*allow_weaker_durability=True"):
            await tried(url, weaker=False)

    async def test_unless_that_is_allowed(self, url: str) -> None:
        assert await tried(url) is Durability.D1

    async def test_one_that_keeps_them_is_not(self, start_postgres: StartPostgres) -> None:
        server = start_postgres(Settings(durable=True))
        assert await tried(server.dsn(), weaker=False) is Durability.D2

    async def test_a_user_whose_commits_do_not_wait_is_refused(self, start_postgres: StartPostgres) -> None:
        server = start_postgres(Settings(durable=True))
        execute(server.dsn(), "ALTER ROLE ropewalk SET synchronous_commit = off")
        with pytest.raises(WeakDurability, match="synchronous_commit is 'off'"):
            await tried(server.dsn(), weaker=False)


@pytest.mark.asyncio
class TestSchema:
    async def test_many_who_migrate_at_once(self, url: str) -> None:
        assert set(await asyncio.gather(*(tried(url) for _ in range(6)))) == {Durability.D1}
        with psycopg.connect(url.partition("?")[0]) as db:
            assert db.execute("SELECT count(*) FROM jobs.migration").fetchone() == (1,)

    async def test_a_schema_of_a_newer_release_is_refused(self, url: str) -> None:
        await tried(url)
        execute(url, "INSERT INTO jobs.migration VALUES (99, 'later', 'breaking')")
        with pytest.raises(SchemaMismatch, match="schema 99"):
            await tried(url)

    async def test_one_that_only_added_something_is_not(self, url: str) -> None:
        await tried(url)
        execute(url, "INSERT INTO jobs.migration VALUES (99, 'later', 'additive')")
        await tried(url)

    @pytest.mark.parametrize("table", ["job (id integer)", "migration (id integer)"])
    async def test_tables_of_another_program_are_left_alone(self, url: str, table: str) -> None:
        execute(url, "CREATE SCHEMA jobs", f"CREATE TABLE jobs.{table}")
        with pytest.raises(SchemaMismatch, match="another program"):
            await tried(url)

    async def test_two_schemas_share_nothing(self, url: str) -> None:
        await tried(url)
        await tried(url.replace("schema=jobs", "schema=others"))
        execute(url, "DROP SCHEMA jobs CASCADE")
        await tried(url.replace("schema=jobs", "schema=others"))


@pytest.mark.asyncio
async def test_nobody_answers() -> None:
    with pytest.raises(StoreUnavailable, match="check that the server answers"):
        await tried("postgresql://nobody@127.0.0.1:1/none")


@pytest.mark.asyncio
@pytest.mark.parametrize("wrong", ["user", "database"])
async def test_a_server_that_answers_is_not_said_to_be_silent(wrong: str, start_postgres: StartPostgres) -> None:
    parts = urlsplit(start_postgres(Settings()).dsn())
    user, _, at = parts.netloc.rpartition("@")
    given = {"user": (f"nobody@{at}", parts.path), "database": (f"{user}@{at}", "/nodb")}[wrong]
    with pytest.raises(StoreUnavailable, match="FATAL") as refusal:
        await tried(f"postgresql://{given[0]}{given[1]}")
    assert "the server answered: check the database, the user and the password of the URL" in str(refusal.value)
    assert "check that the server answers" not in str(refusal.value)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://u:secret@h:5/d", "postgresql://u:***@h:5/d"),
        ("postgresql://u@h:5/d", "postgresql://u@h:5/d"),
        ("postgresql://u:@h:5/d", "postgresql://u@h:5/d"),
        ("postgresql://h/d", "postgresql://h/d"),
        ("postgresql:///d", "postgresql:///d"),
    ],
)
def test_a_url_is_shown_in_one_way(url: str, shown: str) -> None:
    assert masked(url) == Address.of(url).shown == shown
    assert masked(f"{url}?password=secret&sslmode=require") == f"{shown}?password=***&sslmode=require"


class TestAddress:
    def test_our_options_are_not_the_librarys(self) -> None:
        address = Address.of("postgresql://u:secret@h:5/d?schema=mine&sslmode=require&notify=off")
        assert (address.schema, address.notify) == ("mine", False)
        assert address.url == "postgresql://u:secret@h:5/d?target_session_attrs=read-write&sslmode=require"
        assert "secret" not in address.shown

    def test_which_host_to_take_is_up_to_the_user(self) -> None:
        assert (
            Address.of("postgresql://h/d?target_session_attrs=any").url == "postgresql://h/d?target_session_attrs=any"
        )

    @pytest.mark.parametrize(
        ("url", "told"),
        [
            ("postgresql://u:secret@h/d?shema=mine", "the parameter 'shema', .* did you mean 'schema'"),
            ("postgresql://u:secret@h/d?wait=1", "the parameter 'wait', .* take it away"),
            ("postgresql://u:secret@h:abc/d", "cannot be read: .*host:5432"),
            ("postgresql://u:secret#x@h/d", "url='postgresql://\\*\\*\\*' cannot be read: .* as .* %23"),
            ("postgresql://u:secret/x@h/d", "cannot be read"),
            ("postgresql://u:secret?x@h/d", "cannot be read"),
            ("postgresql://u:1?secret@h/d", "cannot be read"),
            ("postgresql://u:?secret@h/d", "cannot be read"),
            ("postgresql://u:a@secret@h/d", "cannot be read"),
            ("postgresql://u:secret", "cannot be read"),
            ("postgresql://u:secret x@h/d", "cannot be read"),
            ("postgresql://u:\u2100secret@h/d", "is not a URL"),
            ("postgresql://u:secret@[::1/d", "is not a URL"),
            ("postgresql//u:secret@h/d", "unknown scheme"),
            ("u:secret@h/d", "unknown scheme"),
            ("host=h user=u password=secret", "unknown scheme"),
            ("redis://secret@h", "unknown scheme"),
            ("sqlite://secret@/x", "names no file"),
            ("sqlite:///x.db?secret", "a query or a fragment"),
            ("postgresql://u:secret@h:99999/d", "port='99999' is no number"),
            ("postgresql://u:secret@h/d?connect_timeout=soon", "connect_timeout='soon' is no number"),
            ("postgresql://u:secret%zz@h/d", "cannot be read: .* as %25"),
        ],
    )
    def test_what_the_library_could_not_read(self, url: str, told: str) -> None:
        """Found before anything is asked of the server, and without a word of the password."""
        with pytest.raises(InvalidInput, match=told) as refused:
            connect(url, SystemRuntime())
        assert refused.value.field == "url"
        assert "secret" not in str(refused.value)
        assert refused.value.__context__ is None

    @pytest.mark.parametrize("url", ["postgresql://u:\u2100secret@h/d", "postgresql://u:secret@[::1/d"])
    def test_what_python_cannot_take_apart(self, url: str) -> None:
        with pytest.raises(InvalidInput, match="cannot be read") as refused:
            Address.of(url)
        assert "secret" not in f"{refused.value} {refused.value.__context__}"

    @pytest.mark.asyncio
    @pytest.mark.parametrize("option", ["sslmode=bogus", "target_session_attrs=bogus"])
    async def test_a_value_that_only_the_library_judges(self, option: str) -> None:
        with pytest.raises(InvalidInput, match=r"invalid .* value: .*correct this parameter of the URL"):
            await tried(f"postgresql://nobody@127.0.0.1:1/none?{option}")

    @pytest.mark.parametrize("url", ["postgresql:///d", "postgresql://a:1,b:2/d", "postgresql://u:p%40@[::1]:5/d"])
    def test_hosts_that_are_read(self, url: str) -> None:
        assert Address.of(url).url == f"{url}?target_session_attrs=read-write"

    @pytest.mark.parametrize("schema", ["", "Jobs", "pg_jobs", 'a"b', "1a", "a" * 64])
    def test_names_that_are_refused(self, schema: str) -> None:
        with pytest.raises(InvalidInput, match="schema="):
            connect(f"postgres://h/d?schema={schema}", SystemRuntime())

    def test_notify_is_on_or_off(self) -> None:
        with pytest.raises(InvalidInput, match="notify='maybe'"):
            connect("postgresql://h/d?notify=maybe", SystemRuntime())


async def test_the_schema_is_looked_at_applied_and_printed(url: str) -> None:
    """B3: and refused by a store that may not change it."""
    strict = PostgresStore(url, SystemRuntime(), allow_weaker_durability=True, migrate=False)
    with pytest.raises(SchemaMismatch, match="lacks 0001_first: run `ropewalk migrate`"):
        await strict.open()
    script = await strict.ddl()
    assert (await strict.schema()).missing == ["0001_first"]
    with psycopg.connect(Address.of(url).url, autocommit=True) as db:
        db.execute(script.encode())
    assert (await strict.migrate()).missing == []
    assert await strict.ddl() == ""
    await strict.open()
    await strict.close()


@pytest.mark.parametrize("encoding", ["EUC_JP", "LATIN1", "SQL_ASCII"])
async def test_a_database_that_cannot_hold_every_text_is_refused(url: str, encoding: str) -> None:
    database = f"in_{encoding.lower()}"
    execute(url, f"CREATE DATABASE {database} ENCODING '{encoding}' TEMPLATE template0 LOCALE 'C'")
    try:
        with pytest.raises(StoreRefused, match=f"{encoding}.*UTF8"):
            await tried(urlsplit(url)._replace(path=f"/{database}").geturl())
    finally:
        execute(url, f"DROP DATABASE {database} (FORCE)")


async def test_arrays_keep_their_nulls_whatever_the_database_says(url: str) -> None:
    name = urlsplit(url).path.strip("/")
    execute(url, f'ALTER DATABASE "{name}" SET array_nulls = off')
    async with App(url, jobs=[greet], allow_weaker_durability=True) as app:
        first = await app.enqueue(greet("one"), idempotency_key="k")
        second = await app.enqueue(greet("two"))
        assert set(await app.states([first.id, second.id])) == {first.id, second.id}
