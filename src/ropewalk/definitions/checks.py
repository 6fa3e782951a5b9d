"""Checks of single option values. Each returns the value in the domain's terms, or raises InvalidInput naming it."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from inspect import Parameter
from types import NoneType
from typing import Any, Final, Literal, TypeAlias, cast

from ropewalk.domain.jobs.lease import LEASE_MIN
from ropewalk.domain.jobs.retry import Backoff
from ropewalk.domain.time import SECOND, Seconds, Span, to_span
from ropewalk.errors import InvalidInput

Check: TypeAlias = Callable[[Any, str], Any]

BY_PLACE: Final = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)


def known_names(given: Iterable[str], allowed: Collection[str], what: str) -> None:
    """Refuse an option nobody knows, naming the nearest one that exists."""
    for name in given:
        if name not in allowed:
            options = sorted(allowed)
            near = difflib.get_close_matches(str(name), options, n=1)
            hint = f"did you mean {near[0]!r}? " if near else ""
            raise InvalidInput(f"{name!r} is no {what}; {hint}Allowed: {', '.join(options)}", field=name)


def text(value: object, field: str) -> str:
    if not isinstance(value, str):
        raise _wrong(field, value, "a string")
    if not value:
        raise InvalidInput(f"{field} is empty: give it at least one character", field=field)
    return value


def text_or_none(value: object, field: str) -> str | None:
    return None if value is None else text(value, field)


def flag(value: object, field: str) -> bool:
    if not isinstance(value, bool):
        raise _wrong(field, value, "True or False")
    return value


def integer(value: object, field: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise _wrong(field, value, "a whole number")
    return int(value)


def positive(value: object, field: str) -> int:
    if (number := integer(value, field)) < 1:
        raise _wrong(field, value, "at least 1")
    return number


def positive_or_none(value: object, field: str) -> int | None:
    return None if value is None else positive(value, field)


def positive_span(value: Seconds, field: str) -> Span:
    if not (us := to_span(value, field)):
        raise _wrong(field, value, "more than 0 seconds")
    return us


def lease(value: Seconds, field: str) -> Span:
    if (us := to_span(value, field)) < LEASE_MIN:
        raise _wrong(field, value, f"at least {LEASE_MIN / SECOND:g} second")
    return us


def backoff(value: object, field: str) -> Backoff:
    if callable(value) and not isinstance(value, Backoff):
        raise InvalidInput(f"{field} is a function, which cannot be stored: give it to @job({field}=...)", field=field)
    if not isinstance(value, Backoff):
        raise _wrong(field, value, "a Backoff, such as Backoff.exponential(1, max=60)")
    return value


def some(value: object, field: str) -> object:
    """None, or a list of at least one."""
    if isinstance(value, str) or not isinstance(value, Sequence | NoneType):
        raise _wrong(field, value, "a list")
    if value is not None and not value:
        raise InvalidInput(f"{field} is empty: name at least one", field=field)
    return cast("object", value)


def key_scope(value: object, field: str) -> Literal["open", "any"]:
    match value:
        case "open":
            return "open"
        case "any":
            return "any"
        case _:
            raise _wrong(field, value, "'open' or 'any'")


def tags(value: object, field: str) -> dict[str, str]:
    if not isinstance(value, Mapping):
        raise _wrong(field, value, "a mapping of strings to strings")
    return dict(cast("Mapping[str, str]", value))


def function(value: object, field: str) -> Callable[..., Any]:
    if not callable(value):
        raise _wrong(field, value, "a function")
    return value


def classifier(value: object, field: str) -> Callable[..., Any]:
    decide = function(value, field)
    signature = signature_of(decide)
    given = ("error", 1) if takes_attempt(decide) else ("error",)
    try:
        if signature is not None:
            signature.bind(*given)
    except TypeError:
        fits = False
    else:
        fits = not inspect.iscoroutinefunction(decide)
    if not fits:
        raise _wrong(field, value, "a function of the exception, or of the exception and the attempt, and not async")
    return decide


def takes_attempt(decide: Callable[..., object]) -> bool:
    """Whether a classifier wants the number of the attempt: by a second parameter that it needs, or that is called so.

    A second parameter that has a default value is a setting of the function's own.
    """
    signature = signature_of(decide)
    places = [] if signature is None else [each for each in signature.parameters.values() if each.kind in BY_PLACE]
    return len(places) > 1 and (places[1].default is Parameter.empty or places[1].name == "attempt")


def signature_of(called: Callable[..., object]) -> inspect.Signature | None:
    """None for what is written in C and does not tell."""
    try:
        return inspect.signature(called)
    except (TypeError, ValueError):
        return None


def exception_types(value: object, field: str) -> tuple[type[BaseException], ...]:
    given = cast("tuple[type[BaseException], ...]", value if isinstance(value, tuple) else (value,))
    for each in given:
        if not (isinstance(each, type) and issubclass(each, BaseException)):
            raise _wrong(field, given, "a tuple of exception classes")
    return given


def _wrong(field: str, value: object, wanted: str) -> InvalidInput:
    return InvalidInput(f"{field}={value!r} must be {wanted}", field=field)
