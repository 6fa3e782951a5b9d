"""Rules about PostgreSQL's tables: what vacuum did not get to, and what it cannot give back."""

from __future__ import annotations

from typing import Final

from ropewalk.domain.time import Instant
from ropewalk.observe.doctor.finding import Finding, bad, note, ok, warn
from ropewalk.observe.doctor.words import lasting, sized
from ropewalk.ports.store.diagnosis import PostgresFacts, TableFacts

DEAD_MANY: Final = 50_000
"""autovacuum of the tables that move begins at 5 000 and a fiftieth of the living"""
BLOATED_BYTES: Final = 256 * 1024**2
ROW_BYTES_MAX: Final = 4096
"""indexes included; rows with large values are mostly elsewhere"""
FREEZE_OVERDUE: Final = 2.0


def vacuum(place: PostgresFacts, now: Instant) -> list[Finding]:
    findings: list[Finding] = []
    if place.settings["autovacuum"] != "on":
        findings.append(
            warn("vacuum", "autovacuum is off", "turn it on: a queue leaves a dead row behind for every move of a job")
        )
    findings += [
        warn(
            "vacuum",
            f"{place.schema}.{table.name} has {table.dead:,} dead rows beside {table.live:,} living, vacuumed "
            f"{_last(table, now)}",
            f"end old transactions if there are any (see above), then: VACUUM {place.schema}.{table.name}",
        )
        for table in place.tables
        if table.dead >= DEAD_MANY and table.dead > table.live / 2
    ]
    return findings or [ok("vacuum", "keeps up with every table")]


def bloat(place: PostgresFacts) -> list[Finding]:
    """Room that a table once needed, and keeps."""
    findings = [
        note(
            "bloat",
            f"{place.schema}.{table.name} takes {sized(table.total_bytes)} for {table.live:,} rows",
            f"it fills again by itself; to have the room back in a quiet hour: VACUUM FULL {place.schema}.{table.name}",
        )
        for table in place.tables
        if table.total_bytes >= BLOATED_BYTES and (table.live + table.dead) * ROW_BYTES_MAX < table.total_bytes / 4
    ]
    total = sum(table.total_bytes for table in place.tables)
    return findings or [ok("bloat", f"the tables that change with every job take {sized(total)}")]


def wraparound(place: PostgresFacts) -> list[Finding]:
    age, due = place.oldest_xid_age, place.freeze_at_age
    if age < FREEZE_OVERDUE * due:
        return [ok("wraparound", f"{age:,} transactions since the oldest freeze; at {due:,} it is done again")]
    return [
        bad(
            "wraparound",
            f"{age:,} transactions since the oldest freeze, which was due at {due:,}: the server may stop",
            "end old transactions, prepared ones and unused replication slots, then run VACUUM FREEZE on the database",
        )
    ]


def _last(table: TableFacts, now: Instant) -> str:
    return "never" if table.vacuumed_at is None else f"{lasting(max(0, now - table.vacuumed_at))} ago"
