"""Rules about a PostgreSQL server: what it keeps, what we may do there, and who is in the way."""

from __future__ import annotations

from typing import Final

from ropewalk.domain.time import MINUTE, SECOND, Span
from ropewalk.observe.doctor.finding import Finding, bad, note, ok, warn
from ropewalk.observe.doctor.words import lasting, named, number_of
from ropewalk.ports.store.diagnosis import OpenTransaction, PostgresFacts
from ropewalk.ports.store.messages import Durability

KEPT: Final = {"fsync": ("on",), "full_page_writes": ("on",), "synchronous_commit": ("on", "remote_apply")}
OLD: Final[Span] = 5 * MINUTE
IDLE_LONG: Final[Span] = 30 * SECOND
LOCKED_LONG: Final[Span] = 5 * SECOND
CONNECTIONS_NEAR: Final = 0.9


def durability(place: PostgresFacts, level: Durability) -> list[Finding]:
    """What an acknowledged job survives."""
    if place.in_recovery:
        return [
            bad(
                "durability",
                "this server is a standby: it takes no writes",
                "name the primary in the URL, or several hosts; target_session_attrs=read-write finds the primary",
            )
        ]
    weak = [f"{name} is {place.settings[name]!r}" for name, kept in KEPT.items() if place.settings[name] not in kept]
    if weak:
        return [
            bad(
                "durability",
                f"a crash of the server may lose acknowledged jobs: {', '.join(weak)}",
                "set them to 'on' for this server, database and role (ALTER SYSTEM, ALTER DATABASE, ALTER ROLE)",
            )
        ]
    return [ok("durability", f"fsync, full_page_writes and synchronous_commit are on: an acknowledged job {level}")]


def server(place: PostgresFacts) -> list[Finding]:
    isolation = place.settings["default_transaction_isolation"]
    if isolation != "read committed":
        return [
            note(
                "server",
                f"PostgreSQL {place.version}; default_transaction_isolation is {isolation!r}",
                "ropewalk sets its own; with `connection=` yours applies, and two who meet may have to try again",
            )
        ]
    return [ok("server", f"PostgreSQL {place.version}, wal_level {place.settings['wal_level']}")]


def rights(place: PostgresFacts) -> list[Finding]:
    findings: list[Finding] = []
    if place.rights_missing:
        findings.append(
            bad(
                "rights",
                f"this role lacks {named(place.rights_missing)}",
                f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {place.schema} TO it",
            )
        )
    if not place.sees_all_sessions:
        findings.append(
            note(
                "rights",
                "this role does not see other roles' sessions: what they hold open is not looked at here",
                "GRANT pg_read_all_stats TO it, or run the doctor as a role that has it",
            )
        )
    return findings or [ok("rights", "this role may do all it needs, and sees every session")]


def connections(place: PostgresFacts) -> list[Finding]:
    used, most = place.connections, place.connections_max
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


def transactions(place: PostgresFacts) -> list[Finding]:
    """An open transaction keeps vacuum from everything that died since, and its locks from everybody."""
    idle = [each for each in place.transactions if each.idle and each.age_us >= IDLE_LONG]
    old = [each for each in place.transactions if not each.idle and each.age_us >= OLD]
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


def locks(place: PostgresFacts) -> list[Finding]:
    long = [each for each in place.lock_waits if each.waits_us >= LOCKED_LONG]
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
