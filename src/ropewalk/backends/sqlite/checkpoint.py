"""Moving the write-ahead log back into the file, bounded, at one moment of our choosing.

SQLite's automatic checkpoints run beside other processes' commits, and up to 3.51.2 that can corrupt the file. A
TRUNCATE checkpoint holds the write lock, so nobody commits meanwhile, on every version; and it leaves an empty log, so
its size says how much there is to move. It costs nothing measurable against the automatic one.
"""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import Final

from ropewalk.backends.sqlite.library import sqlite

WAL_BYTES_MAX: Final = 16 * 1024 * 1024
WAL_BYTES_ALARMING: Final = 256 * 1024 * 1024
WAIT_FOR_READERS_MS: Final = 250


class Checkpointer:
    def __init__(self, path: Path) -> None:
        self._wal = path.with_name(path.name + "-wal")
        self._next_bytes = WAL_BYTES_MAX

    def after_commit(self, db: sqlite.Connection) -> None:
        size = self._size()
        if size < self._next_bytes:
            return
        if self._move_back(db):
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

    def _move_back(self, db: sqlite.Connection) -> bool:
        db.execute(f"PRAGMA busy_timeout = {WAIT_FOR_READERS_MS}")
        try:
            busy: int = db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
        finally:
            db.execute("PRAGMA busy_timeout = 0")
        return busy == 0

    def _size(self) -> int:
        try:
            return os.stat(self._wal).st_size  # noqa: PTH116  on the hot path: a third of Path.stat's cost
        except OSError:
            return 0
