"""A value that does not fit, with its place: what the codec raises, before anybody knows whose value it is."""

from __future__ import annotations

import msgspec

from ropewalk.errors import InvalidInput

REFUSALS = (msgspec.MsgspecError, TypeError, ValueError, OverflowError, AttributeError, RecursionError)
"""all that msgspec and the functions of registered types raise about a value"""

ROOT = "$"


class ValueMismatch(InvalidInput):
    """`problem` at `path` (as in `$.items[3].price`). Callers that know the argument's name say it better."""

    def __init__(self, problem: str, path: str = ROOT) -> None:
        super().__init__(problem if path == ROOT else f"{problem} at {path}")
        self.problem = problem
        self.path = path

    def under(self, step: str) -> ValueMismatch:
        """The same, seen from one level further out."""
        return ValueMismatch(self.problem, f"{ROOT}{step}{self.path.removeprefix(ROOT)}")


def misfit(error: Exception) -> ValueMismatch:
    """msgspec's `Expected X, got Y - at $.path`, and everything else a value can provoke, as a Misfit."""
    if isinstance(error, ValueMismatch):
        return error
    if isinstance(error, RecursionError):
        return ValueMismatch("it is nested too deeply, or contains itself")
    problem, _, place = str(error).partition(" - at ")
    path = place.replace("`", "")
    if isinstance(error, msgspec.DecodeError) and not isinstance(error, msgspec.ValidationError):
        problem = f"this is not JSON: {problem}"
    return ValueMismatch(problem[:1].lower() + problem[1:], path or ROOT)
