"""Moving the write-ahead log back into the file, bounded, at one moment of our choosing.

SQLite's automatic checkpoints run beside other processes' commits, and up to 3.51.2 that can corrupt the file. Ours
hold the write lock, so nobody commits meanwhile, on every version.

A commit costs less in a log that is written from its beginning again than in one that grows: its blocks are there. So
the log is kept, where the library can say how much of it is in use. Older ones cannot: there it is emptied every time,
and its size says how much there is to move.

Giving space back to the file system after much was deleted.
"""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import Final, Literal

from ropewalk.backends.sql.tx import Tx
from ropewalk.backends.sqlite.library import has_wal_reset_bug, sqlite

WAL_BYTES_MAX: Final = 16 * 1024 * 1024
WAL_BYTES_ALARMING: Final = 256 * 1024 * 1024
WAIT_FOR_READERS_MS: Final = 250
FRAME_HEADER_BYTES: Final = 24


class Checkpointer:
    def __init__(self, path: Path) -> None:
        self._wal = path.with_name(path.name + "-wal")
        self._next_bytes = WAL_BYTES_MAX
        self._reuses = not has_wal_reset_bug()

    def after_commit(self, db: sqlite.Connection) -> None:
        size = self._size()
        if size < self._next_bytes or (self._reuses and _used_bytes(db) < self._next_bytes):
            return
        # One that a reader made grow is not kept.
        keeps = self._reuses and size < 2 * WAL_BYTES_MAX
        if _move_back(db, "RESTART" if keeps else "TRUNCATE"):
            self._next_bytes = WAL_BYTES_MAX
            return
        # A reader still needs the log. Asking again after every commit would make all writers wait for it.
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
    """What was written since the log last began, as long as it is not all moved back."""
    _, frames, moved = db.execute("PRAGMA wal_checkpoint(NOOP)").fetchone()
    [page_bytes] = db.execute("PRAGMA page_size").fetchone()
    used: int = 0 if frames == moved else frames * (page_bytes + FRAME_HEADER_BYTES)
    return used


def _move_back(db: sqlite.Connection, mode: Literal["RESTART", "TRUNCATE"]) -> bool:
    db.execute(f"PRAGMA busy_timeout = {WAIT_FOR_READERS_MS}")
    try:
        busy: int = db.execute(f"PRAGMA wal_checkpoint({mode})").fetchone()[0]
    finally:
        db.execute("PRAGMA busy_timeout = 0")
    return busy == 0


FREE_PAGES_KEPT: Final = 1000
PAGES_GIVEN_BACK: Final = 500

_SPACE: Final = "SELECT freelist_count, page_count FROM pragma_freelist_count, pragma_page_count"


def give_back(tx: Tx) -> None:
    """Shrink the file by a little where much of it is empty; what is only about to be reused stays."""
    space = tx.row(_SPACE)
    assert space is not None
    free_pages, pages = space
    if free_pages > FREE_PAGES_KEPT and free_pages * 4 > pages:
        for _ in range(PAGES_GIVEN_BACK):
            tx.run("PRAGMA incremental_vacuum(1)")  # one by one: Python's own driver stops after the first of many
