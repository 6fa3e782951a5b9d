"""With which code a process of ropewalk ends, and which error makes which code."""

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
    OK = 0
    FAILED = 1
    USAGE = 2
    STORE = 3
    INTERRUPTED = 130


def code_for(error: RopewalkError) -> ExitCode:
    match error:
        case StoreUnavailable() | StoreRefused():
            return ExitCode.STORE
        case InvalidInput() | DefinitionError() | UnknownJobType():
            return ExitCode.USAGE
        case _:
            # A worker that gave up says so in an error of its own; what it gave up on is the cause.
            return ExitCode.STORE if isinstance(error.__cause__, StoreUnavailable | StoreRefused) else ExitCode.FAILED
