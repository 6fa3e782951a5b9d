"""Hides secrets in everything that people see. A name or an annotation makes a value a secret.

People see log fields and arguments of log messages, kept log lines, log contexts, messages of errors, and the output of
the command line. Payloads are not changed: handlers get what was enqueued.

Values of every shape that the codec can write are searched, and so are the keys of mappings. A value without a secret
is returned as it is, and an object with a secret is replaced by a dict of its fields. secret_marks.py reads
annotations, and shown_errors.py shows exceptions.
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
"""A value that is nested deeper than this is not searched, and therefore not shown."""

SECRET_KEYS: Final = frozenset(
    {
        *("password", "passwd", "passphrase", "passcode", "pwd", "secret", "token", "jwt", "csrf", "xsrf", "signature"),
        *("authorization", "auth", "bearer", "credential", "otp", "totp", "mfacode", "pin", "cvv", "cvc", "ssn"),
        *("cookie", "sessionid", "sessionkey", "sessid", "jsessionid", "phpsessid"),
        *("apikey", "privatekey", "accesskey", "secretkey", "signingkey", "encryptionkey"),
    }
)
"""A name is secret if one of its words, or two adjacent words together, is one of these or its plural."""
FACTS: Final = frozenset(
    {
        *("count", "used", "total", "limit", "max", "min", "length", "size", "bytes", "policy", "type", "kind"),
        *("method", "scheme", "algorithm", "version", "status", "at", "age", "ttl", "expiry", "seconds", "days"),
        *("required", "enabled", "provider"),
    }
)
"""The value of a name that ends with one of these is a fact about a secret, and not the secret: `token_count`."""
_AMOUNTS: Final = frozenset({"max", "min", "num", "total"})
"""The value of a name that begins with one of these and ends with a plural is a number: `max_tokens`."""

_WORDS: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_SCALARS: Final = (str, bytes, int, float, type(None), type)
_CONTAINERS: Final = (list, tuple, set, frozenset, deque, MappingView)


Rebuild: TypeAlias = Callable[[Any, dict[str, object]], object]
"""A function that makes the replacement of an object with a hidden field from the object and its shown fields."""


Carriers: TypeAlias = Literal["show", "keep"]
"""What becomes of a carrier in which nothing is hidden: it is shown as `__redacted__` says, or the object is kept."""


class Hide(Protocol):
    """A function that hides secrets in a value, and everything in it whose name is one of `names`."""

    def __call__(self, value: object, names: Collection[str] = ()) -> Any: ...


class Carrier(Protocol):
    """An object that contains arguments or results, and knows which of them are marked as Secret."""

    def __redacted__(self, hide: Hide) -> object:
        """Returns what is shown in place of the object, without encoded arguments; or the object itself if its `repr`
        shows the same."""


def redacted(value: object, keys: Collection[str] = ()) -> Any:
    """Returns a value with its secrets hidden: what is marked as Secret, or has a name in `keys`, or one that sounds
    secret (SECRET_KEYS)."""
    return _Redaction(lambda name: is_secret(name, keys), _as_dict).of(value)


def concealed(value: object, keys: Collection[str] = ()) -> Any:
    """Returns a value with its secrets hidden for a function of a user, which may search it: objects keep their type.

    Only what is marked as Secret, or has a name in `keys`, is hidden.
    """
    return _Redaction(lambda name: _is_one_of(name, keys), _as_copy).of(value)


def message_value(value: object, keys: Collection[str] = ()) -> Any:
    """Returns a value with its secrets hidden for the message of an error. A job without secrets stays a job, and is
    shown by its `repr`."""
    return _Redaction(lambda name: is_secret(name, keys), _as_dict, carriers="keep").of(value)


def shown_args(error: BaseException, keys: Collection[str] = ()) -> Iterable[object]:
    """Returns the arguments of an exception with their secrets hidden; the same object if there are no secrets."""
    return _Redaction(lambda name: is_secret(name, keys), _as_dict).args_of(error)


def placeholder(value: object, keys: Collection[str] = ()) -> tuple[str, ...] | None:
    """Returns the path of names to a place where somebody passed HIDDEN instead of a secret; None if there is none."""
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
    entries = _entries(value)
    if entries is not None:
        marked = marked_fields(cast("Any", type(value)))
        for name, item in entries.items():
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
    return cast("Mapping[object, object] | None", _declared_fields(value))


def shown_fields(value: Any, hide: Hide, secrets: Collection[str], values: Collection[str]) -> dict[str, object]:
    """Returns the shown fields of a dataclass that knows the names of secrets, `secrets`. In the fields that `values`
    names, what has these names is hidden, too."""
    shown = {each.name: hide(getattr(value, each.name)) for each in fields(value) if each.name not in values}
    return {**shown, **hide({name: getattr(value, name) for name in values}, secrets), "secrets": tuple(secrets)}


def is_secret(name: object, keys: Collection[str] = ()) -> bool:
    """Whether a name is one of `keys`, or its words say that its value is a secret."""
    return any(text in keys or _sounds_secret(text) for text in _texts(name))


def _texts(name: object) -> Iterator[str]:
    """Yields the texts of a name: of text, bytes, each part of a tuple, and of both the name and value of an Enum
    member."""
    if isinstance(name, str):
        yield str.__str__(name)  # This is the text itself, even if the class of a user overrides `__str__`.
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
    """One search through a value, which may contain itself."""

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
        declared = _declared_fields(value)
        if declared is not None:
            return self._fields(value, declared)
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
        """Returns the arguments of an exception with their secrets hidden. Carriers without secrets stay as they are.

        An argument that is also a secret attribute of the exception is hidden.
        """
        marked = marked_fields(cast("Any", type(error)))
        hidden = [item for name, item in vars(error).items() if name in marked or self._hides(name)]
        carriers, self._carriers = self._carriers, "keep"
        try:
            shown = [HIDDEN if any(each is item for item in hidden) else self.of(each) for each in error.args]
        finally:
            self._carriers = carriers
        return error.args if _unchanged(error.args, shown) else shown

    def _error(self, error: BaseException) -> object:
        """Returns the class and the message of an exception if its `repr` could show a secret argument or attribute;
        otherwise the exception."""
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
        """Returns the key with its secrets hidden. Every entry keeps a key of its own."""
        shown = name if isinstance(name, _SCALARS) else self.of(name)
        if shown is name:
            return name
        text = str(shown)
        while text in taken:
            text += "'"
        return text

    def _fields(self, value: object, declared: dict[str, object]) -> object:
        marked = marked_fields(cast("Any", type(value)))
        shown = {
            name: HIDDEN if name in marked or self._hides(name) else self.of(item) for name, item in declared.items()
        }
        return value if _unchanged(declared.values(), shown.values()) else self._rebuild(value, shown)

    def _items(self, items: Collection[object]) -> object:
        shown = [self.of(item) for item in items]
        return items if _unchanged(items, shown) else shown

    def _has_secret_attribute(self, value: object) -> bool:
        """Whether an object of a class that declares no fields has a secret attribute. Only the names are examined,
        because such an object may refer to half of the program."""
        attributes: Iterable[object] = getattr(value, "__dict__", ())
        marked = marked_fields(cast("Any", type(value)))
        return any(name in marked or self._hides(name) for name in attributes)


def _is_carrier(value: object) -> TypeGuard[Carrier]:
    return hasattr(type(value), "__redacted__")


def _declared_fields(value: object) -> dict[str, object] | None:
    """Returns the fields of an object whose class declares them; None if it declares none."""
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
        attributes = cast("Any", value)
        return {**vars(attributes), **(getattr(attributes, "__pydantic_extra__", None) or {})}
    return None


def _as_dict(_: object, shown: dict[str, object]) -> object:
    return shown


def _as_copy(value: object, shown: dict[str, object]) -> object:
    """Returns an object of the same class with the shown fields, without a call of any of its functions."""
    kind: Any = type(value)
    try:
        if isinstance(value, tuple):
            return cast("Any", tuple).__new__(kind, shown.values())
        copied: Any = copy(value) if isinstance(value, Struct) else object.__new__(kind)
        change: Callable[..., None] = force_setattr if isinstance(value, Struct) else object.__setattr__
        for name, item in shown.items():
            change(copied, name, item)
    except Exception:  # Objects of this class cannot be made in this way.
        return shown
    return copied


def joined(shown: Iterable[object]) -> str:
    """Returns the message that consists of these arguments of an exception."""
    return ", ".join(str(each) for each in shown)


def _unchanged(before: Iterable[object], after: Iterable[object]) -> bool:
    return all(one is other for one, other in zip(before, after, strict=True))
