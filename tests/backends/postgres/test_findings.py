"""H5: the findings of a PostgreSQL store about its server, every branch of every rule."""

from __future__ import annotations

from typing import Any

from msgspec import structs

from ropewalk.backends.postgres import findings
from ropewalk.backends.postgres.diagnosis import LockWait, OpenTransaction, PostgresFacts, TableFacts
from ropewalk.domain.time import HOUR, MINUTE, SECOND
from ropewalk.ports.store.core import Durability
from ropewalk.ports.store.diagnosis import Examination
from tests.observe.doctor.healthy import NOW, WORK, told

MIB = 1024**2

SERVER = PostgresFacts(
    version="17.2",
    schema="ropewalk",
    settings={
        "fsync": "on",
        "full_page_writes": "on",
        "synchronous_commit": "on",
        "synchronous_standby_names": "",
        "wal_level": "replica",
        "default_transaction_isolation": "read committed",
        "autovacuum": "on",
    },
    in_recovery=False,
    pooled=False,
    notify=True,
    rights_missing=[],
    sees_all_sessions=True,
    connections=12,
    connections_max=97,
    transactions=[],
    lock_waits=[],
    tables=[],
    oldest_xid_age=1000,
    freeze_at_age=200_000_000,
)


def postgres(settings: dict[str, str] | None = None, **fields: Any) -> PostgresFacts:
    return structs.replace(SERVER, settings=SERVER.settings | (settings or {}), **fields)


def examined(facts: PostgresFacts) -> Examination:
    return findings.examination(facts, Durability.D2, NOW, WORK)


def test_how_safe_a_server_is() -> None:
    kept = "fsync, full_page_writes and synchronous_commit are on: an acknowledged job survives the loss of a node"
    assert told(findings.durability(postgres(), Durability.D3)) == [("ok", "durability", kept)]
    assert told(findings.durability(postgres({"synchronous_commit": "remote_apply"}), Durability.D2))[0][0] == "ok"
    weak = postgres({"fsync": "off", "full_page_writes": "off", "synchronous_commit": "local"})
    found = "fsync is 'off', full_page_writes is 'off', synchronous_commit is 'local'"
    assert told(findings.durability(weak, Durability.D1)) == [
        ("bad", "durability", f"a crash of the server may lose acknowledged jobs: {found}")
    ]
    assert told(findings.durability(postgres(in_recovery=True), Durability.D2)) == [
        ("bad", "durability", "this server is a standby: it takes no writes")
    ]


def test_what_a_server_is_and_lets_us_do() -> None:
    assert told(findings.server(postgres())) == [("ok", "server", "PostgreSQL 17.2, wal_level replica")]
    strict = postgres({"default_transaction_isolation": "serializable"})
    assert told(findings.server(strict)) == [
        ("note", "server", "PostgreSQL 17.2; default_transaction_isolation is 'serializable'")
    ]
    fine = "this role may do all it needs, and sees every session"
    assert told(findings.rights(postgres())) == [("ok", "rights", fine)]
    blind = postgres(rights_missing=["DELETE on job"], sees_all_sessions=False)
    assert [each[:2] for each in told(findings.rights(blind))] == [("bad", "rights"), ("note", "rights")]
    assert findings.rights(blind)[0].found == "this role lacks DELETE on job"
    assert told(findings.connections(postgres(connections=87)))[0][0] == "ok"
    assert told(findings.connections(postgres(connections=88))) == [
        ("warn", "connections", "88 of 97 connections are taken")
    ]


def transaction(age_us: int, *, idle: bool, pid: int = 7, who: str = "psql") -> OpenTransaction:
    return OpenTransaction(pid=pid, who=who, idle=idle, age_us=age_us)


def test_transactions() -> None:
    calm = postgres(transactions=[transaction(MINUTE, idle=False), transaction(29 * SECOND, idle=True)])
    assert told(findings.transactions(calm)) == [("ok", "transactions", "none is open for long")]
    busy = postgres(
        transactions=[
            transaction(2 * HOUR, idle=False, who=""),
            transaction(HOUR, idle=True),
            transaction(MINUTE, idle=True, pid=0, who="tpc"),
        ]
    )
    assert told(findings.transactions(busy)) == [
        (
            "warn",
            "transactions",
            "2 transactions open and idle: pid 7 (psql) for 60 min, prepared (tpc) for 60 s: ROLLBACK PREPARED",
        ),
        ("warn", "transactions", "1 transaction at work for long: pid 7 for 2 h"),
    ]


def test_locks() -> None:
    short = LockWait(pid=8, waits_us=4 * SECOND, blocked_by=[7])
    assert told(findings.locks(postgres(lock_waits=[short]))) == [("ok", "locks", "nobody waits long for a lock")]
    long = structs.replace(short, waits_us=8 * SECOND)
    assert told(findings.locks(postgres(lock_waits=[long, short]))) == [
        ("warn", "locks", "1 session held up by locks, pid 8 for 8.0 s, by pid 7")
    ]
    gone = structs.replace(long, blocked_by=[])
    assert findings.locks(postgres(lock_waits=[gone]))[0].found.endswith("by pid unknown")


def table(**fields: Any) -> TableFacts:
    facts: dict[str, Any] = {"name": "ready", "live": 9, "dead": 0, "total_bytes": MIB, "vacuumed_at": None}
    return TableFacts(**(facts | fields))


def test_vacuum() -> None:
    assert told(findings.vacuum(postgres(tables=[table(dead=49_999)]), NOW)) == [
        ("ok", "vacuum", "keeps up with every table")
    ]
    assert told(findings.vacuum(postgres(tables=[table(live=200_000, dead=100_000)]), NOW))[0][0] == "ok"
    held_back = postgres(
        {"autovacuum": "off"},
        tables=[table(dead=50_000), table(name="running", dead=60_000, vacuumed_at=NOW - 3 * HOUR)],
    )
    assert told(findings.vacuum(held_back, NOW)) == [
        ("warn", "vacuum", "autovacuum is off"),
        ("warn", "vacuum", "ropewalk.ready has 50,000 dead rows beside 9 living, vacuumed never"),
        ("warn", "vacuum", "ropewalk.running has 60,000 dead rows beside 9 living, vacuumed 3 h ago"),
    ]


def test_bloat_and_wraparound() -> None:
    assert told(findings.bloat(postgres(tables=[table(), table()]))) == [
        ("ok", "bloat", "the tables that change with every job take 2.0 MiB")
    ]
    assert told(findings.bloat(postgres(tables=[table(total_bytes=256 * MIB)]))) == [
        ("note", "bloat", "ropewalk.ready takes 256.0 MiB for 9 rows")
    ]
    full = table(total_bytes=256 * MIB, live=16_384)
    assert told(findings.bloat(postgres(tables=[full])))[0][0] == "ok"
    assert told(findings.wraparound(postgres()))[0][0] == "ok"
    assert told(findings.wraparound(postgres(oldest_xid_age=400_000_000)))[0][0] == "bad"


def test_a_pooler_is_noted() -> None:
    assert told(findings.pooler(SERVER)) == [("ok", "pooler", "none: connections go straight to the server")]
    assert told(findings.pooler(postgres(pooled=True)))[0][0] == "note"


def test_wake_ups_that_were_turned_off_are_not_measured() -> None:
    assert examined(SERVER).wake_ups is None
    silent = examined(postgres(notify=False)).wake_ups
    assert silent is not None
    assert told([silent])[0][2].startswith("turned off (notify=off)")


def test_a_hint_that_is_lost_behind_a_pooler_has_its_own_advice() -> None:
    assert examined(SERVER).lost_hint_advice is None
    assert "LISTEN does not work through a pooler" in (examined(postgres(pooled=True)).lost_hint_advice or "")


def test_all_rules_are_asked() -> None:
    subjects = [each.subject for each in examined(SERVER).findings]
    expected = ["durability", "server", "rights", "connections", "transactions", "locks", "vacuum", "bloat"]
    assert subjects == [*expected, "wraparound", "pooler"]
