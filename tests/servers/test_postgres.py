"""The launcher: a server answers, keeps what was committed, ends sessions, hands out databases that leak nothing."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest

from tests.servers.account import can_reach
from tests.servers.binaries import (
    INSTEAD_OF_NEWEST,
    OLDEST,
    WHEEL_TREES,
    Binaries,
    Lane,
    postgres_binaries,
    wheel_packages,
    within_reach,
)
from tests.servers.databases import (
    SessionsLeft,
    create_database,
    drop_database,
    fresh_database,
    fresh_schema,
    sessions,
    terminate,
)
from tests.servers.fixtures import StartPostgres
from tests.servers.home import ServerFailed
from tests.servers.postgres import Postgres, Settings


def value(dsn: str, statement: str) -> object:
    with psycopg.connect(dsn, autocommit=True) as connection:
        [answer] = connection.execute(statement).fetchone() or (None,)
        return answer


def test_the_lane_is_what_it_says(postgres: Postgres, postgres_lane: Lane) -> None:
    version = int(str(value(postgres.dsn(), "SHOW server_version_num"))) // 10_000
    named = os.environ.get(INSTEAD_OF_NEWEST)
    if postgres_lane == "oldest":
        assert version == OLDEST
    elif named:
        assert version == int(named)
    else:
        assert version >= 18


def test_tcp_and_socket_lead_to_the_same_server(postgres: Postgres) -> None:
    asked = "SELECT current_setting('port') || ' ' || (inet_server_port() IS NULL)"
    assert value(postgres.dsn(), asked) == f"{postgres.port} false"
    assert value(postgres.dsn(over="socket"), asked) == f"{postgres.port} true"


async def test_an_asynchronous_connection(postgres_database: str) -> None:
    async with await psycopg.AsyncConnection.connect(postgres_database) as connection:
        await connection.execute("CREATE TABLE note (body text)")
        await connection.execute("INSERT INTO note VALUES (%s)", ("héllo",))
        cursor = await connection.execute("SELECT body FROM note")
        assert await cursor.fetchone() == ("héllo",)


@pytest.mark.parametrize("durable", [True, False])
def test_durability_is_as_asked(start_postgres: StartPostgres, durable: bool) -> None:
    server = start_postgres(Settings(durable=durable, others={"work_mem": "7MB"}))
    names = ("fsync", "synchronous_commit", "full_page_writes")
    assert {value(server.dsn(), f"SHOW {name}") for name in names} == {"on" if durable else "off"}
    assert value(server.dsn(), "SHOW work_mem") == "7MB"


@pytest.mark.parametrize("how", ["fast", "immediate"])
def test_a_restart_keeps_what_was_committed_and_the_address(start_postgres: StartPostgres, how: str) -> None:
    server = start_postgres(Settings(durable=True))
    with psycopg.connect(server.dsn()) as connection:
        connection.execute("CREATE TABLE kept AS SELECT 1 AS number")
        connection.commit()
        connection.execute("INSERT INTO kept VALUES (2)")
        server.stop(how)  # type: ignore[arg-type]  # one of the two
        with pytest.raises(psycopg.OperationalError):
            connection.execute("SELECT 1")
    with pytest.raises(psycopg.OperationalError, match="refused"):
        psycopg.connect(server.dsn())
    server.start()
    assert value(server.dsn(), "SELECT sum(number) FROM kept") == 1
    recovered = "automatic recovery in progress" in (server.directory / "log").read_text()
    assert recovered is (how == "immediate")


def test_a_server_that_cannot_start_says_why_and_leaves_nothing() -> None:
    server = Postgres(postgres_binaries("newest"), Settings(others={"no_such_setting": "1"}))
    with pytest.raises(ServerFailed, match="unrecognized configuration parameter"), server:
        pass
    assert not server.directory.exists()


def test_a_session_is_terminated(postgres: Postgres, postgres_database: str) -> None:
    with psycopg.connect(postgres_database, autocommit=True) as victim:
        pid = victim.info.backend_pid
        assert pid in sessions(postgres, victim.info.dbname)
        assert terminate(postgres, pid)
        assert pid not in sessions(postgres, victim.info.dbname)
        assert not terminate(postgres, pid)
        with pytest.raises(psycopg.OperationalError):
            victim.execute("SELECT 1")


def test_a_database_is_a_copy_of_its_template(postgres: Postgres) -> None:
    template = create_database(postgres)
    with psycopg.connect(postgres.dsn(template)) as connection:
        connection.execute("CREATE TABLE seed AS SELECT 7 AS number")
    with fresh_database(postgres, template=template) as one, fresh_database(postgres, template=template) as other:
        with psycopg.connect(one) as connection:
            connection.execute("DELETE FROM seed")
        assert value(one, "SELECT count(*) FROM seed") == 0
        assert value(other, "SELECT number FROM seed") == 7
    drop_database(postgres, template)


def test_a_connection_left_open_is_an_error(postgres: Postgres) -> None:
    name = create_database(postgres)
    left = psycopg.connect(postgres.dsn(name))
    left.execute("SELECT 'forgotten'")
    with pytest.raises(SessionsLeft, match="forgotten"):
        drop_database(postgres, name)
    left.close()
    assert value(postgres.dsn(), f"SELECT count(*) FROM pg_database WHERE datname = '{name}'") == 0


@pytest.mark.parametrize("fresh", [fresh_database, fresh_schema])
def test_nothing_remains_of_a_test(postgres: Postgres, fresh: Callable[..., object]) -> None:
    everything = "SELECT (SELECT count(*) FROM pg_database) + (SELECT count(*) FROM pg_namespace)"
    before = value(postgres.dsn(), everything)
    with pytest.raises(ZeroDivisionError), fresh(postgres):  # type: ignore[attr-defined]  # a context manager
        raise ZeroDivisionError
    assert value(postgres.dsn(), everything) == before


def test_schemas_do_not_see_one_another(postgres: Postgres, postgres_schema: str) -> None:
    with psycopg.connect(postgres_schema) as connection:
        connection.execute("CREATE TABLE mine AS SELECT 1 AS number")
    assert value(postgres_schema, "SELECT number FROM mine") == 1
    with fresh_schema(postgres) as other, pytest.raises(psycopg.errors.UndefinedTable):
        value(other, "SELECT * FROM mine")


def test_binaries_under_a_closed_directory_are_copied_out(tmp_path: Path) -> None:
    """As in an environment that root made below its own home, with a strict umask."""
    packages = wheel_packages()
    closed = tmp_path / "site-packages"
    for tree in WHEEL_TREES:
        shutil.copytree(packages / tree, closed / tree, symlinks=True)
    (closed / WHEEL_TREES[0] / "postgres").chmod(0o700)
    closed.chmod(0o700)
    reached = within_reach(closed, WHEEL_TREES)
    assert (reached == closed) is (os.geteuid() != 0)
    assert can_reach(reached / WHEEL_TREES[0])
    with Postgres(Binaries(reached / WHEEL_TREES[0])) as server:
        assert value(server.dsn(), "SELECT 1") == 1
