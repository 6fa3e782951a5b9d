"""H5: rules about what lies between a store and this process, and whose finding is shown where both could make one."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs

from ropewalk.domain.time import SECOND
from ropewalk.observe.doctor import connection
from ropewalk.observe.doctor.doctor import diagnose, schema
from ropewalk.observe.doctor.facts import ClockReading
from ropewalk.ports.store.core import Durability
from ropewalk.ports.store.diagnosis import Examination
from ropewalk.ports.store.findings import Finding, Level, bad, note, ok, warn, worst
from ropewalk.ports.store.migrations import SchemaState
from tests.observe.doctor.healthy import FACTS, NOW, WORK, told


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


def test_wake_ups_are_measured() -> None:
    assert told(connection.wake_ups(2500, None)) == [("ok", "wake-ups", "a hint arrives after 2.5 ms")]
    assert told(connection.wake_ups(SECOND, None)) == [
        ("note", "wake-ups", "a hint took 1.0 s to arrive: no faster than looking")
    ]
    lost = ("note", "wake-ups", "a hint did not arrive: workers find work by looking, once a second")
    for given, advice in ((None, "firewall"), ("ask the store's author", "ask the store's author")):
        [finding] = connection.wake_ups(None, given)
        assert told([finding]) == [lost]
        assert advice in (finding.advice or "")


def test_schemas() -> None:
    assert told([schema(SchemaState(applied=3, newest=3, missing=[]))]) == [
        ("ok", "schema", "version 3, the newest this release knows")
    ]
    behind = SchemaState(applied=1, newest=3, missing=["0002_b", "0003_c"])
    assert told([schema(behind)]) == [("bad", "schema", "version 1 lacks 2 migrations: 0002_b, 0003_c")]
    empty = SchemaState(applied=0, newest=1, missing=["0001_a"])
    assert told([schema(empty)]) == [("bad", "schema", "there is no schema here yet: 0001_a")]


def findings_about(durability: Durability = Durability.D2, **examined: Any) -> list[Finding]:
    """What the doctor says of a store in which all is well, apart from what its examination answers."""
    examination = Examination(now=NOW, work=WORK, **examined)
    return diagnose(structs.replace(FACTS, examination=examination, durability=durability))


def subjects(findings: list[Finding]) -> list[str]:
    assert {level for level, _, _ in told(findings)} <= {"ok", "note"}
    return [each.subject for each in findings]


JOBS = ["workers", "queues", "leases", "pauses", "limits", "schedules", "records", "dead letters", "damage"]


def test_a_store_that_says_nothing_of_itself_has_the_doctors_findings() -> None:
    assert subjects(findings_about()) == ["durability", "clock", "wake-ups", *JOBS]


def test_the_findings_of_a_store_come_first() -> None:
    own = [ok("durability", "carved in stone"), note("quarry", "half empty", "look for another one")]
    assert subjects(findings_about(findings=own)) == ["durability", "quarry", "clock", "wake-ups", *JOBS]
    assert findings_about(findings=own)[:2] == own, "the doctor adds nothing about durability"
    assert subjects(findings_about(findings=own[1:]))[:3] == ["durability", "quarry", "clock"]


def test_what_a_store_says_of_its_wake_ups_stands_in_their_place() -> None:
    silent = ok("wake-ups", "nobody else can hear them")
    assert findings_about(wake_ups=silent)[2] == silent


def test_what_a_store_promises_is_said_where_it_says_nothing_itself() -> None:
    assert told(findings_about(Durability.D2)[:1]) == [
        ("ok", "durability", "D2: an acknowledged job survives power loss")
    ]
    assert told(findings_about(Durability.D0)[:1]) == [
        ("note", "durability", "D0: what this store acknowledged is gone with the process")
    ]


def test_the_worst_decides() -> None:
    fine, noted, warned, broken = ok("a", "b"), note("a", "b", "c"), warn("a", "b", "c"), bad("a", "b", "c")
    assert worst([]) is Level.OK
    assert worst([noted, fine]) is Level.NOTE
    assert worst([warned, noted]) is Level.WARN
    assert worst([fine, broken, warned]) is Level.BAD
