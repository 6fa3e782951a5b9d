"""What a test asks of a running server: a database or schema of its own, and an end to somebody's session.

A connection per call, closed at once: whatever is stopped or restarted in between, there is nothing to mend.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, LiteralString
from urllib.parse import quote

import psycopg
import psycopg.conninfo
from psycopg.errors import ObjectInUse
from psycopg.sql import SQL, Identifier

from tests.servers.postgres import Postgres

TERMINATE_MS_MAX: Final = 5_000


class SessionsLeft(AssertionError):
    """A test is over and its database still has visitors."""


@contextmanager
def fresh_database(server: Postgres, *, template: str = "template1") -> Iterator[str]:
    """The DSN of a database that exists within the context. Connections left open in it are an error."""
    name = create_database(server, template=template)
    try:
        yield server.dsn(name)
    finally:
        drop_database(server, name)


@contextmanager
def fresh_schema(server: Postgres, *, database: str = "postgres") -> Iterator[str]:
    """The DSN of an empty schema in a shared database: cheaper than a database, but sessions left are not noticed,
    and a pooler refuses the search path in the DSN.
    """
    name = _new_name()
    _execute(server, "CREATE SCHEMA {}", name, database=database)
    try:
        yield f"{server.dsn(database)}?options={quote(f'-csearch_path={name}')}"
    finally:
        _execute(server, "DROP SCHEMA {} CASCADE", name, database=database)


def create_database(server: Postgres, name: str | None = None, *, template: str = "template1") -> str:
    """A copy of the template, to which nobody may be connected; its name, by default a new one."""
    name = name or _new_name()
    _execute(server, "CREATE DATABASE {} TEMPLATE {}", name, template)
    return name


def drop_database(server: Postgres, name: str) -> None:
    """PostgreSQL gives sessions under way out five seconds; those that stay are named, and thrown out."""
    try:
        _execute(server, "DROP DATABASE {}", name)
    except ObjectInUse:
        left = sessions(server, name)
        _execute(server, "DROP DATABASE {} WITH (FORCE)", name)
        raise SessionsLeft(f"connections to {name} left open, with their last statements: {left}") from None


def sessions(server: Postgres, database: str) -> dict[int, str]:
    """Client sessions by pid, each with its last statement."""
    with psycopg.connect(server.dsn(), autocommit=True) as connection:
        asked = "SELECT pid, query FROM pg_stat_activity WHERE datname = %s AND backend_type = 'client backend'"
        return dict(connection.execute(asked, (database,)).fetchall())


def waiting_for_a_lock(server: Postgres, dsn: str) -> bool:
    """Whether a session on that database waits for another one."""
    asked = "SELECT 1 FROM pg_stat_activity WHERE datname = %s AND wait_event_type = 'Lock'"
    with psycopg.connect(server.dsn(), autocommit=True) as connection:
        return connection.execute(asked, (psycopg.conninfo.conninfo_to_dict(dsn)["dbname"],)).fetchone() is not None


def terminate(server: Postgres, pid: int) -> bool:
    """End a session as an operator would; returns when it is gone. Whether there was one."""
    with psycopg.connect(server.dsn(), autocommit=True) as connection:
        answer = connection.execute(
            "SELECT pg_terminate_backend(pid, %s) FROM pg_stat_activity WHERE pid = %s", (TERMINATE_MS_MAX, pid)
        ).fetchone()
    return answer is not None and bool(answer[0])


def _execute(server: Postgres, statement: LiteralString, *names: str, database: str = "postgres") -> None:
    with psycopg.connect(server.dsn(database), autocommit=True) as connection:
        connection.execute(SQL(statement).format(*map(Identifier, names)))


def _new_name() -> str:
    return f"test_{secrets.token_hex(6)}"
