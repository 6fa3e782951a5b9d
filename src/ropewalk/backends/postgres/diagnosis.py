"""Collects the facts about the server, on a connection of its own, so that nothing waits for it. Nothing is changed."""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct

from ropewalk.backends.postgres.address import Address
from ropewalk.backends.postgres.opening import connect
from ropewalk.backends.postgres.tx import Connection
from ropewalk.domain.time import Instant, Span

SETTINGS: Final = (
    *("fsync", "full_page_writes", "synchronous_commit", "synchronous_standby_names", "wal_level"),
    *("default_transaction_isolation", "autovacuum"),
)
HOT: Final = ("submitted", "waiting", "ready", "running", "finished", "worker")
SHOWN_MAX: Final = 5
SECONDS_MAX: Final = 20.0

_SERVER: Final = b"""
SELECT
    current_setting('server_version'), pg_is_in_recovery(), pg_backend_pid(),
    (SELECT rolsuper FROM pg_roles WHERE rolname = current_user) OR pg_has_role('pg_read_all_stats', 'USAGE'),
    (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'),
    current_setting('max_connections')::integer - current_setting('superuser_reserved_connections')::integer,
    (SELECT age(datfrozenxid) FROM pg_database WHERE datname = current_database()),
    current_setting('autovacuum_freeze_max_age')::integer
"""
_TRANSACTIONS: Final = b"""
SELECT pid, who, idle, (extract(epoch FROM clock_timestamp() - since) * 1000000)::bigint FROM (
    SELECT pid, application_name AS who, state LIKE 'idle in transaction%%' AS idle, xact_start AS since
    FROM pg_stat_activity
    WHERE datname = current_database() AND xact_start IS NOT NULL AND pid <> pg_backend_pid() AND
        backend_type = 'client backend'
    UNION ALL
    SELECT 0, gid, true, prepared FROM pg_prepared_xacts WHERE database = current_database()
) AS open
ORDER BY since
LIMIT %s
"""
_LOCK_WAITS: Final = b"""
SELECT
    pid, (extract(epoch FROM clock_timestamp() - coalesce(state_change, query_start)) * 1000000)::bigint,
    pg_blocking_pids(pid)
FROM pg_stat_activity
WHERE datname = current_database() AND wait_event_type = 'Lock'
ORDER BY 2 DESC
LIMIT %s
"""
_TABLES: Final = b"""
SELECT
    relname, n_live_tup, n_dead_tup, pg_total_relation_size(relid),
    (extract(epoch FROM greatest(last_vacuum, last_autovacuum)) * 1000000)::bigint
FROM pg_stat_all_tables
WHERE schemaname = %s AND relname = ANY (%s)
ORDER BY relname
"""
_RIGHTS: Final = b"""
SELECT needed || ' on ' || tablename
FROM pg_tables
CROSS JOIN unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE']) AS needed
WHERE schemaname = %s AND NOT has_table_privilege(quote_ident(schemaname) || '.' || quote_ident(tablename), needed)
ORDER BY tablename, needed
"""


class OpenTransaction(Struct, frozen=True, kw_only=True):
    """An open transaction of the database."""

    pid: int
    """The process of the session; 0 for a prepared transaction, which has none."""
    who: str
    """The name of the application, or of the prepared transaction."""
    idle: bool
    """Whether no statement runs in it."""
    age_us: Span


class LockWait(Struct, frozen=True, kw_only=True):
    """A session that waits for a lock."""

    pid: int
    waits_us: Span
    blocked_by: list[int]


class TableFacts(Struct, frozen=True, kw_only=True):
    """The size of a table, and when it was last vacuumed."""

    name: str
    live: int
    dead: int
    total_bytes: int
    vacuumed_at: Instant | None


class PostgresFacts(Struct, frozen=True, kw_only=True):
    """The facts about a server and about the role that this process has there. findings.py derives findings from
    them."""

    version: str
    schema: str
    settings: dict[str, str]
    """The settings of the session: fsync, full_page_writes, synchronous_commit, synchronous_standby_names, wal_level,
    default_transaction_isolation, autovacuum."""
    in_recovery: bool
    pooled: bool
    """Whether a pooler is between this process and the server."""
    notify: bool
    """Whether processes send one another hints."""
    rights_missing: list[str]
    sees_all_sessions: bool
    connections: int
    connections_max: int
    """This does not include the connections that are reserved for administrators."""
    transactions: list[OpenTransaction]
    """The oldest open transactions of this database, the oldest first."""
    lock_waits: list[LockWait]
    """The sessions that have waited longest for a lock, the longest wait first."""
    tables: list[TableFacts]
    """The tables that change with every job."""
    oldest_xid_age: int
    """The number of transactions since this database was last frozen."""
    freeze_at_age: int


def facts(address: Address) -> PostgresFacts:
    """Reads all facts."""
    with connect(address) as db:
        db.silence_seconds_max = SECONDS_MAX
        version, in_recovery, backend_pid, sees_all, connections, connections_max, xid_age, freeze_at = _row(
            db, _SERVER
        )
        return PostgresFacts(
            version=version,
            schema=address.schema,
            settings={name: _row(db, b"SELECT current_setting(%s)", name)[0] for name in SETTINGS},
            in_recovery=in_recovery,
            pooled=backend_pid != db.info.backend_pid,
            notify=address.notify,
            rights_missing=[needed for (needed,) in db.execute(_RIGHTS, (address.schema,)).fetchall()],
            sees_all_sessions=sees_all,
            connections=connections,
            connections_max=connections_max,
            transactions=[_transaction(*each) for each in db.execute(_TRANSACTIONS, (SHOWN_MAX,)).fetchall()],
            lock_waits=[_lock_wait(*each) for each in db.execute(_LOCK_WAITS, (SHOWN_MAX,)).fetchall()],
            tables=[_table(*each) for each in db.execute(_TABLES, (address.schema, list(HOT))).fetchall()],
            oldest_xid_age=xid_age,
            freeze_at_age=freeze_at,
        )


def _row(db: Connection, sql: bytes, *values: str) -> tuple[Any, ...]:
    found = db.execute(sql, values).fetchone()
    assert found is not None
    return found


def _transaction(pid: int, who: str, idle: bool, age_us: Span) -> OpenTransaction:  # noqa: FBT001 # a column
    return OpenTransaction(pid=pid, who=who, idle=idle, age_us=max(0, age_us))


def _lock_wait(pid: int, waits_us: Span, blocked_by: list[int]) -> LockWait:
    return LockWait(pid=pid, waits_us=waits_us, blocked_by=blocked_by)


def _table(name: str, live: int, dead: int, total_bytes: int, vacuumed_at: Instant | None) -> TableFacts:
    return TableFacts(name=name, live=live, dead=dead, total_bytes=total_bytes, vacuumed_at=vacuumed_at)
