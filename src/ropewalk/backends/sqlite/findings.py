"""Derives findings from the facts about a SQLite file, with one rule for each concern."""

from __future__ import annotations

from typing import Final

from ropewalk.backends.sqlite.diagnosis import SqliteFacts
from ropewalk.ports.store.findings import Finding, bad, note, ok, sized, warn

FULL: Final = 2
"""This is the value of `PRAGMA synchronous` with which every commit reaches the disk."""
WAL_LARGE_BYTES: Final = 256 * 1024**2
DISK_LOW_BYTES: Final = 512 * 1024**2
EMPTY_BYTES: Final = 64 * 1024**2


def findings_of(facts: SqliteFacts) -> list[Finding]:
    """Returns the findings of all rules, in the order in which people read them."""
    return [finding for rule in (durability, library, log, space, integrity) for finding in rule(facts)]


def durability(facts: SqliteFacts) -> list[Finding]:
    """Says what an acknowledged job survives."""
    if facts.network is not None:
        return [
            bad(
                "durability",
                f"{facts.path} lies on a network file system ({facts.network}), where SQLite's locks do not hold",
                "move it to a local disk, or use PostgreSQL",
            )
        ]
    weak: list[str] = []
    if facts.journal_mode != "wal":
        weak.append(f"journal_mode is {facts.journal_mode!r} instead of 'wal'")
    if facts.synchronous < FULL:
        weak.append(f"synchronous is {facts.synchronous} instead of {FULL} (FULL)")
    if weak:
        return [
            bad(
                "durability",
                f"a power loss may lose acknowledged jobs: {', '.join(weak)}",
                "put the file where a write-ahead log can be kept (a local disk, a writable directory)",
            )
        ]
    return [ok("durability", "WAL and synchronous=FULL: an acknowledged job survives power loss")]


def library(facts: SqliteFacts) -> list[Finding]:
    if facts.corrupts_beside_others:
        return [
            note(
                "library",
                f"SQLite {facts.library} can corrupt a file that another program checkpoints while ropewalk writes",
                "pip install 'ropewalk[sqlite]' brings a newer one; until then let no other program write to the file",
            )
        ]
    return [ok("library", f"SQLite {facts.library}")]


def log(facts: SqliteFacts) -> list[Finding]:
    """Warns about a large write-ahead log: it is moved into the file at 16 MiB, unless a reader still needs it."""
    if facts.wal_bytes >= WAL_LARGE_BYTES:
        return [
            warn(
                "log",
                f"the write-ahead log has grown to {sized(facts.wal_bytes)}: a reader keeps an old snapshot open",
                "end the transaction of whatever else reads the file (a shell, a backup, a script)",
            )
        ]
    return [ok("log", f"the write-ahead log has {sized(facts.wal_bytes)}")]


def space(facts: SqliteFacts) -> list[Finding]:
    total, free = facts.pages * facts.page_bytes, facts.free_pages * facts.page_bytes
    findings: list[Finding] = []
    if facts.disk_free_bytes < DISK_LOW_BYTES:
        findings.append(
            warn(
                "space",
                f"the disk has {sized(facts.disk_free_bytes)} left",
                "make room: with a full disk no job can be queued, and none settled",
            )
        )
    if free >= EMPTY_BYTES and free * 2 > total:
        how = "workers give it back bit by bit" if facts.shrinks else "the file was not made to shrink by itself"
        findings.append(
            note(
                "space",
                f"{sized(free)} of the {sized(total)} in the file are empty: {how}",
                f"to have it back at once, stop the workers and run: sqlite3 {facts.path} VACUUM",
            )
        )
    return findings or [ok("space", f"the file has {sized(total)}, the disk {sized(facts.disk_free_bytes)} left")]


def integrity(facts: SqliteFacts) -> list[Finding]:
    match facts.trouble:
        case None:
            return [ok("integrity", "not checked: --deep reads the whole file")]
        case "ok":
            return [ok("integrity", "every page of the file is sound")]
        case found:
            return [
                bad(
                    "integrity",
                    f"the file is damaged: {' '.join(found.split())}",
                    "stop the workers, keep a copy, and restore a backup (or try: sqlite3 FILE .recover)",
                )
            ]
