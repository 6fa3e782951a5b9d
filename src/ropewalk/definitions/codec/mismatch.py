"""A value that does not fit, with its place: what the codec raises, before anybody knows whose value it is."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final

import msgspec

from ropewalk.domain.redaction import is_secret, redacted
from ropewalk.domain.shown_errors import error_text
from ropewalk.domain.user_calls import guarded
from ropewalk.errors import InvalidInput

NOT_GIVEN: Final = object()
SHOWN_CHARS_MAX: Final = 60
ROOT: Final = "$"
SPEAKING: Final = (msgspec.MsgspecError, TypeError, ValueError, OverflowError, AttributeError)
"""Errors whose message alone says what is wrong; the names of others are told, too."""

_NAMES: Final = re.compile(r"\w+")
_REST_OF_STEP: Final = re.compile(r"""[^'"\[\].]*['"]\]""")
"""Of a key that was quoted: whatever stands behind the secret word in it, and the closing bracket."""
_WITHOUT_VALUES: Final = re.compile(
    r"expected `[^`]*`(, got `[^`]*`| (of length )?[<>]?=? ?[\d.]+)?"
    r"|invalid (UUID|decimal string|base64 encoded string|ISO8601 duration|RFC3339 encoded (datetime|date|time))"
)
"""What msgspec says about a value without quoting any of it. Functions of users may say anything."""


class ValueMismatch(InvalidInput):
    """`problem` at `path` (as in `$.items[3].price`). Callers that know the argument's name say it better.

    `quotes`: the problem may quote a part of the value, so it is not shown where the value is secret.
    """

    def __init__(self, problem: str, path: str = ROOT, value: object = NOT_GIVEN, *, quotes: bool = False) -> None:
        told = problem if value is NOT_GIVEN or names_secret(path) else f"{problem}, given {_shown(value)}"
        super().__init__(told if path == ROOT else f"{told} at {path}")
        self.problem = problem
        self.path = path
        self.value = value
        """The value that does not fit, where the problem does not say it: not shown where its name is secret."""
        self.quotes = quotes

    def under(self, step: str) -> ValueMismatch:
        """The same mismatch, seen from one level further out."""
        return self.at(f"{ROOT}{step}{self.path.removeprefix(ROOT)}")

    def at(self, path: str) -> ValueMismatch:
        return ValueMismatch(self.problem, path, self.value, quotes=self.quotes)

    def hiding(self, marked: Collection[str], whole: str | None = None) -> ValueMismatch:
        """The same mismatch without anything of its value where that is secret: because of its path, or as a `whole`
        that is. A step of the path behind the secret name may be a key, which is a part of the value."""
        end = len(ROOT) if whole in marked else _end_of_secret(self.path, marked)
        if end is None:
            return self
        path = self.path[:end] + ("[...]" if self.path[end:] else "")
        return ValueMismatch("the value does not fit" if self.quotes else self.problem, path)

    def unless_hidden(self, marked: Collection[str], whole: str | None = None) -> ValueMismatch | None:
        """This mismatch as the cause of the error that callers see; None where `hiding` hides something of it."""
        return self if self.hiding(marked, whole) is self else None

    def without_value(self) -> ValueMismatch:
        return ValueMismatch(self.problem, self.path, quotes=self.quotes)


def names_secret(path: str, marked: Collection[str] = ()) -> bool:
    """Whether a name in this path is secret: by itself, or because it is one of those that are `marked`."""
    return _end_of_secret(path, marked) is not None


def _end_of_secret(path: str, marked: Collection[str]) -> int | None:
    """Where the first step of this path ends that has a secret name; None where there is none."""
    for name in _NAMES.finditer(path):
        if is_secret(name[0], marked):
            rest = _REST_OF_STEP.match(path, name.end())
            return name.end() if rest is None else rest.end()
    return None


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
    told = error_text(error) if isinstance(error, SPEAKING) else f"{type(error).__name__}: {error_text(error)}"
    problem, _, place = told.partition(" - at ")
    path = place.replace("`", "")
    if isinstance(error, msgspec.DecodeError) and not isinstance(error, msgspec.ValidationError):
        problem = f"this is not JSON: {problem}"
    if isinstance(error, SPEAKING):
        problem = problem[:1].lower() + problem[1:]
    return ValueMismatch(problem, path or ROOT, quotes=_WITHOUT_VALUES.fullmatch(problem) is None)
