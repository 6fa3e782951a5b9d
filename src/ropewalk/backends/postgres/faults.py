"""Translates errors of PostgreSQL into ropewalk's errors, each of which names the server and says what to do."""

from __future__ import annotations

import re
from typing import Final

import psycopg
from psycopg import errors

from ropewalk.backends.sql.damage import decoded_error
from ropewalk.backends.sql.tx import AlreadyThere
from ropewalk.errors import InvalidInput, OutcomeUnknown, RopewalkError, StoreRefused, StoreUnavailable

LockTimeout = errors.LockNotAvailable
"""A lock was not available within the time for which the session waits."""
_UNREADABLE: Final = re.compile(r"invalid \w+ value|for connection option|invalid connection option")
"""The words of the client library for a parameter of the URL that it cannot use."""
_WRONG_URL: Final = re.compile(
    r"FATAL: +.*(does not exist|authentication failed|no pg_hba\.conf entry|not permitted|permission denied|no such)"
)
"""The words of a server, or of a pooler before it, for a database, a user or a password that it refuses."""
_AGAIN: Final = (AlreadyThere, errors.DeadlockDetected, errors.SerializationFailure)
_SHUT_DOWN: Final = (
    *(errors.AdminShutdown, errors.CrashShutdown, errors.CannotConnectNow, errors.DatabaseDropped),
    *(errors.IdleInTransactionSessionTimeout, errors.ReadOnlySqlTransaction),
)
"""These errors mean that the server is about to stop or has become a standby. Another connection may find its
successor."""
_REFUSED: Final = (errors.InsufficientPrivilege, errors.InvalidCatalogName, errors.UndefinedTable)
_NO_VALUE: Final = (
    *(errors.UntranslatableCharacter, errors.CharacterNotInRepertoire, errors.NumericValueOutOfRange),
    *(errors.ProgramLimitExceeded, UnicodeEncodeError, OverflowError),
)


def may_run_again(error: BaseException) -> bool:
    """Whether another transaction was in the way. The transaction was undone, and may succeed when it runs again."""
    return isinstance(error, _AGAIN)


def breaks_connection(error: BaseException) -> bool:
    """Whether the connection cannot be used any more after this error. Errors of the connection itself have no code."""
    if not isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
        return isinstance(error, _SHUT_DOWN)
    code = error.sqlstate
    return code is None or code.startswith("08") or isinstance(error, _SHUT_DOWN)


def met_damage(error: Exception) -> bool:
    """Whether the error means that a row contains junk: text that is no JSON."""
    return decoded_error(error) or isinstance(error, errors.InvalidTextRepresentation)


def is_of_a_users_statement(error: Exception) -> bool:
    """Whether a statement that a user wrote is at fault and not the server. The driver's error then explains it
    best."""
    return isinstance(error, (*_REFUSED, *_NO_VALUE)) or _holds_nul(error)


def translated(error: Exception, place: str, *, committing: bool = False) -> Exception:
    """Returns the error that the caller gets. An error for which neither the server nor the connection nor another
    transaction is responsible is a defect of ropewalk, and is returned as it is."""
    if isinstance(error, RopewalkError):
        return error
    if isinstance(error, _NO_VALUE) or _holds_nul(error):
        return InvalidInput(f"a value cannot be stored in {place}: {error}")
    if _UNREADABLE.search(str(error)) and getattr(error, "sqlstate", None) is None:
        return InvalidInput(f"{place}: {_first_line(error)}: correct this parameter of the URL", field="url")
    if breaks_connection(error):
        if committing:
            return OutcomeUnknown(
                f"{place}: the connection broke while committing ({_first_line(error)}); the change may or may not be "
                "there: repeat it with the same id"
            )
        return StoreUnavailable(f"{place}: {_first_line(error)}: nothing was changed; {_advice(error)}")
    if isinstance(error, _REFUSED):
        return StoreRefused(f"{place}: {_first_line(error)}: check the URL's user, database and schema")
    if isinstance(error, LockTimeout):
        return StoreUnavailable(
            f"{place}: another transaction holds what this needs and has not ended ({_first_line(error)}): nothing was "
            "changed; try again, and keep transactions that enqueue or lock jobs short"
        )
    if may_run_again(error) or isinstance(error, psycopg.OperationalError):
        return StoreUnavailable(f"{place}: {_first_line(error)}: nothing was changed; try again")
    return error


def _advice(error: Exception) -> str:
    """Returns what to do if no connection could be made. Such an error has no code, only the server's words."""
    if _WRONG_URL.search(str(error)):
        return "the server answered: check the database, the user and the password of the URL"
    return "check that the server answers"


def _holds_nul(error: Exception) -> bool:
    """Whether a text contains a NUL character, which the driver refuses to send."""
    return isinstance(error, psycopg.DataError) and error.sqlstate is None


def _first_line(error: Exception) -> str:
    return (str(error) or type(error).__name__).splitlines()[0]
