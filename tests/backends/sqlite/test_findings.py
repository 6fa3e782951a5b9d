"""H5: the findings of a SQLite store about its file, every branch of every rule."""

from __future__ import annotations

from typing import Any

from msgspec import structs

from ropewalk.backends.sqlite import findings
from ropewalk.backends.sqlite.diagnosis import SqliteFacts
from tests.observe.doctor.healthy import told

MIB = 1024**2

FILE = SqliteFacts(
    path="jobs.db",
    library="3.99.0",
    corrupts_beside_others=False,
    network=None,
    journal_mode="wal",
    synchronous=2,
    page_bytes=4096,
    pages=1000,
    free_pages=0,
    shrinks=True,
    wal_bytes=1024,
    disk_free_bytes=10 * 1024**3,
    trouble="ok",
)


def file(**fields: Any) -> SqliteFacts:
    return structs.replace(FILE, **fields)


def test_how_safe_a_file_is() -> None:
    safe = "WAL and synchronous=FULL: an acknowledged job survives power loss"
    assert told(findings.durability(file())) == [("ok", "durability", safe)]
    weak = "journal_mode is 'delete' instead of 'wal', synchronous is 1 instead of 2 (FULL)"
    assert told(findings.durability(file(journal_mode="delete", synchronous=1))) == [
        ("bad", "durability", f"a power loss may lose acknowledged jobs: {weak}")
    ]
    assert told(findings.durability(file(network="nfs4"))) == [
        ("bad", "durability", "jobs.db lies on a network file system (nfs4), where SQLite's locks do not hold")
    ]


def test_what_a_file_takes() -> None:
    assert told(findings.log(file())) == [("ok", "log", "the write-ahead log has 1.0 KiB")]
    assert told(findings.log(file(wal_bytes=256 * MIB))) == [
        ("warn", "log", "the write-ahead log has grown to 256.0 MiB: a reader keeps an old snapshot open")
    ]
    assert told(findings.space(file())) == [("ok", "space", "the file has 3.9 MiB, the disk 10.0 GiB left")]
    assert told(findings.space(file(disk_free_bytes=512 * MIB - 1, pages=30_000, free_pages=16_384))) == [
        ("warn", "space", "the disk has 512.0 MiB left"),
        ("note", "space", "64.0 MiB of the 117.2 MiB in the file are empty: workers give it back bit by bit"),
    ]
    [finding] = findings.space(file(pages=30_000, free_pages=16_384, shrinks=False))
    assert finding.found.endswith("the file was not made to shrink by itself")
    assert told(findings.space(file(pages=40_000, free_pages=16_384)))[0][0] == "ok"


def test_whether_a_file_is_whole() -> None:
    assert told(findings.integrity(file())) == [("ok", "integrity", "every page of the file is sound")]
    unknown = "not checked: --deep reads the whole file"
    assert told(findings.integrity(file(trouble=None))) == [("ok", "integrity", unknown)]
    assert told(findings.integrity(file(trouble="*** in database main ***\nPage 7: never used"))) == [
        ("bad", "integrity", "the file is damaged: *** in database main *** Page 7: never used")
    ]
    assert told(findings.library(file())) == [("ok", "library", "SQLite 3.99.0")]
    assert told(findings.library(file(corrupts_beside_others=True)))[0][0] == "note"


def test_all_rules_are_asked() -> None:
    expected = ["durability", "library", "log", "space", "integrity"]
    assert [each.subject for each in findings.findings_of(FILE)] == expected
