"""The exit codes of ropewalk's processes, and which error leads to which code."""

from __future__ import annotations

from enum import IntEnum

from ropewalk.errors import (
    DefinitionError,
    InvalidInput,
    RopewalkError,
    StoreRefused,
    StoreUnavailable,
    UnknownJobType,
)


class ExitCode(IntEnum):
    """The exit codes of the command line and of worker processes."""

    OK = 0
    FAILED = 1
    USAGE = 2
    STORE = 3
    INTERRUPTED = 130


def code_for(error: RopewalkError) -> ExitCode:
    """Return the exit code of a process that ends with this error."""
    match error:
        case StoreUnavailable() | StoreRefused():
            return ExitCode.STORE
        case InvalidInput() | DefinitionError() | UnknownJobType():
            return ExitCode.USAGE
        case _:
            # A worker that gave up raises an error of its own, whose cause is the error that it gave up on.
            return ExitCode.STORE if isinstance(error.__cause__, StoreUnavailable | StoreRefused) else ExitCode.FAILED
