"""The error that the codec raises for a value that does not fit, with the place in the value.

The codec does not know whose value it is. Callers that know the name of the argument make an InvalidInput of the error.
"""

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
"""Stands for no value."""

SHOWN_CHARS_MAX: Final = 60
"""Characters of a value that an error shows."""

ROOT: Final = "$"
"""The path of the whole value."""

CLEAR_ERRORS: Final = (msgspec.MsgspecError, TypeError, ValueError, OverflowError, AttributeError)
"""Errors whose message alone says what is wrong; for others the message begins with the name of the error."""

_NAMES: Final = re.compile(r"\w+")
_REST_OF_STEP: Final = re.compile(r"""[^'"\[\].]*['"]\]""")
"""The rest of a quoted key behind the secret word in it, with the closing bracket."""
_WITHOUT_VALUES: Final = re.compile(
    r"expected `[^`]*`(, got `[^`]*`| (of length )?[<>]?=? ?[\d.]+)?"
    r"|invalid (UUID|decimal string|base64 encoded string|ISO8601 duration|RFC3339 encoded (datetime|date|time))"
)
"""The messages of msgspec that quote no part of the value. Functions of users may quote anything."""


class ValueMismatch(InvalidInput):
    """A value does not fit its annotation: there is a `problem` at a `path` such as `$.items[3].price`.

    `quotes` says that the problem may quote a part of the value, so that it must not be shown if the value is secret.
    """

    def __init__(self, problem: str, path: str = ROOT, value: object = NOT_GIVEN, *, quotes: bool = False) -> None:
        message = problem if value is NOT_GIVEN or names_secret(path) else f"{problem}, given {_shown(value)}"
        super().__init__(message if path == ROOT else f"{message} at {path}")
        self.problem = problem
        self.path = path
        self.value = value
        """The value that does not fit, if the problem does not mention it; it is not shown if its name is secret."""
        self.quotes = quotes

    def under(self, step: str) -> ValueMismatch:
        """This mismatch with its path seen from one level further out, where `step` leads inside."""
        return self.at(f"{ROOT}{step}{self.path.removeprefix(ROOT)}")

    def at(self, path: str) -> ValueMismatch:
        """This mismatch at another path."""
        return ValueMismatch(self.problem, path, self.value, quotes=self.quotes)

    def hiding(self, marked: Collection[str], whole: str | None = None) -> ValueMismatch:
        """This mismatch without any part of its value, if the value is secret; otherwise the mismatch itself.

        The value is secret because of a name in its path, or because `whole`, the name of the whole value, is among the
        `marked` names. The path behind a secret name is cut off, too, because it may contain a key of the value.
        """
        end = len(ROOT) if whole in marked else _end_of_secret(self.path, marked)
        if end is None:
            return self
        path = self.path[:end] + ("[...]" if self.path[end:] else "")
        return ValueMismatch("the value does not fit" if self.quotes else self.problem, path)

    def unless_hidden(self, marked: Collection[str], whole: str | None = None) -> ValueMismatch | None:
        """This mismatch, as the cause of the error that callers see; None if `hiding` hides a part of it."""
        return self if self.hiding(marked, whole) is self else None

    def without_value(self) -> ValueMismatch:
        """This mismatch without its value."""
        return ValueMismatch(self.problem, self.path, quotes=self.quotes)


def names_secret(path: str, marked: Collection[str] = ()) -> bool:
    """Whether this path contains a name that is secret, either by itself or because it is one of the `marked` ones."""
    return _end_of_secret(path, marked) is not None


def _end_of_secret(path: str, marked: Collection[str]) -> int | None:
    """The end of the first step with a secret name in this path; None if there is none."""
    for name in _NAMES.finditer(path):
        if is_secret(name[0], marked):
            rest = _REST_OF_STEP.match(path, name.end())
            return name.end() if rest is None else rest.end()
    return None


def _shown(value: object) -> str:
    try:
        text = guarded(repr, redacted(value))
    except Exception:  # a class of the user's may raise anything
        text = f"a {type(value).__qualname__}"
    return text if len(text) <= SHOWN_CHARS_MAX else f"{text[:SHOWN_CHARS_MAX]}..."


def as_mismatch(error: Exception) -> ValueMismatch:
    """The ValueMismatch that stands for an error that was raised while a value was encoded or decoded.

    The error may be msgspec's `Expected X, got Y - at $.path`. It may also be any error of a function of the user's (of
    a registered type, of a model, or `__post_init__`), which then counts as a problem of the value.
    """
    if isinstance(error, ValueMismatch):
        return error
    if isinstance(error, RecursionError):
        return ValueMismatch("it is nested too deeply, or contains itself")
    text = error_text(error) if isinstance(error, CLEAR_ERRORS) else f"{type(error).__name__}: {error_text(error)}"
    problem, _, quoted_path = text.partition(" - at ")
    path = quoted_path.replace("`", "")
    if isinstance(error, msgspec.DecodeError) and not isinstance(error, msgspec.ValidationError):
        problem = f"this is not JSON: {problem}"
    if isinstance(error, CLEAR_ERRORS):
        problem = problem[:1].lower() + problem[1:]
    return ValueMismatch(problem, path or ROOT, quotes=_WITHOUT_VALUES.fullmatch(problem) is None)
