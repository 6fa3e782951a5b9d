"""Exceptions that the library raises in a handler and that end its attempt in a way of their own."""

from __future__ import annotations

from typing import Final

from ropewalk.domain.workflow.completion import Suspension
from ropewalk.errors import Abort, RopewalkError

BAD_RESULT: Final = "bad_result"
"""The code of the error if the result of a job, or the value of one of its steps, does not fit."""


class Suspend(BaseException):
    """Raised by ctx.sleep and ctx.wait_for, so that the handler ends and runs again from the top after the wait.

    It is no Exception, so that it passes through `except Exception` in the handler.
    """

    def __init__(self, suspension: Suspension) -> None:
        super().__init__(f"suspended at {suspension.name!r}")
        self.suspension = suspension


class Nondeterministic(RopewalkError):
    """The handler ran other steps than the stored ones, so the job fails for good with the code `nondeterministic`."""


class AbortWithCode(Abort):
    """The job fails for good, with `cause` as its error and with this code."""

    def __init__(self, cause: Exception, code: str) -> None:
        super().__init__(cause)
        self.cause: Exception = cause
        self.code = code
