"""Errors of the worker's side, as data and as exceptions again: only ropewalk's own tree, found by name in it."""

from __future__ import annotations

from typing import Final

from ropewalk import errors
from ropewalk.domain.failure import clipped
from ropewalk.errors import RopewalkError
from ropewalk.runners.messages import Refusal


def refusal(call: int, error: Exception) -> Refusal:
    facts = {name: value for name, value in vars(error).items() if isinstance(value, str | int | float | None)}
    return Refusal(call, type(error).__name__, clipped(str(error)), facts)


def revived(refused: Refusal) -> Exception:
    """The same exception for one of ropewalk's; else a RuntimeError that names it."""
    kind = _KNOWN.get(refused.error)
    if kind is None:
        return RuntimeError(f"{refused.error} in the worker: {refused.message}")
    # Not through __init__: every class has parameters of its own, and all they do is become these attributes.
    error = kind.__new__(kind, refused.message)
    vars(error).update(refused.facts)
    return error


_KNOWN: Final = {
    name: each for name, each in vars(errors).items() if isinstance(each, type) and issubclass(each, RopewalkError)
}
