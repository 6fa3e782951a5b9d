"""The context of the handler that runs here, for code that was not handed it."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar, Token
from typing import Final

from ropewalk.definitions.context.context import Context

_CURRENT: Final[ContextVar[Context]] = ContextVar("ropewalk_context")


def current() -> Context:
    """Raises RuntimeError outside a handler."""
    try:
        return _CURRENT.get()
    except LookupError:
        raise RuntimeError("current() is for code called by a handler: there is no running job here") from None


activate: Final[Callable[[Context], Token[Context]]] = _CURRENT.set
"""for the engine: this context is the current one until `deactivate` is called with what this returns"""
deactivate: Final[Callable[[Token[Context]], None]] = _CURRENT.reset
