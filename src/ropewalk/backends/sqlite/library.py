"""Which SQLite this process uses: the one `pysqlite3` brings where it is installed, else Python's own.

Everything in this package takes `sqlite` from here. Two copies of SQLite in one process must never open the same file:
each would drop the other's locks.

SQLite's error codes as ropewalk's errors, each naming the file and what to do.
"""

from __future__ import annotations

import logging
import re
import threading
import time
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ropewalk.backends.sql.damage import decoded_error
from ropewalk.errors import (
    InvalidInput,
    OutcomeUnknown,
    RopewalkError,
    SchemaMismatch,
    StoreRefused,
    StoreUnavailable,
)

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


# Primary result codes (the low byte), as in sqlite.org/rescode.html: the module's constants are not typed everywhere.
_ERROR: Final = 1
_PERM: Final = 3
BUSY: Final = 5
LOCKED: Final = 6
_NOMEM: Final = 7
_READONLY: Final = 8
_IOERR: Final = 10
_CORRUPT: Final = 11
_FULL: Final = 13
_CANTOPEN: Final = 14
_NOTADB: Final = 26

_DAMAGE: Final = ("malformed JSON", "JSON cannot hold BLOB values", "Could not decode to UTF-8")

_LACKS: Final = re.compile(r"no such (table|column|index)|has no column|has \d+ columns but")
"""What the library says of a statement of ours that does not fit the schema. Our statements fit the schema that our
migrations make: the tests prepare every one of them."""
_BREAKING: Final = frozenset({_IOERR, _CORRUPT, _NOTADB, _NOMEM})
"""after these a connection is not to be trusted any more"""


def code_of(error: BaseException) -> int | None:
    """The primary result code, if SQLite gave one."""
    code = getattr(error, "sqlite_errorcode", None) if isinstance(error, sqlite.Error) else None
    return None if code is None else code & 0xFF


def is_busy(error: BaseException) -> bool:
    return code_of(error) in (BUSY, LOCKED)


def breaks_connection(error: BaseException) -> bool:
    return code_of(error) in _BREAKING


def met_damage(error: Exception) -> bool:
    """Whether a row held what its column should not. SQLite has no code of its own for that, only these words."""
    if decoded_error(error):
        return True
    return isinstance(error, sqlite.Error) and any(words in str(error) for words in _DAMAGE)


def is_of_a_users_statement(error: Exception) -> bool:
    """Whether a statement that a user wrote is at fault, and not the file. The driver's error says what is wrong."""
    return code_of(error) == _ERROR


def translated(error: Exception, path: Path, *, committing: bool = False) -> Exception:
    """What the caller is told. An error that is none of the world's is a defect of ours and stays as it is."""
    if isinstance(error, RopewalkError):
        return error
    if isinstance(error, UnicodeEncodeError | OverflowError):
        return InvalidInput(f"a value cannot be stored in {path}: {error}")
    code = code_of(error)
    if code == _ERROR and _LACKS.search(str(error)):
        return SchemaMismatch(
            f"{path}: {error}: its schema was changed by something else than ropewalk; restore the file from a backup, "
            "or give the path of another one"
        )
    if code == _IOERR and committing:
        return OutcomeUnknown(
            f"{path}: {error} while committing; the change may or may not be there: check the disk, then repeat it "
            "with the same id"
        )
    told = _TOLD.get(code) if code is not None else None
    if told is None:
        return error
    kind, advice = told
    return kind(f"{path}: {error} ({getattr(error, 'sqlite_errorname', code)}): {advice}")


_TOLD: Final[dict[int, tuple[type[RopewalkError], str]]] = {
    _PERM: (StoreUnavailable, "nothing was changed; check the permissions of the file and its directory"),
    BUSY: (StoreUnavailable, "nothing was changed; another process holds the file locked, find out which and end it"),
    LOCKED: (StoreUnavailable, "nothing was changed; another process holds the file locked, find out which and end it"),
    _NOMEM: (StoreUnavailable, "nothing was changed; the process is out of memory"),
    _READONLY: (StoreUnavailable, "nothing was changed; make the file and its directory writable for this user"),
    _IOERR: (StoreUnavailable, "nothing was changed; check the disk"),
    _CORRUPT: (StoreRefused, "the file is damaged; restore it from a backup, or recover it with the sqlite3 shell"),
    _FULL: (StoreUnavailable, "nothing was changed; make room on the disk and it goes on"),
    _CANTOPEN: (StoreUnavailable, "check that the directory exists and is writable for this user"),
    _NOTADB: (StoreRefused, "it is not an SQLite database; give the path of another file"),
}


LOCKED_SECONDS_MAX: Final = 10.0
"""How long we wait for another process that holds the file locked."""
_NEVER_SET: Final = threading.Event()


class LockWait:
    """Begins when it is made."""

    def __init__(self) -> None:
        self._ends_at = _real_seconds() + LOCKED_SECONDS_MAX

    @property
    def over(self) -> bool:
        return _real_seconds() >= self._ends_at

    def step(self, seconds: float) -> None:
        _NEVER_SET.wait(seconds)


def _real_seconds() -> float:
    return time.monotonic()  # noqa: TID251  the runtime's clock may be a fake one, and this wait is for another process
