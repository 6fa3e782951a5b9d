"""PgBouncer in transaction mode: what a client sets for its session is somebody else's a transaction later."""

from __future__ import annotations

import subprocess
from pathlib import Path

import psycopg
import pytest

from tests.servers import debian
from tests.servers.binaries import pgbouncer_binaries
from tests.servers.debian import PackageMissing, unpacked
from tests.servers.fixtures import StartPgBouncer
from tests.servers.home import ServerFailed
from tests.servers.pgbouncer import CONSOLE, PgBouncer
from tests.servers.postgres import Postgres

pytestmark = pytest.mark.system


def through(pooler: PgBouncer) -> psycopg.Connection[tuple[object, ...]]:
    """Prepared statements live in a session, so there are none."""
    return psycopg.connect(pooler.dsn(), autocommit=True, prepare_threshold=None)


def backend(connection: psycopg.Connection[tuple[object, ...]]) -> object:
    return connection.execute("SELECT pg_backend_pid()").fetchone()


def test_a_session_lasts_a_transaction(postgres: Postgres, start_pgbouncer: StartPgBouncer) -> None:
    pooler = start_pgbouncer(postgres)
    with through(pooler) as one, through(pooler) as other:
        one.execute("SET statement_timeout = '77s'")
        one.execute("SELECT pg_advisory_lock(4711)")
        first = backend(one)
        with other.transaction():
            assert backend(other) == first, "the session of the one serves the other between transactions"
            assert other.execute("SHOW statement_timeout").fetchone() == ("77s",)
            assert backend(one) != first
            assert one.execute("SHOW statement_timeout").fetchone() == ("0",), "what it set is not what it has"
        other.execute("SELECT pg_advisory_unlock_all()")


def test_it_is_in_transaction_mode(postgres: Postgres, start_pgbouncer: StartPgBouncer) -> None:
    pooler = start_pgbouncer(postgres)
    with psycopg.connect(pooler.dsn(CONSOLE), autocommit=True, prepare_threshold=None) as console:
        settings = {row[0]: row[1] for row in console.execute("SHOW CONFIG").fetchall()}
    assert settings["pool_mode"] == "transaction"


def test_a_pooler_that_cannot_start_says_why(postgres: Postgres) -> None:
    pooler = PgBouncer(pgbouncer_binaries(), postgres)
    pooler.port = postgres.port
    with pytest.raises(ServerFailed, match="did not start"), pooler:
        pass


def test_a_package_is_fetched_into_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(debian, "CACHE", tmp_path / "servers")
    root = unpacked("pgbouncer")
    assert [path.name for path in (tmp_path / "servers").iterdir()] == ["pgbouncer"]
    libraries = ":".join(str(place) for place in root.glob("usr/lib/*-linux-*"))
    told = subprocess.run(
        [root / "usr/sbin/pgbouncer", "--version"], env={"LD_LIBRARY_PATH": libraries}, capture_output=True, check=True
    )
    assert told.stdout.startswith(b"PgBouncer 1.")


def test_a_package_that_cannot_be_had_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(debian, "CACHE", tmp_path / "servers")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(PackageMissing, match="apt-get install pgbouncer"):
        unpacked("pgbouncer")
    assert list((tmp_path / "servers").iterdir()) == []
