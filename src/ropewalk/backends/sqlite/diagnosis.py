"""What there is to know about the file: how it is written, how large it is, whether it is whole. Changes nothing."""

from __future__ import annotations

import shutil
from pathlib import Path

from msgspec import Struct

from ropewalk.backends.sql.tx import Tx
from ropewalk.backends.sqlite.filesystem import network_type
from ropewalk.backends.sqlite.library import has_wal_reset_bug, sqlite
from ropewalk.backends.sqlite.opening import INCREMENTAL


class SqliteFacts(Struct, frozen=True, kw_only=True):
    """What there is to know about a file and the library that reads it. findings.py says what it means."""

    path: str
    library: str
    """the version of SQLite itself"""
    corrupts_beside_others: bool
    """it has the bug that backends/sqlite/library.py tells of"""
    network: str | None
    """the kind of network file system the file lies on"""
    journal_mode: str
    synchronous: int
    """of the connection that writes: 0 off, 1 normal, 2 full, 3 extra"""
    page_bytes: int
    pages: int
    free_pages: int
    shrinks: bool
    """the file was made so that free pages can be given back"""
    wal_bytes: int
    disk_free_bytes: int
    trouble: str | None
    """what the integrity check found first; "ok", or None where nobody asked for one"""


class Written(Struct, frozen=True):
    """How the connection that writes does so: some of it is each connection's own."""

    journal_mode: str
    synchronous: int
    page_bytes: int
    pages: int
    free_pages: int
    auto_vacuum: int


def written(tx: Tx) -> Written:
    names = ("journal_mode", "synchronous", "page_size", "page_count", "freelist_count", "auto_vacuum")
    return Written(*(tx.value(f"PRAGMA {name}") for name in names))


def trouble(tx: Tx) -> str:
    """Reads the whole file. `ok`, or what it found first."""
    found: str = tx.value("PRAGMA quick_check(1)")
    return found


def facts(path: Path, how: Written, found: str | None) -> SqliteFacts:
    wal = path.with_name(path.name + "-wal")
    return SqliteFacts(
        path=str(path),
        library=sqlite.sqlite_version,
        corrupts_beside_others=has_wal_reset_bug(),
        network=network_type(path),
        journal_mode=how.journal_mode,
        synchronous=how.synchronous,
        page_bytes=how.page_bytes,
        pages=how.pages,
        free_pages=how.free_pages,
        shrinks=how.auto_vacuum == INCREMENTAL,
        wal_bytes=wal.stat().st_size if wal.exists() else 0,
        disk_free_bytes=shutil.disk_usage(path.parent).free,
        trouble=found,
    )
