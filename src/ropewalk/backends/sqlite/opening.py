"""Opens the file. Every reason not to use it is found here, before any job is accepted, and its error says what to
do."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from msgspec import Struct

from ropewalk.backends.sql.migrations import Compat, Migration, missing, read_migrations, refuse_outdated, state_of
from ropewalk.backends.sqlite.filesystem import network_type
from ropewalk.backends.sqlite.library import LockWait, is_busy, sqlite, warn_about_library
from ropewalk.errors import InvalidInput, SchemaMismatch, StoreUnavailable, WeakDurability
from ropewalk.ports.store.migrations import SchemaState

APPLICATION_ID: Final = 0x726F7065
"""The header of every file of ropewalk contains this id ('rope')."""
WAL_BYTES_KEPT: Final = 16 * 1024 * 1024
"""SQLite truncates a larger log to this size when it begins the log anew."""

_SETTINGS: Final = (
    "PRAGMA synchronous = FULL",
    "PRAGMA fullfsync = ON",  # macOS: fsync alone does not reach the platter
    "PRAGMA checkpoint_fullfsync = ON",
    "PRAGMA wal_autocheckpoint = 0",  # see checkpoint.py
    f"PRAGMA journal_size_limit = {WAL_BYTES_KEPT}",
    "PRAGMA cache_size = -16000",
    "PRAGMA temp_store = MEMORY",
    "PRAGMA trusted_schema = OFF",
)
INCREMENTAL: Final = 2
"""This value of `PRAGMA auto_vacuum` lets `checkpoint.give_space_back` shrink the file."""
STEP_SECONDS: Final = 0.02
"""While another process holds the file locked, `migrate` tries again after this time."""
_MIGRATIONS: Final = read_migrations("ropewalk.backends.sqlite")
_CREATE_MIGRATION: Final = """
CREATE TABLE IF NOT EXISTS migration (version INTEGER PRIMARY KEY, name TEXT NOT NULL, compat TEXT NOT NULL)
"""


class Opened(Struct, frozen=True):
    """A connection that may write, and what its file does not survive."""

    db: sqlite.Connection
    weakness: str | None
    """Why an acknowledged job may not survive a power loss, if the app allows that; None if it survives."""


def open_writer(path: Path, *, allow_weaker_durability: bool, migrate: bool = True) -> Opened:
    """Returns a connection that may write, to a file that belongs to ropewalk, is durable and has this release's
    schema.

    With `migrate=False`, a file that would have to be created or changed is refused.
    """
    warn_about_library()
    _check_path(path)
    weakness = _network(path)
    _refuse(weakness, path, allowed=allow_weaker_durability)
    if not migrate:
        refuse_outdated(_MIGRATIONS, applied_to(path), str(path))
    db = _connect(path)
    try:
        _check_owner(db, path)
        weakness = weakness or _write_ahead(db)
        _refuse(weakness, path, allowed=allow_weaker_durability)
        for setting in _SETTINGS:
            db.execute(setting)
        _migrate(db, path)
    except BaseException:
        db.close()
        raise
    return Opened(db, weakness)


def migrate(path: Path) -> None:
    """Creates the file, or brings its schema up to date. Waits while another process does that, or writes."""
    wait = LockWait()
    while True:
        try:
            open_writer(path, allow_weaker_durability=True).db.close()
        except sqlite.Error as error:
            if not is_busy(error) or wait.over:
                raise
        else:
            return
        wait.step(STEP_SECONDS)


def open_reader(path: Path) -> sqlite.Connection:
    """Returns a connection that cannot write. It waits by itself in the rare cases in which a reader has to."""
    db = _connect(path)
    db.execute("PRAGMA busy_timeout = 5000")
    db.execute("PRAGMA cache_size = -16000")
    db.execute("PRAGMA query_only = ON")
    return db


def applied_to(path: Path) -> dict[int, Compat]:
    """Returns the migrations that are applied to the file. Creates and changes nothing."""
    _refuse_directory(path)
    if not path.exists():
        return {}
    _refuse_unwritable(path)
    db = sqlite.connect(f"{path.as_uri()}?mode=ro", uri=True, isolation_level=None)
    try:
        _check_owner(db, path)
        return _applied(db, path)
    finally:
        db.close()


def schema_of(path: Path) -> SchemaState:
    """Returns which migrations are applied and which are missing."""
    return state_of(_MIGRATIONS, applied_to(path), str(path))


def ddl_of(path: Path) -> str:
    """Returns the missing migrations as a script for the sqlite3 command line."""
    lacking = missing(_MIGRATIONS, applied_to(path), str(path))
    if not lacking:
        return ""
    lines = ["BEGIN IMMEDIATE;", f"PRAGMA application_id = {APPLICATION_ID};", f"{_CREATE_MIGRATION.strip()};"]
    for migration in lacking:
        row = f"({migration.version}, '{migration.name}', '{migration.compat}')"
        lines += [f"-- {migration.title}", f"INSERT INTO migration (version, name, compat) VALUES {row};"]  # noqa: S608  ours
        lines += [f"{statement};" for statement in migration.statements]
    return "\n".join([*lines, "COMMIT;", ""])


def open_for_user(path: Path, *, wait_ms: int) -> sqlite.Connection:
    """Returns a connection for the statements of a user, to a file that the writer has opened already. It is as durable
    as the writer's."""
    db = _connect(path)
    for setting in (f"PRAGMA busy_timeout = {wait_ms}", *_SETTINGS):
        db.execute(setting)
    return db


def check_user_connection(db: sqlite.Connection, path: Path) -> None:
    """Raises SchemaMismatch if the file does not have this release's schema. Nothing can be created or changed here,
    because the user's connection may be in a transaction."""
    [application] = db.execute("PRAGMA main.application_id").fetchone()
    if application != APPLICATION_ID or missing(_MIGRATIONS, _applied(db, path), str(path)):
        raise SchemaMismatch(
            f"{path} is not ready for jobs: open the app before the transaction begins (`async with app:`), or run "
            "`ropewalk migrate`"
        )


def _connect(path: Path) -> sqlite.Connection:
    # ropewalk begins every transaction itself, and another thread may close the connection before a fork.
    return sqlite.connect(path, timeout=0, isolation_level=None, check_same_thread=False, cached_statements=256)


def _refuse_directory(path: Path) -> None:
    if path.is_dir():
        raise InvalidInput(
            f"{path} is a directory: give the path of a file in it, e.g. {path / 'jobs.db'}", field="path"
        )


def _check_path(path: Path) -> None:
    _refuse_directory(path)
    if not path.parent.is_dir():
        raise InvalidInput(
            f"the directory {path.parent} does not exist: create it, or give another path than {path}", field="path"
        )
    _refuse_unwritable(path)


def _refuse_unwritable(path: Path) -> None:
    """Even a reader of a WAL file writes beside the file, so the directory must be writable, too."""
    for place in (path, path.parent):
        if place.exists() and not os.access(place, os.W_OK):
            raise StoreUnavailable(
                f"{place} is not writable for this user: change its permissions (or mount its file system writable), "
                "or use another path"
            )


def _network(path: Path) -> str | None:
    kind = network_type(path)
    return None if kind is None else f"it lies on a network file system ({kind}), where SQLite's locks do not hold"


def _write_ahead(db: sqlite.Connection) -> str | None:
    if db.execute("PRAGMA auto_vacuum").fetchone() != (INCREMENTAL,):
        db.execute("PRAGMA auto_vacuum = INCREMENTAL")  # This takes effect only in a new file.
    [mode] = db.execute("PRAGMA journal_mode = WAL").fetchone()
    return None if mode == "wal" else f"no write-ahead log is possible there (journal_mode stays {mode!r})"


def _refuse(weakness: str | None, path: Path, *, allowed: bool) -> None:
    if weakness is not None and not allowed:
        raise WeakDurability(
            f"{path} could lose acknowledged jobs: {weakness}. Use a local disk or another store, or pass "
            "allow_weaker_durability=True if that is acceptable"
        )


def _check_owner(db: sqlite.Connection, path: Path) -> None:
    """Raises SchemaMismatch unless the file belongs to ropewalk, or is new and empty."""
    db.execute("BEGIN")  # Both are read on one view, because another process may be creating the file at this moment.
    try:
        [tables] = db.execute("SELECT count(*) FROM sqlite_master").fetchone()
        [application] = db.execute("PRAGMA application_id").fetchone()
    finally:
        if db.in_transaction:  # An error of the disk may have ended it, and the caller has to see that error.
            db.execute("ROLLBACK")
    if application != APPLICATION_ID and (application != 0 or tables > 0):
        raise SchemaMismatch(
            f"{path} is a database of another program (application_id={application:#x}, {tables} tables): "
            "give the path of another file, it will be created"
        )


def _migrate(db: sqlite.Connection, path: Path) -> None:
    """Applies the missing migrations in one transaction. A second process that tries at the same time finds them
    done."""
    if not missing(_MIGRATIONS, _applied(db, path), str(path)):
        return
    db.execute("BEGIN IMMEDIATE")
    try:
        db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        db.execute(_CREATE_MIGRATION)
        for migration in missing(_MIGRATIONS, _applied(db, path), str(path)):
            _apply(db, migration)
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise


def _applied(db: sqlite.Connection, path: Path) -> dict[int, Compat]:
    [known, lanes] = db.execute(
        "SELECT count(*) FILTER (WHERE name = 'migration'), count(*) FILTER (WHERE name = 'lane') FROM sqlite_master"
    ).fetchone()
    if not known:
        if lanes:
            raise SchemaMismatch(
                f"{path} has lost its table of migrations: something else than ropewalk changed it; restore it from a "
                "backup, or give the path of another file"
            )
        return {}
    return dict(db.execute("SELECT version, compat FROM migration").fetchall())


def _apply(db: sqlite.Connection, migration: Migration) -> None:
    # The version is written first: if two processes ever got past the lock, the second one would fail here, and not
    # halfway.
    row = (migration.version, migration.name, migration.compat)
    db.execute("INSERT INTO migration (version, name, compat) VALUES (?, ?, ?)", row)
    for statement in migration.statements:
        db.execute(statement)
