"""An Abort that also says which code the error of the job has."""

from __future__ import annotations

from ropewalk.errors import Abort


class AbortWithCode(Abort):
    """The job ends as failed at once, with `cause` as its error and with this code."""

    def __init__(self, cause: Exception, code: str) -> None:
        super().__init__(cause)
        self.cause: Exception = cause
        self.code = code
