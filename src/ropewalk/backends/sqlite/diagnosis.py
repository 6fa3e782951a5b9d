"""Collects the facts about the file: how it is written, how large it is, and whether it is sound. Nothing is
changed."""

from __future__ import annotations

import shutil
from pathlib import Path

from msgspec import Struct

from ropewalk.backends.sql.tx import Tx
from ropewalk.backends.sqlite.filesystem import network_type
from ropewalk.backends.sqlite.library import has_wal_reset_bug, sqlite
from ropewalk.backends.sqlite.opening import INCREMENTAL


class SqliteFacts(Struct, frozen=True, kw_only=True):
    """The facts about a file and about the library that reads it. findings.py derives findings from them."""

    path: str
    library: str
    """The version of SQLite itself."""
    corrupts_beside_others: bool
    """Whether this library can corrupt a file that several processes write (`library.has_wal_reset_bug`)."""
    network: str | None
    """The kind of network file system that contains the file; None for a local disk."""
    journal_mode: str
    synchronous: int
    """The setting of the connection that writes: 0 is off, 1 normal, 2 full, 3 extra."""
    page_bytes: int
    pages: int
    free_pages: int
    shrinks: bool
    """Whether the file was created so that it can give free pages back."""
    wal_bytes: int
    disk_free_bytes: int
    trouble: str | None
    """The first problem that the integrity check found; "ok" if it found none, None if there was no check."""


class WriterSettings(Struct, frozen=True):
    """What the connection that writes reads about the file and itself: some settings belong to a connection."""

    journal_mode: str
    synchronous: int
    page_bytes: int
    pages: int
    free_pages: int
    auto_vacuum: int


def settings_of_writer(tx: Tx) -> WriterSettings:
    names = ("journal_mode", "synchronous", "page_size", "page_count", "freelist_count", "auto_vacuum")
    return WriterSettings(*(tx.value(f"PRAGMA {name}") for name in names))


def trouble(tx: Tx) -> str:
    """Reads the whole file. Returns the first problem, or "ok"."""
    found: str = tx.value("PRAGMA quick_check(1)")
    return found


def facts(path: Path, settings: WriterSettings, found: str | None) -> SqliteFacts:
    wal = path.with_name(path.name + "-wal")
    return SqliteFacts(
        path=str(path),
        library=sqlite.sqlite_version,
        corrupts_beside_others=has_wal_reset_bug(),
        network=network_type(path),
        journal_mode=settings.journal_mode,
        synchronous=settings.synchronous,
        page_bytes=settings.page_bytes,
        pages=settings.pages,
        free_pages=settings.free_pages,
        shrinks=settings.auto_vacuum == INCREMENTAL,
        wal_bytes=wal.stat().st_size if wal.exists() else 0,
        disk_free_bytes=shutil.disk_usage(path.parent).free,
        trouble=found,
    )
