"""Exceptions with which the library itself ends the attempt of a handler, in a way that only it knows."""

from __future__ import annotations

from typing import Final

from ropewalk.domain.workflow.completion import Suspension
from ropewalk.errors import Abort, RopewalkError

BAD_RESULT: Final = "bad_result"
"""The code of a job that fails because its result, or the value of one of its steps, does not fit."""


class Suspend(BaseException):
    """Raised by ctx.sleep and ctx.wait_for. The handler runs again from the top when the wait is over."""

    def __init__(self, suspension: Suspension) -> None:
        super().__init__(f"suspended at {suspension.name!r}")
        self.suspension = suspension


class Nondeterministic(RopewalkError):
    """The handler did not come by its stored steps as it did before: a permanent failure, code `nondeterministic`."""


class AbortWithCode(Abort):
    """The job ends as failed at once, with `cause` as its error and with this code."""

    def __init__(self, cause: Exception, code: str) -> None:
        super().__init__(cause)
        self.cause: Exception = cause
        self.code = code
