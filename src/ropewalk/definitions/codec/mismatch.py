"""A value that does not fit, with its place: what the codec raises, before anybody knows whose value it is."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final

import msgspec

from ropewalk.domain.redaction import is_secret, redacted
from ropewalk.domain.user_calls import guarded
from ropewalk.errors import InvalidInput

NOT_GIVEN: Final = object()
SHOWN_CHARS_MAX: Final = 60
ROOT: Final = "$"
SPEAKING: Final = (msgspec.MsgspecError, TypeError, ValueError, OverflowError, AttributeError)
"""Errors whose message alone says what is wrong; the names of others are told, too."""

_NAMES: Final = re.compile(r"\w+")


class ValueMismatch(InvalidInput):
    """`problem` at `path` (as in `$.items[3].price`). Callers that know the argument's name say it better."""

    def __init__(self, problem: str, path: str = ROOT, value: object = NOT_GIVEN) -> None:
        told = problem if value is NOT_GIVEN or names_secret(path) else f"{problem}, given {_shown(value)}"
        super().__init__(told if path == ROOT else f"{told} at {path}")
        self.problem = problem
        self.path = path
        self.value = value
        """The value that does not fit, where the problem does not say it: not shown where its name is secret."""

    def under(self, step: str) -> ValueMismatch:
        """The same mismatch, seen from one level further out."""
        return self.at(f"{ROOT}{step}{self.path.removeprefix(ROOT)}")

    def at(self, path: str) -> ValueMismatch:
        return ValueMismatch(self.problem, path, self.value)

    def hiding(self, marked: Collection[str], whole: str | None = None) -> ValueMismatch:
        """The same mismatch without its value where that is secret: because of its path, or as a `whole` that is."""
        return self.without_value() if whole in marked or names_secret(self.path, marked) else self

    def without_value(self) -> ValueMismatch:
        return ValueMismatch(self.problem, self.path)


def names_secret(path: str, marked: Collection[str] = ()) -> bool:
    """Whether a name in this path is secret: by itself, or because it is one of those that are `marked`."""
    return any(is_secret(name, marked) for name in _NAMES.findall(path))


def _shown(value: object) -> str:
    try:
        told = guarded(repr, redacted(value))
    except Exception:  # a class of the user's may raise anything
        told = f"a {type(value).__qualname__}"
    return told if len(told) <= SHOWN_CHARS_MAX else f"{told[:SHOWN_CHARS_MAX]}..."


def misfit(error: Exception) -> ValueMismatch:
    """msgspec's `Expected X, got Y - at $.path`, or whatever else a value can provoke, as a ValueMismatch.

    Functions of the user's (of registered types, of models, `__post_init__`) run while a value is encoded or decoded.
    They may raise anything, and all of it is said about the value.
    """
    if isinstance(error, ValueMismatch):
        return error
    if isinstance(error, RecursionError):
        return ValueMismatch("it is nested too deeply, or contains itself")
    told = str(error) if isinstance(error, SPEAKING) else f"{type(error).__name__}: {error}"
    problem, _, place = told.partition(" - at ")
    path = place.replace("`", "")
    if isinstance(error, msgspec.DecodeError) and not isinstance(error, msgspec.ValidationError):
        problem = f"this is not JSON: {problem}"
    if isinstance(error, SPEAKING):
        problem = problem[:1].lower() + problem[1:]
    return ValueMismatch(problem, path or ROOT)
