"""The one place that hides secrets: by the name they go under, or because their annotation says so.

Used for everything that leaves towards people: log fields and arguments of log messages, kept log lines, log contexts,
messages of errors, what the command line shows. Payloads are not touched: handlers get what was enqueued.

Values of every shape that the codec can write are looked through. What has nothing to hide is passed on as it is; an
object that has is replaced by a dict of its fields.
"""

from __future__ import annotations

import re
import traceback
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from copy import copy
from dataclasses import fields, is_dataclass
from functools import lru_cache
from itertools import pairwise
from types import SimpleNamespace
from typing import Any, Final, Literal, Protocol, TypeAlias, TypeGuard, cast, get_args, get_type_hints

from msgspec import Struct
from msgspec.structs import force_setattr

from ropewalk.domain.user_calls import guarded

HIDDEN: Final = "[hidden]"
RESULT: Final = "return"
"""Stands for the result among the names of secrets, as it does in `__annotations__`; no argument can have this name."""
DEPTH_MAX: Final = 16
"""what is nested deeper is not looked through, and therefore not shown"""

SECRET_KEYS: Final = frozenset(
    {
        *("password", "passwd", "passphrase", "passcode", "pwd", "secret", "token", "jwt", "csrf", "xsrf", "signature"),
        *("authorization", "auth", "bearer", "credential", "otp", "totp", "mfacode", "pin", "cvv", "cvc", "ssn"),
        *("cookie", "sessionid", "sessionkey", "sessid", "jsessionid", "phpsessid"),
        *("apikey", "privatekey", "accesskey", "secretkey", "signingkey", "encryptionkey"),
    }
)
"""A name is secret when one of its words, or two neighbours together, is one of these; plurals too."""
FACTS: Final = frozenset(
    {
        *("count", "used", "total", "limit", "max", "min", "length", "size", "bytes", "policy", "type", "kind"),
        *("method", "scheme", "algorithm", "version", "status", "at", "age", "ttl", "expiry", "seconds", "days"),
        *("required", "enabled", "provider"),
    }
)
"""A name that ends with one of these tells something about a secret, and not the secret: `token_count`."""
_AMOUNTS: Final = frozenset({"max", "min", "num", "total"})
"""A name that begins with one of these and ends with a plural is a number: `max_tokens`."""

_WORDS: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")


Rebuild: TypeAlias = Callable[[Any, dict[str, object]], object]
"""Makes the replacement of an object of which a field is hidden, from the object and its fields."""


Carriers: TypeAlias = Literal["show", "keep"]
"""What becomes of a carrier in which nothing is hidden: it is shown as it shows itself, or kept as the object it is."""


class Hide(Protocol):
    """Hides what is secret in a value, and what goes under one of `names` in it."""

    def __call__(self, value: object, names: Collection[str] = ()) -> Any: ...


class Carrier(Protocol):
    """An object that carries arguments or results, and knows what of them is marked as Secret."""

    def __redacted__(self, hide: Hide) -> object:
        """What is shown in its place: never encoded arguments. Itself where its own `repr` shows as much."""


class Secret:
    """Marks what is shown to nobody: an argument `card: Annotated[str, Secret]`, or a field of a class like that."""


def redacted(value: object, keys: Collection[str] = ()) -> Any:
    """`value` with what is secret hidden: by its mark, or its name (one of `keys`, or what SECRET_KEYS says)."""
    return _Redaction(lambda name: is_secret(name, keys), _as_dict).of(value)


def concealed(value: object, keys: Collection[str] = ()) -> Any:
    """`value` for a function of the user's that looks for something in it: objects keep their type.

    Only what is marked as Secret, or named in `keys`, is hidden.
    """
    return _Redaction(lambda name: name in keys, _as_copy).of(value)


def message_value(value: object) -> Any:
    """`value` for the message of an error: a job in which nothing is secret stays a job, which shows itself."""
    return _Redaction(is_secret, _as_dict, carriers="keep").of(value)


def placeholder(value: object, keys: Collection[str] = ()) -> tuple[str, ...] | None:
    """The names that lead to where HIDDEN is given in place of a secret; None where it is not."""
    return _placeholder(value, keys, secret=False, above=())


def _placeholder(
    value: object, keys: Collection[str], *, secret: bool, above: tuple[int, ...]
) -> tuple[str, ...] | None:
    too_deep = len(above) > DEPTH_MAX
    if isinstance(value, str):
        return () if value == HIDDEN and (secret or too_deep) else None
    if too_deep or id(value) in above or isinstance(value, _SCALARS):
        return None
    below = (*above, id(value))
    held = _entries(value)
    if held is not None:
        marked = marked_fields(cast("Any", type(value)))
        for name, item in held.items():
            hides = secret or name in marked or is_secret(name, keys)
            if (found := _placeholder(item, keys, secret=hides, above=below)) is not None:
                return str(name), *found
    elif isinstance(value, list | tuple | set | frozenset | deque):
        for item in cast("Collection[object]", value):
            if (found := _placeholder(item, keys, secret=secret, above=below)) is not None:
                return found
    return None


def _entries(value: object) -> Mapping[object, object] | None:
    if isinstance(value, Mapping):
        return cast("Mapping[object, object]", value)
    return cast("Mapping[object, object] | None", _held(value))


def shown_fields(value: Any, hide: Hide, secrets: Collection[str], values: Collection[str]) -> dict[str, object]:
    """The fields of a dataclass that knows the names of secrets. In those that `values` names, these are hidden too."""
    shown = {each.name: hide(getattr(value, each.name)) for each in fields(value) if each.name not in values}
    return {**shown, **hide({name: getattr(value, name) for name in values}, secrets), "secrets": tuple(secrets)}


def is_secret(name: object, keys: Collection[str] = ()) -> bool:
    """Whether a name is one of `keys`, or says by its words that what goes under it is secret."""
    if not isinstance(name, str):
        return False
    if name in keys:
        return True
    words = [word.lower() for word in _WORDS.findall(name)]
    if not words or words[-1] in FACTS or (words[0] in _AMOUNTS and words[-1].endswith("s")):
        return False
    pairs = [one + other for one, other in pairwise(words)]
    return any(word in SECRET_KEYS or word.removesuffix("s") in SECRET_KEYS for word in (*words, *pairs))


# ── values ──────────────────────────────────────────────────────────────────────────────────────────────────────────


class _Redaction:
    """One walk through a value, which may contain itself."""

    def __init__(self, hides: Callable[[object], bool], rebuild: Rebuild, carriers: Carriers = "show") -> None:
        self._hides: Callable[[object], bool] = hides
        self._rebuild = rebuild
        self._carriers = carriers
        self._above: set[int] = set()
        self._hid = False

    def of(self, value: object) -> object:
        if len(self._above) > DEPTH_MAX or id(value) in self._above:
            return HIDDEN
        if isinstance(value, _SCALARS):
            return value
        self._above.add(id(value))
        try:
            return self._looked_through(value)
        finally:
            self._above.discard(id(value))

    def _looked_through(self, value: object) -> object:
        if _is_carrier(value):
            return self._carrier(value)
        if isinstance(value, Mapping):
            return self._mapping(cast("Mapping[object, object]", value))
        if isinstance(value, BaseException):
            shown = self._args(value)
            return value if shown is value.args else f"{type(value).__name__}: {_joined(shown)}"
        held = _held(value)
        if held is not None:
            return self._fields(value, held)
        if isinstance(value, list | tuple | set | frozenset | deque):
            return self._items(cast("Collection[object]", value))
        return f"<{type(value).__qualname__} {HIDDEN}>" if self._has_secret_attribute(value) else value

    def _hide(self, value: object, names: Collection[str] = ()) -> object:
        hides = self._hides

        def hides_more(name: object) -> bool:
            return name in names or hides(name)

        self._hides = hides_more
        try:
            shown = self.of(value)
        finally:
            self._hides = hides
        self._hid = self._hid or shown is not value
        return shown

    def _carrier(self, value: Carrier) -> object:
        before, self._hid = self._hid, False
        try:
            shown = value.__redacted__(self._hide)
            return value if self._carriers == "keep" and not self._hid else shown
        finally:
            self._hid = before

    def _args(self, error: BaseException) -> object:
        """A message that an exception makes of a carrier with nothing to hide stays as it is."""
        carriers, self._carriers = self._carriers, "keep"
        try:
            return self.of(error.args)
        finally:
            self._carriers = carriers

    def _mapping(self, entries: Mapping[object, object]) -> object:
        shown = {name: HIDDEN if self._hides(name) else self.of(item) for name, item in entries.items()}
        return entries if _unchanged(entries.values(), shown.values()) else shown

    def _fields(self, value: object, held: dict[str, object]) -> object:
        marked = marked_fields(cast("Any", type(value)))
        shown = {name: HIDDEN if name in marked or self._hides(name) else self.of(item) for name, item in held.items()}
        return value if _unchanged(held.values(), shown.values()) else self._rebuild(value, shown)

    def _items(self, items: Collection[object]) -> object:
        shown = [self.of(item) for item in items]
        return items if _unchanged(items, shown) else shown

    def _has_secret_attribute(self, value: object) -> bool:
        """Of a class that declares no fields, only the names are looked at: it may hold half the program."""
        attributes: Iterable[object] = getattr(value, "__dict__", ())
        marked = marked_fields(cast("Any", type(value)))
        return any(name in marked or self._hides(name) for name in attributes)


def _is_carrier(value: object) -> TypeGuard[Carrier]:
    return hasattr(type(value), "__redacted__")


def _held(value: object) -> dict[str, object] | None:
    """The fields of an object whose class declares which ones it has."""
    kind = type(value)
    if isinstance(value, type):
        return None
    if isinstance(value, Struct):
        return {name: getattr(value, name) for name in value.__struct_fields__}
    if is_dataclass(kind):
        return {each.name: getattr(value, each.name) for each in fields(kind) if hasattr(value, each.name)}
    if hasattr(kind, "__attrs_attrs__"):
        return {each.name: getattr(value, each.name) for each in cast("Any", kind).__attrs_attrs__}
    names: Any = getattr(kind, "_fields", None)
    if isinstance(value, tuple) and names is not None:
        return dict(zip(names, cast("tuple[object, ...]", value), strict=True))
    if isinstance(value, SimpleNamespace) or callable(getattr(kind, "model_dump", None)):
        held = cast("Any", value)
        return {**vars(held), **(getattr(held, "__pydantic_extra__", None) or {})}
    return None


def _as_dict(_: object, shown: dict[str, object]) -> object:
    return shown


def _as_copy(value: object, shown: dict[str, object]) -> object:
    """An object of the same class, without calling any function of it."""
    kind: Any = type(value)
    try:
        if isinstance(value, tuple):
            return cast("Any", tuple).__new__(kind, shown.values())
        copied: Any = copy(value) if isinstance(value, Struct) else object.__new__(kind)
        change: Callable[..., None] = force_setattr if isinstance(value, Struct) else object.__setattr__
        for name, item in shown.items():
            change(copied, name, item)
    except Exception:  # a class that cannot be made like this
        return shown
    return copied


def _unchanged(before: Iterable[object], after: Iterable[object]) -> bool:
    return all(one is other for one, other in zip(before, after, strict=True))


# ── errors ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def error_text(error: BaseException) -> str:
    """The message of an exception; where its arguments hold secrets, those arguments with the secrets hidden."""
    shown = message_value(error.args)
    return str(error) if shown is error.args else _joined(shown)


def traceback_text(error: BaseException) -> str:
    """The traceback of an exception and of those it came from, with the same messages as `error_text`."""
    text = "".join(traceback.format_exception(error))
    for each in _chain(error):
        shown = message_value(each.args)
        if shown is not each.args and (told := _own_text(each)):
            text = text.replace(told, _joined(shown))
    return text


def _own_text(error: BaseException) -> str:
    try:
        return guarded(str, error)
    except Exception:  # its own __str__ may raise anything
        return ""


def _joined(shown: object) -> str:
    return ", ".join(str(each) for each in cast("Iterable[object]", shown))


def _chain(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    waiting: list[BaseException | None] = [error]
    while waiting:
        each = waiting.pop()
        if each is None or id(each) in seen:
            continue
        seen.add(id(each))
        yield each
        waiting += [each.__cause__, each.__context__]
        if isinstance(each, BaseExceptionGroup):
            waiting += cast("BaseExceptionGroup[BaseException]", each).exceptions


# ── annotations ─────────────────────────────────────────────────────────────────────────────────────────────────────


def is_marked_secret(annotation: Any) -> bool:
    """Is it `Annotated[..., Secret]`, or a union or container of that?"""
    return any(_is_mark(part) for part in _parts(annotation))


def secret_names(annotation: Any) -> frozenset[str]:
    """Names of fields marked as Secret, of all classes that this annotation is made of."""
    found: set[str] = set()
    seen: set[int] = set()
    waiting: list[Any] = [annotation]
    while waiting:
        for part in _parts(waiting.pop()):
            if isinstance(part, type) and id(part) not in seen:
                seen.add(id(part))
                found |= marked_fields(part)
                waiting += _hints(part).values()
    return frozenset(found)


@lru_cache(maxsize=1024)
def marked_fields(kind: Any) -> frozenset[str]:
    """Names of a class's own fields that are annotated as Secret."""
    return frozenset(name for name, hint in _hints(kind).items() if is_marked_secret(hint))


def _hints(kind: type) -> dict[str, Any]:
    if kind.__module__ == "builtins" or not any("__annotations__" in vars(each) for each in kind.__mro__):
        return {}
    try:
        return get_type_hints(kind, include_extras=True)
    except Exception:  # a name that exists for type checkers only; then the text has to do
        named = [(name, hint) for each in kind.__mro__ for name, hint in vars(each).get("__annotations__", {}).items()]
        return {name: Secret if "Secret" in str(hint) else hint for name, hint in named}


def _parts(annotation: Any) -> Iterator[Any]:
    """An annotation and everything it is written with."""
    waiting = [annotation]
    while waiting:
        part = waiting.pop()
        yield part
        waiting += getattr(part, "__metadata__", ())
        waiting += get_args(part)
        waiting += [
            inner for name in ("__value__", "__supertype__") if (inner := getattr(part, name, None)) is not None
        ]


def _is_mark(part: Any) -> bool:
    return part is Secret or isinstance(part, Secret)


_SCALARS: Final = (str, bytes, int, float, type(None), type)
