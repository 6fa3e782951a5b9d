"""Opens connections. Every reason not to use the database is found here, before any job is accepted, and its error says
what to do."""

from __future__ import annotations

from typing import Final

from msgspec import Struct
from psycopg import errors
from psycopg.sql import SQL, Identifier

from ropewalk.backends.postgres.address import Address
from ropewalk.backends.postgres.durability import ServerSettings, settings_of
from ropewalk.backends.postgres.tx import Connection, Raw
from ropewalk.backends.postgres.wire.connection import WatchedConnection
from ropewalk.backends.sql.migrations import Compat, Migration, missing, read_migrations, refuse_outdated, state_of
from ropewalk.errors import SchemaMismatch, StoreRefused, WeakDurability
from ropewalk.ports.store.migrations import SchemaState

VERSION_MIN: Final = 14
CONNECT_SECONDS_MAX: Final = 10
PREPARED_MAX: Final = 1000
PREPARED_ONLY_WHERE_ASKED: Final = 1 << 62
"""With this threshold, the driver itself never prepares a statement."""

_MIGRATIONS: Final = read_migrations("ropewalk.backends.postgres")
_MIGRATING: Final = 0x726F7065
"""The key ('rope') of the advisory lock that a process holds while it changes a schema."""
_CREATE_MIGRATION: Final = b"""
CREATE TABLE IF NOT EXISTS migration (version integer PRIMARY KEY, name text NOT NULL, compat text NOT NULL)
"""
_SESSION: Final = b"""
SELECT current_setting('server_version_num')::integer / 10000, pg_backend_pid(), current_setting('server_encoding')
"""


class Opened(Struct, frozen=True):
    """A connection, and the settings of its session."""

    db: WatchedConnection
    settings: ServerSettings
    """They may permit that acknowledged jobs are lost, if the app allows that."""


class TooWeakSettings(WeakDurability):
    """Under the settings of the server, acknowledged jobs may be lost."""

    def __init__(self, message: str, settings: ServerSettings) -> None:
        super().__init__(message)
        self.settings = settings


def connect(address: Address) -> WatchedConnection:
    """Returns a connection without a transaction. ropewalk begins every transaction itself, and nothing outlives it."""
    db = WatchedConnection.connect(
        address.url,
        autocommit=True,
        prepare_threshold=None,
        client_encoding="UTF8",
        connect_timeout=CONNECT_SECONDS_MAX,
        fallback_application_name="ropewalk",
        keepalives_idle=10,  # A server that has disappeared is noticed within half a minute.
        keepalives_interval=5,
        keepalives_count=3,
        tcp_user_timeout=30_000,
    )
    db.adapters.register_loader("json", Raw)
    return db


def open_store(address: Address, *, allow_weaker_durability: bool, migrate: bool = True) -> Opened:
    """Returns a connection to a server that is durable and has this release's schema.

    With `migrate=False`, a schema that would have to be created or changed is refused.
    """
    db = connect(address)
    try:
        opened = _checked(db, address, allow_weaker_durability=allow_weaker_durability)
        if migrate:
            _migrate(db, address)
        else:
            refuse_outdated(_MIGRATIONS, _applied(db, address), _place(address))
    except BaseException:
        db.close()
        raise
    return opened


def schema_of(address: Address) -> SchemaState:
    """Returns which migrations are applied and which are missing."""
    with connect(address) as db:
        return state_of(_MIGRATIONS, _applied(db, address), _place(address))


def migrated(address: Address) -> SchemaState:
    """Applies the missing migrations. Returns the state before."""
    with connect(address) as db:
        before = state_of(_MIGRATIONS, _applied(db, address), _place(address))
        _migrate(db, address)
        return before


def ddl_of(address: Address) -> str:
    """Returns the missing migrations as a script for psql."""
    with connect(address) as db:
        lacking = _missing(db, address)
        schema = Identifier(address.schema).as_string(db)
    if not lacking:
        return ""
    lines = ["BEGIN;", f"CREATE SCHEMA IF NOT EXISTS {schema};", f"SET LOCAL search_path TO {schema}, pg_temp;"]
    lines.append(f"{_CREATE_MIGRATION.decode().strip()};")
    for migration in lacking:
        row = f"({migration.version}, '{migration.name}', '{migration.compat}')"
        lines += [f"-- {migration.title}", f"INSERT INTO migration (version, name, compat) VALUES {row};"]  # noqa: S608  ours
        lines += [f"{statement};" for statement in migration.statements]
    return "\n".join([*lines, "COMMIT;", ""])


def _checked(db: WatchedConnection, address: Address, *, allow_weaker_durability: bool) -> Opened:
    found = db.execute(_SESSION).fetchone()
    assert found is not None
    version, backend_pid, encoding = found
    if version < VERSION_MIN:
        raise StoreRefused(f"{address.shown} is PostgreSQL {version}: ropewalk needs {VERSION_MIN} or newer")
    if encoding != "UTF8":
        raise StoreRefused(
            f"{address.shown} has the encoding {encoding}, which cannot hold every text: give a database that was "
            "created with ENCODING 'UTF8'"
        )
    settings = settings_of(db)
    if settings.weakness is not None and not allow_weaker_durability:
        raise TooWeakSettings(
            f"{address.shown} could lose acknowledged jobs: {settings.weakness}. Change that, or pass "
            "allow_weaker_durability=True if that is acceptable",
            settings,
        )
    if backend_pid == db.info.backend_pid:  # There is no pooler, which might give every transaction another session.
        db.prepare_threshold = PREPARED_ONLY_WHERE_ASKED
        db.prepared_max = PREPARED_MAX
    return Opened(db, settings)


def _migrate(db: WatchedConnection, address: Address) -> None:
    """Applies the missing migrations in one transaction. A second process that tries at the same time waits, and finds
    them done."""
    if not _missing(db, address):
        return
    db.silence_seconds_max = None  # Changing a large table takes time.
    with db.transaction():
        db.execute(b"SELECT pg_advisory_xact_lock(%s)", (_MIGRATING,))
        pending = _missing(db, address)
        if not pending:
            return
        schema = Identifier(address.schema)
        if not _schema_exists(db, address):
            db.execute(SQL("CREATE SCHEMA {}").format(schema))
        db.execute(SQL("SET LOCAL search_path TO {}, pg_temp").format(schema))
        db.execute(_CREATE_MIGRATION)
        for migration in pending:
            _apply(db, migration)


def _missing(db: Connection, address: Address) -> list[Migration]:
    return missing(_MIGRATIONS, _applied(db, address), _place(address))


def _place(address: Address) -> str:
    return f"schema {address.schema} of {address.shown}"


def _applied(db: Connection, address: Address) -> dict[int, Compat]:
    tables = _tables(db, address)
    if "migration" not in tables:
        if "job" in tables or "lane" in tables:
            raise _not_ours(address)
        return {}
    applied = SQL("SELECT version, compat FROM {}.migration").format(Identifier(address.schema))
    try:
        return {version: compat for version, compat in db.execute(applied).fetchall()}  # noqa: C416  typed by its keys
    except errors.UndefinedColumn:
        raise _not_ours(address) from None


def _tables(db: Connection, address: Address) -> set[str]:
    asked = b"SELECT tablename FROM pg_tables WHERE schemaname = %s"
    return {name for (name,) in db.execute(asked, (address.schema,)).fetchall()}


def _schema_exists(db: Connection, address: Address) -> bool:
    asked = b"SELECT 1 FROM pg_namespace WHERE nspname = %s"
    return db.execute(asked, (address.schema,)).fetchone() is not None


def _not_ours(address: Address) -> SchemaMismatch:
    return SchemaMismatch(
        f"schema {address.schema} of {address.shown} holds tables of another program: name another one with ?schema=, "
        "it will be created"
    )


def _apply(db: Connection, migration: Migration) -> None:
    row = (migration.version, migration.name, migration.compat)
    db.execute(b"INSERT INTO migration (version, name, compat) VALUES (%s, %s, %s)", row)
    for statement in migration.statements:
        db.execute(statement.encode())
