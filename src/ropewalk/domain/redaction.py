"""The one place that hides secrets: by the name they go under, or because their annotation says so.

Used for everything that leaves towards people: log fields and arguments of log messages, kept log lines, log contexts,
messages of errors, what the command line shows. Payloads are not touched: handlers get what was enqueued.

Values of every shape that the codec can write are looked through, keys of mappings too. What has nothing to hide is
passed on as it is; an object that has is replaced by a dict of its fields. The marks of annotations are read in
secret_marks.py, and exceptions are shown by shown_errors.py.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Collection, ItemsView, Iterable, Iterator, Mapping, MappingView
from copy import copy
from dataclasses import fields, is_dataclass
from enum import Enum
from itertools import pairwise
from types import SimpleNamespace
from typing import Any, Final, Literal, Protocol, TypeAlias, TypeGuard, cast

from msgspec import Struct
from msgspec.structs import force_setattr

from ropewalk.domain.secret_marks import marked_fields

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
_SCALARS: Final = (str, bytes, int, float, type(None), type)
_CONTAINERS: Final = (list, tuple, set, frozenset, deque, MappingView)


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


def redacted(value: object, keys: Collection[str] = ()) -> Any:
    """`value` with what is secret hidden: by its mark, or its name (one of `keys`, or what SECRET_KEYS says)."""
    return _Redaction(lambda name: is_secret(name, keys), _as_dict).of(value)


def concealed(value: object, keys: Collection[str] = ()) -> Any:
    """`value` for a function of the user's that looks for something in it: objects keep their type.

    Only what is marked as Secret, or named in `keys`, is hidden.
    """
    return _Redaction(lambda name: _is_one_of(name, keys), _as_copy).of(value)


def message_value(value: object, keys: Collection[str] = ()) -> Any:
    """`value` for the message of an error: a job in which nothing is secret stays a job, which shows itself."""
    return _Redaction(lambda name: is_secret(name, keys), _as_dict, carriers="keep").of(value)


def shown_args(error: BaseException, keys: Collection[str] = ()) -> Iterable[object]:
    """The arguments of an exception with what is secret hidden; the same object where nothing is."""
    return _Redaction(lambda name: is_secret(name, keys), _as_dict).args_of(error)


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
    elif isinstance(value, _CONTAINERS):
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
    return any(text in keys or _sounds_secret(text) for text in _texts(name))


def _texts(name: object) -> Iterator[str]:
    """What a name says: text, bytes, a member of an Enum by its name and its value, each part of a tuple."""
    if isinstance(name, str):
        yield str.__str__(name)  # the text itself, whatever a class of the user's makes of it
    elif isinstance(name, bytes):
        yield name.decode(errors="replace")
    elif isinstance(name, tuple):
        for each in cast("tuple[object, ...]", name):
            yield from _texts(each)
    if isinstance(name, Enum):
        yield from _texts((name._name_, name._value_))


def _is_one_of(name: object, keys: Collection[str]) -> bool:
    return any(text in keys for text in _texts(name))


def _sounds_secret(name: str) -> bool:
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
            return self._error(value)
        if isinstance(value, ItemsView):
            return self._view(cast("ItemsView[object, object]", value))
        held = _held(value)
        if held is not None:
            return self._fields(value, held)
        if isinstance(value, _CONTAINERS):
            return self._items(cast("Collection[object]", value))
        return f"<{type(value).__qualname__} {HIDDEN}>" if self._has_secret_attribute(value) else value

    def _hide(self, value: object, names: Collection[str] = ()) -> object:
        hides = self._hides

        def hides_more(name: object) -> bool:
            return _is_one_of(name, names) or hides(name)

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

    def args_of(self, error: BaseException) -> Iterable[object]:
        """A message that an exception makes of a carrier with nothing to hide stays as it is.

        An argument that the exception keeps as a secret attribute, too, is as secret as that.
        """
        marked = marked_fields(cast("Any", type(error)))
        held = [item for name, item in vars(error).items() if name in marked or self._hides(name)]
        carriers, self._carriers = self._carriers, "keep"
        try:
            shown = [HIDDEN if any(each is item for item in held) else self.of(each) for each in error.args]
        finally:
            self._carriers = carriers
        return error.args if _unchanged(error.args, shown) else shown

    def _error(self, error: BaseException) -> object:
        """Its class and message, where its `repr` could show a secret: of an argument or of an attribute."""
        args = self.args_of(error)
        if args is not error.args:
            return f"{type(error).__name__}: {joined(args)}"
        return f"{type(error).__name__}: {error}" if self._has_secret_attribute(error) else error

    def _mapping(self, entries: Mapping[object, object]) -> object:
        shown: dict[object, object] = {}
        for name, item in entries.items():
            shown[self._key(name, shown)] = HIDDEN if self._hides(name) else self.of(item)
        unchanged = _unchanged(entries.keys(), shown.keys()) and _unchanged(entries.values(), shown.values())
        return entries if unchanged else shown

    def _view(self, items: ItemsView[object, object]) -> object:
        entries = dict(items)
        return items if (shown := self._mapping(entries)) is entries else shown

    def _key(self, name: object, taken: Collection[object]) -> object:
        """What stands in the place of a key that has something to hide; every entry keeps a key of its own."""
        shown = name if isinstance(name, _SCALARS) else self.of(name)
        if shown is name:
            return name
        text = str(shown)
        while text in taken:
            text += "'"
        return text

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


def joined(shown: Iterable[object]) -> str:
    """Arguments of an exception as its message."""
    return ", ".join(str(each) for each in shown)


def _unchanged(before: Iterable[object], after: Iterable[object]) -> bool:
    return all(one is other for one, other in zip(before, after, strict=True))
