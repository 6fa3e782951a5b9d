"""Checks of single values from users: options, arguments of methods of the client, and fields of settings.

Each check takes a value and the name of its field, and returns the value as the domain uses it. If the value does not
fit, it raises InvalidInput, which names the field, the value and what to give instead. Nothing has been written then.

A field that takes several values (names, states, job types) also takes a single one. A string is always a single name,
never a list of characters. Only `several` implements this rule.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from enum import StrEnum
from typing import Any, Final, Literal, TypeAlias, TypeGuard, TypeVar, cast

from ropewalk.domain.shown_values import shown
from ropewalk.domain.time import SECOND, SPAN_MAX, Seconds, Span, to_delay, to_span
from ropewalk.errors import InvalidInput, Outcome

T = TypeVar("T")
E = TypeVar("E", bound=StrEnum)

Check: TypeAlias = Callable[[Any, str], Any]

INTEGER_MAX: Final = 2**63 - 1
"""Larger numbers do not fit into a column of any store."""


# ── text ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def text(value: object, field: str) -> str:
    """Accepts a string of at least one character that every store can keep."""
    if not isinstance(value, str):
        raise wrong(field, value, "a string")
    if not value:
        raise InvalidInput(f"{field} is empty: give it at least one character", field=field)
    return storable(value, field)


def text_or_none(value: object, field: str) -> str | None:
    return None if value is None else text(value, field)


def message_or_none(value: object, field: str) -> str | None:
    """Accepts text for people, which may be empty, or None."""
    return "" if value == "" else text_or_none(value, field)


def storable(value: str, field: str) -> str:
    """Refuses a string that some store could not keep or would change."""
    if "\x00" in value:
        raise InvalidInput(f"{field}: {shown(value)} contains a NUL character: leave it out", field=field)
    if not value.isascii() and any("\ud800" <= char <= "\udfff" for char in value):
        raise InvalidInput(f"{field}: {shown(value)} contains half a surrogate pair, which is not text", field=field)
    return value


# ── several ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def several(value: object, field: str, each: Callable[[object, str], T]) -> tuple[T, ...]:
    """Accepts several values, each of which `each` checks. A value that is not iterable, or a string, is a single
    one."""
    if isinstance(value, str) or not isinstance(value, Iterable):
        return (each(value, field),)
    if isinstance(value, bytes | bytearray | Mapping):
        raise wrong(field, cast("object", value), "a list")
    return tuple(each(item, field) for item in cast("Iterable[object]", value))


def names(value: object, field: str) -> tuple[str, ...]:
    return several(value, field, text)


def some_or_none(value: object, field: str, each: Callable[[object, str], T]) -> tuple[T, ...] | None:
    """Accepts None, or at least one value, each of which `each` checks."""
    if value is None:
        return None
    found = several(value, field, each)
    if not found:
        raise InvalidInput(f"{field} is empty: name at least one, or leave it out", field=field)
    return found


def reusable(value: T, field: str) -> T:
    """Refuses an iterator for a value that is read more than once, because it would be empty the second time."""
    if _is_iterator(value):
        raise InvalidInput(f"{field}={shown(value)} can be read only once: give a list, such as list(...)", field=field)
    return value


def _is_iterator(value: object) -> bool:
    return isinstance(value, Iterator)


# ── one of a few ────────────────────────────────────────────────────────────────────────────────────────────────────


def known_names(given: Iterable[str], allowed: Collection[str], what: str) -> None:
    """Refuses names that are not allowed; the error names the nearest one that is."""
    for name in given:
        if name not in allowed:
            options = sorted(allowed)
            raise InvalidInput(
                f"{shown(name)} is no {what}{_nearest(name, options) or ';'} Allowed: {', '.join(options)}", field=name
            )


def choice(value: object, field: str, allowed: Collection[T], *, also: str = "") -> T:
    """Accepts one of a few fixed values. For the message, `also` describes what else the field takes."""
    for each in allowed:
        if type(value) is type(each) and value == each:
            return each
    words = [repr(each) for each in allowed]
    raise wrong(field, value, _either([*words, also] if also else words) + _nearest(value, allowed))


def member(value: object, field: str, of: type[E]) -> E:
    """Accepts a member of an enum, or its value as plain text."""
    if isinstance(value, str):
        for each in of:
            if each == value:
                return each
    raise wrong(field, value, _either([repr(each.value) for each in of]) + _nearest(value, list(of)))


def key_scope(value: object, field: str) -> Literal["open", "any"]:
    return choice(value, field, ("open", "any"))


# ── numbers and durations ───────────────────────────────────────────────────────────────────────────────────────────


def flag(value: object, field: str) -> bool:
    if not isinstance(value, bool):
        raise wrong(field, value, "True or False")
    return value


def flag_or_none(value: object, field: str) -> bool | None:
    if value is not None and not isinstance(value, bool):
        raise wrong(field, value, "True, False or None")
    return value


def integer(value: object, field: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise wrong(field, value, "a whole number")
    if not -INTEGER_MAX <= value <= INTEGER_MAX:
        raise wrong(field, value, "a whole number of at most 64 bits")
    return int(value)


def integer_or_none(value: object, field: str) -> int | None:
    return None if value is None else integer(value, field)


def positive(value: object, field: str) -> int:
    return between(value, field, 1, None)


def positive_or_none(value: object, field: str) -> int | None:
    return None if value is None else positive(value, field)


def between(value: object, field: str, low: int, high: int | None) -> int:
    """Accepts a whole number within these bounds, both included; `high=None` means no upper bound."""
    number = integer(value, field)
    if number < low or (high is not None and number > high):
        span = f"at least {low:,}" if high is None else f"between {low:,} and {high:,}"
        raise wrong(field, value, span)
    return number


def number(value: object, field: str, low: float, high: float = float("inf")) -> float:
    """Accepts a finite number of at least `low` and at most `high`."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not low <= cast("float", value) <= high or value == float("inf"):
        span = f"of at least {low:g}" if high == float("inf") else f"from {low:g} to {high:g}"
        raise wrong(field, value, f"a number {span}")
    return cast("float", value)


def positive_span(value: Seconds, field: str) -> Span:
    if not (us := to_span(value, field)):
        raise wrong(field, value, "more than 0 seconds")
    return us


def positive_span_or_none(value: Seconds | None, field: str) -> Span | None:
    return None if value is None else positive_span(value, field)


def span_us_or_none(value: object, field: str) -> Span | None:
    """Accepts a duration that is already in microseconds, as settings contain it, or None."""
    return None if value is None else between(value, field, 0, SPAN_MAX)


def timeout(value: Seconds | None, field: str = "timeout") -> float | None:
    """Returns how long a caller waits, in seconds. A negative value becomes 0; None means that there is no limit."""
    return None if value is None else to_delay(value, field) / SECOND


# ── mappings, functions, objects ────────────────────────────────────────────────────────────────────────────────────


def mapping(value: object, field: str) -> Mapping[str, object]:
    """Accepts a mapping whose keys are strings."""
    if not isinstance(value, Mapping):
        raise wrong(field, value, "a mapping, such as a dict")
    for key in cast("Mapping[object, object]", value):
        if not isinstance(key, str):
            raise InvalidInput(f"{field} has the key {shown(key)}: keys must be strings", field=field)
    return cast("Mapping[str, object]", value)


def tags(value: object, field: str) -> dict[str, str]:
    if not isinstance(value, Mapping):
        raise wrong(field, value, "a mapping of strings to strings")
    found = dict(cast("Mapping[object, object]", value))
    for name, each in found.items():
        if not isinstance(name, str) or not isinstance(each, str):
            raise InvalidInput(f"{field}: {shown(name)}={shown(each)}: names and values must be strings", field=field)
        storable(name, field)
        storable(each, field)
    return cast("dict[str, str]", found)


def function(value: object, field: str) -> Callable[..., Any]:
    if not callable(value):
        raise wrong(field, value, "a function")
    return value


def function_or_none(value: object, field: str) -> Callable[..., Any] | None:
    return None if value is None else function(value, field)


def instance(value: object, field: str, kind: type[T], example: str) -> T:
    """Accepts an object of this class."""
    if not isinstance(value, kind):
        raise wrong(field, value, f"a {kind.__name__}, such as {example}")
    return value


def instance_or_none(value: object, field: str, kind: type[T], example: str) -> T | None:
    return None if value is None else instance(value, field, kind, example)


def with_methods(value: T, field: str, methods: Collection[str], wanted: str) -> T:
    """Accepts an object of any class that has these methods."""
    if not _has_methods(value, methods):
        raise wrong(field, value, wanted)
    return value


def _has_methods(value: object, names: Collection[str]) -> bool:
    return not isinstance(value, type) and all(callable(getattr(value, name, None)) for name in names)


def exception_types(value: object, field: str) -> tuple[type[BaseException], ...]:
    return several(value, field, _exception_type)


def _exception_type(value: object, field: str) -> type[BaseException]:
    if not _is_exception_type(value):
        raise wrong(field, value, "a tuple of exception classes")
    return value


def not_an_outcome(value: object, who: str) -> None:
    """Refuses an outcome as a return value, because a handler that returns Abort, Retry or Defer should raise it."""
    if isinstance(value, Outcome):
        name = type(value).__name__
        raise InvalidInput(
            f"{who} returned {shown(value)}, which does nothing when it is returned: write `raise {name}(...)`",
            field="result",
        )


def _is_exception_type(value: object) -> TypeGuard[type[BaseException]]:
    return isinstance(value, type) and issubclass(value, BaseException)


# ── messages ────────────────────────────────────────────────────────────────────────────────────────────────────────


def wrong(field: str, value: object, wanted: str) -> InvalidInput:
    """Returns the error for a value that must be something else."""
    return InvalidInput(f"{field}={shown(value)} must be {wanted}", field=field)


def _either(words: list[str]) -> str:
    *first, last = words
    return f"{', '.join(first)} or {last}" if first else last


def _nearest(given: object, allowed: Iterable[object]) -> str:
    near = difflib.get_close_matches(given, [str(each) for each in allowed], n=1) if isinstance(given, str) else []
    return f"; did you mean {near[0]!r}?" if near else ""
