"""Which SQLite this process uses: the one `pysqlite3` brings where it is installed, else Python's own.

Everything in this package takes `sqlite` from here. Two copies of SQLite in one process must never open the same file:
each would drop the other's locks.
"""

from __future__ import annotations

import logging
from functools import cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import sqlite3 as sqlite
else:
    try:
        from pysqlite3 import dbapi2 as sqlite
    except ImportError:
        import sqlite3 as sqlite

__all__ = ["has_wal_reset_bug", "sqlite", "warn_about_library"]

_WAL_RESET_FIXED_IN: Final = (3, 51, 3)


def has_wal_reset_bug() -> bool:
    """Up to 3.51.2 a checkpoint can race with another process's commit and corrupt the file (see checkpoint.py)."""
    return sqlite.sqlite_version_info < _WAL_RESET_FIXED_IN


@cache
def warn_about_library() -> None:
    """Say once that the library is one to replace. Our own checkpoints avoid the bug; other programs' do not."""
    if has_wal_reset_bug():
        logging.getLogger("ropewalk.sqlite").warning(
            "SQLite %s can corrupt a file that several processes write, if another program checkpoints it meanwhile; "
            "ropewalk's own checkpoints avoid that. Install a newer one with: pip install 'ropewalk[sqlite]'",
            sqlite.sqlite_version,
        )
