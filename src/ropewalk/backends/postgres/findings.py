"""Derives findings from the facts about a PostgreSQL server, with one rule for each concern.

The rules concern the durability of the server, the rights of the role, open transactions and locks, tables that vacuum
does not keep up with, and what is between this process and the server.
"""

from __future__ import annotations

from typing import Final

from ropewalk.backends.postgres.diagnosis import OpenTransaction, PostgresFacts, TableFacts
from ropewalk.domain.time import MINUTE, SECOND, Instant, Span
from ropewalk.ports.store.core import Durability
from ropewalk.ports.store.diagnosis import Examination, Work
from ropewalk.ports.store.findings import Finding, bad, lasting, named, note, number_of, ok, sized, warn

KEPT: Final = {"fsync": ("on",), "full_page_writes": ("on",), "synchronous_commit": ("on", "remote_apply")}
OLD: Final[Span] = 5 * MINUTE
IDLE_LONG: Final[Span] = 30 * SECOND
LOCKED_LONG: Final[Span] = 5 * SECOND
CONNECTIONS_NEAR: Final = 0.9


def examination(facts: PostgresFacts, level: Durability, now: Instant, work: Work) -> Examination:
    """Returns the answer of the store when it is examined. `level` is what it promises at this moment."""
    return Examination(
        now=now,
        work=work,
        findings=[
            *durability(facts, level),
            *server(facts),
            *rights(facts),
            *connections(facts),
            *transactions(facts),
            *locks(facts),
            *vacuum(facts, now),
            *bloat(facts),
            *wraparound(facts),
            *pooler(facts),
        ],
        wake_ups=None if facts.notify else WAKE_UPS_TURNED_OFF,
        lost_hint_advice=LISTEN_NEEDS_THE_SERVER if facts.pooled else None,
    )


def durability(facts: PostgresFacts, level: Durability) -> list[Finding]:
    """Says what an acknowledged job survives."""
    if facts.in_recovery:
        return [
            bad(
                "durability",
                "this server is a standby: it takes no writes",
                "name the primary in the URL, or several hosts; target_session_attrs=read-write finds the primary",
            )
        ]
    weak = [f"{name} is {facts.settings[name]!r}" for name, kept in KEPT.items() if facts.settings[name] not in kept]
    if weak:
        return [
            bad(
                "durability",
                f"a crash of the server may lose acknowledged jobs: {', '.join(weak)}",
                "set them to 'on' for this server, database and role (ALTER SYSTEM, ALTER DATABASE, ALTER ROLE)",
            )
        ]
    if level is Durability.D1:
        return [
            warn(
                "durability",
                f"new sessions keep what they acknowledge, but of the app that asks, an acknowledged job {level}",
                "its connections were made, or refused, under weaker settings: restart it",
            )
        ]
    return [ok("durability", f"fsync, full_page_writes and synchronous_commit are on: an acknowledged job {level}")]


def server(facts: PostgresFacts) -> list[Finding]:
    isolation = facts.settings["default_transaction_isolation"]
    if isolation != "read committed":
        return [
            note(
                "server",
                f"PostgreSQL {facts.version}; default_transaction_isolation is {isolation!r}",
                "ropewalk sets its own; with `connection=` yours applies, and two who meet may have to try again",
            )
        ]
    return [ok("server", f"PostgreSQL {facts.version}, wal_level {facts.settings['wal_level']}")]


def rights(facts: PostgresFacts) -> list[Finding]:
    findings: list[Finding] = []
    if facts.rights_missing:
        findings.append(
            bad(
                "rights",
                f"this role lacks {named(facts.rights_missing)}",
                f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {facts.schema} TO it",
            )
        )
    if not facts.sees_all_sessions:
        findings.append(
            note(
                "rights",
                "this role does not see other roles' sessions: what they hold open is not looked at here",
                "GRANT pg_read_all_stats TO it, or run the doctor as a role that has it",
            )
        )
    return findings or [ok("rights", "this role may do all it needs, and sees every session")]


def connections(facts: PostgresFacts) -> list[Finding]:
    used, most = facts.connections, facts.connections_max
    found = f"{used} of {most} connections are taken"
    if used >= CONNECTIONS_NEAR * most:
        return [
            warn(
                "connections",
                found,
                "raise max_connections, or put a pooler between; a worker needs up to 6, a client as many",
            )
        ]
    return [ok("connections", found)]


def transactions(facts: PostgresFacts) -> list[Finding]:
    """Warns about transactions that are open for long: they keep vacuum from removing rows, and others from the rows
    they have locked."""
    idle = [each for each in facts.transactions if each.idle and each.age_us >= IDLE_LONG]
    old = [each for each in facts.transactions if not each.idle and each.age_us >= OLD]
    findings: list[Finding] = []
    if idle:
        findings.append(
            warn(
                "transactions",
                f"{number_of(len(idle), 'transaction')} open and idle: {named([_who(each) for each in idle])}",
                "commit or roll back in that program, or end it: SELECT pg_terminate_backend(pid); "
                "idle_in_transaction_session_timeout ends them by itself",
            )
        )
    if old:
        findings.append(
            warn(
                "transactions",
                f"{number_of(len(old), 'transaction')} at work for long: {named([_who(each) for each in old])}",
                "while it lasts, vacuum cleans nothing: make it shorter, or let it read from a standby",
            )
        )
    return findings or [ok("transactions", "none is open for long")]


def locks(facts: PostgresFacts) -> list[Finding]:
    long = [each for each in facts.lock_waits if each.waits_us >= LOCKED_LONG]
    if not long:
        return [ok("locks", "nobody waits long for a lock")]
    first = long[0]
    blocking = named([str(pid) for pid in first.blocked_by]) or "unknown"
    return [
        warn(
            "locks",
            f"{number_of(len(long), 'session')} held up by locks, pid {first.pid} for {lasting(first.waits_us)}, by "
            f"pid {blocking}",
            "see what that session does in pg_stat_activity; SELECT pg_terminate_backend(pid) ends it",
        )
    ]


def _who(transaction: OpenTransaction) -> str:
    named_as = f" ({transaction.who})" if transaction.who else ""
    if transaction.pid == 0:
        return f"prepared{named_as} for {lasting(transaction.age_us)}: ROLLBACK PREPARED"
    return f"pid {transaction.pid}{named_as} for {lasting(transaction.age_us)}"


DEAD_MANY: Final = 50_000
"""Autovacuum of the tables that change with every job begins at 5 000 dead rows and a fiftieth of the live ones."""
BLOATED_BYTES: Final = 256 * 1024**2
ROW_BYTES_MAX: Final = 4096
"""This includes indexes. Large values are mostly stored outside of the table."""
FREEZE_OVERDUE: Final = 2.0


def vacuum(facts: PostgresFacts, now: Instant) -> list[Finding]:
    findings: list[Finding] = []
    if facts.settings["autovacuum"] != "on":
        findings.append(
            warn("vacuum", "autovacuum is off", "turn it on: a queue leaves a dead row behind for every move of a job")
        )
    findings += [
        warn(
            "vacuum",
            f"{facts.schema}.{table.name} has {table.dead:,} dead rows beside {table.live:,} living, vacuumed "
            f"{_last(table, now)}",
            f"end old transactions if there are any (see above), then: VACUUM {facts.schema}.{table.name}",
        )
        for table in facts.tables
        if table.dead >= DEAD_MANY and table.dead > table.live / 2
    ]
    return findings or [ok("vacuum", "keeps up with every table")]


def bloat(facts: PostgresFacts) -> list[Finding]:
    """Notes tables that keep much more space than their rows need."""
    findings = [
        note(
            "bloat",
            f"{facts.schema}.{table.name} takes {sized(table.total_bytes)} for {table.live:,} rows",
            f"it fills again by itself; to have the room back in a quiet hour: VACUUM FULL {facts.schema}.{table.name}",
        )
        for table in facts.tables
        if table.total_bytes >= BLOATED_BYTES and (table.live + table.dead) * ROW_BYTES_MAX < table.total_bytes / 4
    ]
    total = sum(table.total_bytes for table in facts.tables)
    return findings or [ok("bloat", f"the tables that change with every job take {sized(total)}")]


def wraparound(facts: PostgresFacts) -> list[Finding]:
    age, due = facts.oldest_xid_age, facts.freeze_at_age
    if age < FREEZE_OVERDUE * due:
        return [ok("wraparound", f"{age:,} transactions since the oldest freeze; at {due:,} it is done again")]
    return [
        bad(
            "wraparound",
            f"{age:,} transactions since the oldest freeze, which was due at {due:,}: the server may stop",
            "end old transactions, prepared ones and unused replication slots, then run VACUUM FREEZE on the database",
        )
    ]


def pooler(facts: PostgresFacts) -> list[Finding]:
    if not facts.pooled:
        return [ok("pooler", "none: connections go straight to the server")]
    return [
        note(
            "pooler",
            "connections go through a pooler, so statements are not prepared and each costs a little more",
            "nothing is wrong with it; where speed matters, give workers a URL that goes straight to the server",
        )
    ]


WAKE_UPS_TURNED_OFF: Final = note(
    "wake-ups",
    "turned off (notify=off): workers find work by looking, once a second",
    "take notify=off out of the URL if jobs should start sooner",
)
LISTEN_NEEDS_THE_SERVER: Final = (
    "LISTEN does not work through a pooler: give the app a URL that goes straight to the server"
)


def _last(table: TableFacts, now: Instant) -> str:
    return "never" if table.vacuumed_at is None else f"{lasting(max(0, now - table.vacuumed_at))} ago"
