"""An exception as it comes back from a store: text, never the class, so nothing stored is imported or raised."""

from __future__ import annotations

import traceback

from msgspec import Struct

from ropewalk.domain.failure import clipped


class ExceptionData(Struct, frozen=True, kw_only=True):
    type: str
    """module and name of the class, the name alone for a built-in one"""
    message: str
    traceback: str | None = None


def exception_data(error: BaseException) -> ExceptionData:
    kind = type(error)
    name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    trace = None if error.__traceback__ is None else clipped("".join(traceback.format_exception(error)))
    return ExceptionData(type=name, message=clipped(str(error)), traceback=trace)
