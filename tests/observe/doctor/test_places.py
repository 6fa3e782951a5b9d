"""H5: rules about where jobs are kept and what lies between, every branch."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs

from ropewalk.domain.time import HOUR, MINUTE, SECOND
from ropewalk.observe.doctor import connection, sqlite
from ropewalk.observe.doctor import postgres as postgres_tables
from ropewalk.observe.doctor import postgres as server
from ropewalk.observe.doctor.doctor import diagnose, schema
from ropewalk.observe.doctor.facts import ClockReading
from ropewalk.observe.doctor.findings import Level, bad, note, ok, warn, worst
from ropewalk.ports.store.diagnosis import (
    Examination,
    LockWait,
    OpenTransaction,
    PostgresFacts,
    SqliteFacts,
    TableFacts,
)
from ropewalk.ports.store.messages import Durability
from ropewalk.ports.store.migrations import SchemaState
from tests.observe.doctor.healthy import FACTS, FILE, NOW, SERVER, WORK, told

MIB = 1024**2


def file(**fields: Any) -> SqliteFacts:
    return structs.replace(FILE, **fields)


def postgres(settings: dict[str, str] | None = None, **fields: Any) -> PostgresFacts:
    return structs.replace(SERVER, settings=SERVER.settings | (settings or {}), **fields)


def test_how_safe_a_file_is() -> None:
    safe = "WAL and synchronous=FULL: an acknowledged job survives power loss"
    assert told(sqlite.durability(file())) == [("ok", "durability", safe)]
    weak = "journal_mode is 'delete' instead of 'wal', synchronous is 1 instead of 2 (FULL)"
    assert told(sqlite.durability(file(journal_mode="delete", synchronous=1))) == [
        ("bad", "durability", f"a power loss may lose acknowledged jobs: {weak}")
    ]
    assert told(sqlite.durability(file(network="nfs4"))) == [
        ("bad", "durability", "jobs.db lies on a network file system (nfs4), where SQLite's locks do not hold")
    ]


def test_what_a_file_takes() -> None:
    assert told(sqlite.log(file())) == [("ok", "log", "the write-ahead log has 1.0 KiB")]
    assert told(sqlite.log(file(wal_bytes=256 * MIB))) == [
        ("warn", "log", "the write-ahead log has grown to 256.0 MiB: a reader keeps an old snapshot open")
    ]
    assert told(sqlite.space(file())) == [("ok", "space", "the file has 3.9 MiB, the disk 10.0 GiB left")]
    assert told(sqlite.space(file(disk_free_bytes=512 * MIB - 1, pages=30_000, free_pages=16_384))) == [
        ("warn", "space", "the disk has 512.0 MiB left"),
        ("note", "space", "64.0 MiB of the 117.2 MiB in the file are empty: workers give it back bit by bit"),
    ]
    [finding] = sqlite.space(file(pages=30_000, free_pages=16_384, shrinks=False))
    assert finding.found.endswith("the file was not made to shrink by itself")
    assert told(sqlite.space(file(pages=40_000, free_pages=16_384)))[0][0] == "ok"


def test_whether_a_file_is_whole() -> None:
    assert told(sqlite.integrity(file())) == [("ok", "integrity", "every page of the file is sound")]
    unknown = "not checked: --deep reads the whole file"
    assert told(sqlite.integrity(file(trouble=None))) == [("ok", "integrity", unknown)]
    assert told(sqlite.integrity(file(trouble="*** in database main ***\nPage 7: never used"))) == [
        ("bad", "integrity", "the file is damaged: *** in database main *** Page 7: never used")
    ]
    assert told(sqlite.library(file())) == [("ok", "library", "SQLite 3.99.0")]
    assert told(sqlite.library(file(corrupts_beside_others=True)))[0][0] == "note"


def test_how_safe_a_server_is() -> None:
    kept = "fsync, full_page_writes and synchronous_commit are on: an acknowledged job survives the loss of a node"
    assert told(server.durability(postgres(), Durability.D3)) == [("ok", "durability", kept)]
    assert told(server.durability(postgres({"synchronous_commit": "remote_apply"}), Durability.D2))[0][0] == "ok"
    weak = postgres({"fsync": "off", "full_page_writes": "off", "synchronous_commit": "local"})
    found = "fsync is 'off', full_page_writes is 'off', synchronous_commit is 'local'"
    assert told(server.durability(weak, Durability.D1)) == [
        ("bad", "durability", f"a crash of the server may lose acknowledged jobs: {found}")
    ]
    assert told(server.durability(postgres(in_recovery=True), Durability.D2)) == [
        ("bad", "durability", "this server is a standby: it takes no writes")
    ]


def test_what_a_server_is_and_lets_us_do() -> None:
    assert told(server.server(postgres())) == [("ok", "server", "PostgreSQL 17.2, wal_level replica")]
    strict = postgres({"default_transaction_isolation": "serializable"})
    assert told(server.server(strict)) == [
        ("note", "server", "PostgreSQL 17.2; default_transaction_isolation is 'serializable'")
    ]
    fine = "this role may do all it needs, and sees every session"
    assert told(server.rights(postgres())) == [("ok", "rights", fine)]
    blind = postgres(rights_missing=["DELETE on job"], sees_all_sessions=False)
    assert [each[:2] for each in told(server.rights(blind))] == [("bad", "rights"), ("note", "rights")]
    assert server.rights(blind)[0].found == "this role lacks DELETE on job"
    assert told(server.connections(postgres(connections=87)))[0][0] == "ok"
    assert told(server.connections(postgres(connections=88))) == [
        ("warn", "connections", "88 of 97 connections are taken")
    ]


def transaction(age_us: int, *, idle: bool, pid: int = 7, who: str = "psql") -> OpenTransaction:
    return OpenTransaction(pid=pid, who=who, idle=idle, age_us=age_us)


def test_transactions() -> None:
    calm = postgres(transactions=[transaction(MINUTE, idle=False), transaction(29 * SECOND, idle=True)])
    assert told(server.transactions(calm)) == [("ok", "transactions", "none is open for long")]
    busy = postgres(
        transactions=[
            transaction(2 * HOUR, idle=False, who=""),
            transaction(HOUR, idle=True),
            transaction(MINUTE, idle=True, pid=0, who="tpc"),
        ]
    )
    assert told(server.transactions(busy)) == [
        (
            "warn",
            "transactions",
            "2 transactions open and idle: pid 7 (psql) for 60 min, prepared (tpc) for 60 s: ROLLBACK PREPARED",
        ),
        ("warn", "transactions", "1 transaction at work for long: pid 7 for 2 h"),
    ]


def test_locks() -> None:
    short = LockWait(pid=8, waits_us=4 * SECOND, blocked_by=[7])
    assert told(server.locks(postgres(lock_waits=[short]))) == [("ok", "locks", "nobody waits long for a lock")]
    long = structs.replace(short, waits_us=8 * SECOND)
    assert told(server.locks(postgres(lock_waits=[long, short]))) == [
        ("warn", "locks", "1 session held up by locks, pid 8 for 8.0 s, by pid 7")
    ]
    gone = structs.replace(long, blocked_by=[])
    assert server.locks(postgres(lock_waits=[gone]))[0].found.endswith("by pid unknown")


def table(**fields: Any) -> TableFacts:
    facts: dict[str, Any] = {"name": "ready", "live": 9, "dead": 0, "total_bytes": MIB, "vacuumed_at": None}
    return TableFacts(**(facts | fields))


def test_vacuum() -> None:
    assert told(postgres_tables.vacuum(postgres(tables=[table(dead=49_999)]), NOW)) == [
        ("ok", "vacuum", "keeps up with every table")
    ]
    assert told(postgres_tables.vacuum(postgres(tables=[table(live=200_000, dead=100_000)]), NOW))[0][0] == "ok"
    held_back = postgres(
        {"autovacuum": "off"},
        tables=[table(dead=50_000), table(name="running", dead=60_000, vacuumed_at=NOW - 3 * HOUR)],
    )
    assert told(postgres_tables.vacuum(held_back, NOW)) == [
        ("warn", "vacuum", "autovacuum is off"),
        ("warn", "vacuum", "ropewalk.ready has 50,000 dead rows beside 9 living, vacuumed never"),
        ("warn", "vacuum", "ropewalk.running has 60,000 dead rows beside 9 living, vacuumed 3 h ago"),
    ]


def test_bloat_and_wraparound() -> None:
    assert told(postgres_tables.bloat(postgres(tables=[table(), table()]))) == [
        ("ok", "bloat", "the tables that change with every job take 2.0 MiB")
    ]
    assert told(postgres_tables.bloat(postgres(tables=[table(total_bytes=256 * MIB)]))) == [
        ("note", "bloat", "ropewalk.ready takes 256.0 MiB for 9 rows")
    ]
    full = table(total_bytes=256 * MIB, live=16_384)
    assert told(postgres_tables.bloat(postgres(tables=[full])))[0][0] == "ok"
    assert told(postgres_tables.wraparound(postgres()))[0][0] == "ok"
    assert told(postgres_tables.wraparound(postgres(oldest_xid_age=400_000_000)))[0][0] == "bad"


@pytest.mark.parametrize(
    ("ahead_us", "uncertain_us", "level", "found"),
    [
        (1200, 600, "ok", "the store's and this machine's agree within 1.2 ms"),
        (3 * SECOND, 3 * SECOND, "ok", "the store's and this machine's agree within 3000.0 ms"),
        (-3 * SECOND, SECOND, "note", "the store's clock is 3.0 s behind this machine's"),
        (12 * SECOND, SECOND, "warn", "the store's clock is 12 s ahead of this machine's"),
    ],
)
def test_clocks(ahead_us: int, uncertain_us: int, level: str, found: str) -> None:
    reading = ClockReading(ahead_us=ahead_us, uncertain_us=uncertain_us)
    assert told(connection.clock(reading)) == [(level, "clock", found)]


def test_wake_ups_and_poolers() -> None:
    assert told(connection.wake_ups(2500, None)) == [("ok", "wake-ups", "a hint arrives after 2.5 ms")]
    assert told(connection.wake_ups(SECOND, SERVER)) == [
        ("note", "wake-ups", "a hint took 1.0 s to arrive: no faster than looking")
    ]
    lost = ("note", "wake-ups", "a hint did not arrive: workers find work by looking, once a second")
    for place, advice in (
        (None, "firewall"),
        (SERVER, "firewall"),
        (postgres(pooled=True), "LISTEN does not work through a pooler"),
    ):
        [finding] = connection.wake_ups(None, place)
        assert told([finding]) == [lost]
        assert advice in (finding.advice or "")
    assert told(connection.wake_ups(None, postgres(notify=False)))[0][2].startswith("turned off (notify=off)")
    assert told(connection.pooler(SERVER))[0][0] == "ok"
    assert told(connection.pooler(postgres(pooled=True)))[0][0] == "note"


def test_schemas() -> None:
    assert told([schema(SchemaState(applied=3, newest=3, missing=[]))]) == [
        ("ok", "schema", "version 3, the newest this release knows")
    ]
    behind = SchemaState(applied=1, newest=3, missing=["0002_b", "0003_c"])
    assert told([schema(behind)]) == [("bad", "schema", "version 1 lacks 2 migrations: 0002_b, 0003_c")]
    empty = SchemaState(applied=0, newest=1, missing=["0001_a"])
    assert told([schema(empty)]) == [("bad", "schema", "there is no schema here yet: 0001_a")]


def test_every_place_has_its_rules() -> None:
    def subjects(place: SqliteFacts | PostgresFacts | None, durability: Durability) -> list[str]:
        examination = Examination(now=NOW, work=WORK, place=place)
        findings = diagnose(structs.replace(FACTS, examination=examination, durability=durability))
        assert {level for level, _, _ in told(findings)} <= {"ok", "note"}
        return [each.subject for each in findings]

    jobs = ["workers", "queues", "leases", "pauses", "limits", "schedules", "records", "dead letters", "damage"]
    file_ = ["durability", "library", "log", "space", "integrity"]
    server_ = ["durability", "server", "rights", "connections", "transactions", "locks", "vacuum", "bloat"]
    between = ["clock", "wake-ups"]
    assert subjects(FILE, Durability.D2) == [*file_, *between, *jobs]
    assert subjects(SERVER, Durability.D2) == [*server_, "wraparound", "pooler", *between, *jobs]
    assert subjects(None, Durability.D0) == ["durability", "clock", *jobs]


def test_the_worst_decides() -> None:
    fine, noted, warned, broken = ok("a", "b"), note("a", "b", "c"), warn("a", "b", "c"), bad("a", "b", "c")
    assert worst([]) is Level.OK
    assert worst([noted, fine]) is Level.NOTE
    assert worst([warned, noted]) is Level.WARN
    assert worst([fine, broken, warned]) is Level.BAD
