"""The SQLite library of this process: which copy is used, what its errors mean, and how long its lock is waited for.

The copy is that of `pysqlite3` if this is installed, otherwise Python's own. Everything in this package imports
`sqlite` from here, because two copies of SQLite in one process must never open the same file: each would drop the
other's locks.
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
    """Whether a checkpoint can race with the commit of another process and corrupt the file, as it can up to SQLite
    3.51.2 (see checkpoint.py)."""
    return sqlite.sqlite_version_info < _WAL_RESET_FIXED_IN


@cache
def warn_about_library() -> None:
    """Warns once about a library with this bug. ropewalk's own checkpoints avoid it; those of other programs do not."""
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
"""The words of the library for a statement that does not fit the schema. ropewalk's statements fit the schema that its
migrations make, because the tests prepare every one of them; so something else has changed the schema."""
_BREAKING: Final = frozenset({_IOERR, _CORRUPT, _NOTADB, _NOMEM})
"""A connection cannot be trusted any more after one of these errors."""


def code_of(error: BaseException) -> int | None:
    """Returns the primary result code of an error; None if it is not an error of SQLite."""
    code = getattr(error, "sqlite_errorcode", None) if isinstance(error, sqlite.Error) else None
    return None if code is None else code & 0xFF


def is_busy(error: BaseException) -> bool:
    """Whether the error means that another connection holds the file locked."""
    return code_of(error) in (BUSY, LOCKED)


def breaks_connection(error: BaseException) -> bool:
    """Whether the connection cannot be trusted any more after this error."""
    return code_of(error) in _BREAKING


def met_damage(error: Exception) -> bool:
    """Whether the error means that a row contains junk. SQLite has no code for that, only words."""
    if decoded_error(error):
        return True
    return isinstance(error, sqlite.Error) and any(words in str(error) for words in _DAMAGE)


def is_of_a_users_statement(error: Exception) -> bool:
    """Whether a statement that a user wrote is at fault and not the file. The driver's error then explains it best."""
    return code_of(error) == _ERROR


def translated(error: Exception, path: Path, *, committing: bool = False) -> Exception:
    """Returns the error that the caller gets. An error for which neither the file nor its disk nor another process is
    responsible is a defect of ropewalk, and is returned as it is."""
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
    found = _ADVICE.get(code) if code is not None else None
    if found is None:
        return error
    kind, advice = found
    return kind(f"{path}: {error} ({getattr(error, 'sqlite_errorname', code)}): {advice}")


_ADVICE: Final[dict[int, tuple[type[RopewalkError], str]]] = {
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
"""A file that another process holds locked is waited for no longer than this."""
_NEVER_SET: Final = threading.Event()


class LockWait:
    """One wait for another process that holds the file locked. It begins when the object is made.

    It takes real time, whatever the clock of the runtime, because the process that holds the lock does not share that
    clock. It measures this time instead of adding up its steps: on a busy machine, a step takes many times as long as
    it should.
    """

    def __init__(self) -> None:
        self._ends_at = _real_seconds() + LOCKED_SECONDS_MAX

    @property
    def over(self) -> bool:
        """Whether the limit of time has passed."""
        return _real_seconds() >= self._ends_at

    def step(self, seconds: float) -> None:
        """Blocks the thread for this long."""
        _NEVER_SET.wait(seconds)


def _real_seconds() -> float:
    return time.monotonic()  # noqa: TID251  the runtime's clock may be a fake one, and this wait is for another process
