"""Checkpoints move the content of the write-ahead log into the database file. The writer makes them after a commit, as
soon as the log has reached a certain size.

SQLite's automatic checkpoints run while other processes commit, and up to SQLite 3.51.2 this can corrupt the file. The
checkpoints here hold the write lock, so that nobody commits meanwhile, whatever the version.

A commit is cheaper in a log that is written again from its beginning than in one that grows, because its blocks exist
already. So the log is kept if the library can tell how much of it is in use. Older libraries cannot; with them, every
checkpoint truncates the log, and its size tells how much there is to move.

This module also gives space back to the file system after many rows were deleted.
"""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import Final, Literal

from ropewalk.backends.sql.tx import Tx
from ropewalk.backends.sqlite.library import has_wal_reset_bug, sqlite

WAL_BYTES_MAX: Final = 16 * 1024 * 1024
"""The writer makes a checkpoint when so much of the log is in use."""
WAL_BYTES_ALARMING: Final = 256 * 1024 * 1024
"""A log that has grown to this size, because a reader keeps it from being moved, is reported."""
WAIT_FOR_READERS_MS: Final = 250
FRAME_HEADER_BYTES: Final = 24


class Checkpointer:
    """Decides after each commit of a connection whether a checkpoint is due, and makes it."""

    def __init__(self, path: Path) -> None:
        self._wal = path.with_name(path.name + "-wal")
        self._next_bytes = WAL_BYTES_MAX
        self._reuses = not has_wal_reset_bug()

    def after_commit(self, db: sqlite.Connection) -> None:
        size = self._size()
        if size < self._next_bytes or (self._reuses and _used_bytes(db) < self._next_bytes):
            return
        # A log that grew because of a reader is truncated, so that it does not stay large.
        keeps = self._reuses and size < 2 * WAL_BYTES_MAX
        if _make_checkpoint(db, "RESTART" if keeps else "TRUNCATE"):
            self._next_bytes = WAL_BYTES_MAX
            return
        # A reader still needs the log. Another try after every commit would make all writers wait for that reader.
        self._next_bytes = 2 * size
        if size >= WAL_BYTES_ALARMING:
            logging.getLogger("ropewalk.sqlite").warning(
                "%s has grown to %d MiB because a reader keeps an old snapshot open: end its transaction",
                self._wal,
                size // 1024**2,
            )

    def _size(self) -> int:
        try:
            return os.stat(self._wal).st_size  # noqa: PTH116  on the hot path: a third of Path.stat's cost
        except OSError:
            return 0


def _used_bytes(db: sqlite.Connection) -> int:
    """Returns how much was written since the log last began; 0 if all of it has been moved into the file."""
    _, frames, moved = db.execute("PRAGMA wal_checkpoint(NOOP)").fetchone()
    [page_bytes] = db.execute("PRAGMA page_size").fetchone()
    used: int = 0 if frames == moved else frames * (page_bytes + FRAME_HEADER_BYTES)
    return used


def _make_checkpoint(db: sqlite.Connection, mode: Literal["RESTART", "TRUNCATE"]) -> bool:
    """Returns False if a reader still needs the log."""
    db.execute(f"PRAGMA busy_timeout = {WAIT_FOR_READERS_MS}")
    try:
        busy: int = db.execute(f"PRAGMA wal_checkpoint({mode})").fetchone()[0]
    finally:
        db.execute("PRAGMA busy_timeout = 0")
    return busy == 0


FREE_PAGES_KEPT: Final = 1000
PAGES_GIVEN_BACK_AT_ONCE: Final = 500

_SPACE: Final = "SELECT freelist_count, page_count FROM pragma_freelist_count, pragma_page_count"


def give_space_back(tx: Tx) -> None:
    """Shrinks the file by some pages if much of it is empty. A few free pages are kept, because they will be used."""
    space = tx.row(_SPACE)
    assert space is not None
    free_pages, pages = space
    if free_pages > FREE_PAGES_KEPT and free_pages * 4 > pages:
        for _ in range(PAGES_GIVEN_BACK_AT_ONCE):
            # Page by page, because Python's own driver stops after the first of several.
            tx.run("PRAGMA incremental_vacuum(1)")
