"""The one place that hides secrets: by the name they go under, or because their annotation says so.

Used for everything that leaves towards people: log fields, kept log lines, log contexts, what the command line shows.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from itertools import pairwise
from typing import Any, Final, cast

HIDDEN: Final = "[hidden]"
DEPTH_MAX: Final = 16
"""what is nested deeper is not looked through, and therefore not shown"""

SECRET_KEYS: Final = frozenset(
    {
        *("password", "passwd", "passphrase", "pwd", "secret", "token", "authorization", "credential", "credentials"),
        *("cookie", "apikey", "privatekey", "accesskey", "secretkey", "signature", "cvv", "pin", "ssn"),
    }
)
"""a key is secret when one of its words, or two neighbours together, is one of these; plurals too"""

_WORDS: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")


class Secret:
    """Marks an argument whose value is shown to nobody: `card: Annotated[str, Secret]`."""


def is_marked_secret(annotation: Any) -> bool:
    """Is it `Annotated[..., Secret]`?"""
    marks = getattr(annotation, "__metadata__", ())
    return any(mark is Secret or isinstance(mark, Secret) for mark in marks)


def redacted(value: object, keys: Collection[str] = (), *, depth: int = 0) -> Any:
    """`value` with everything hidden that stands under a secret key: one of `keys`, or what the names above say."""
    if depth > DEPTH_MAX:
        return HIDDEN
    if isinstance(value, Mapping):
        entries = cast("Mapping[object, object]", value)
        return {
            name: HIDDEN if is_secret(name, keys) else redacted(item, keys, depth=depth + 1)
            for name, item in entries.items()
        }
    if isinstance(value, list | tuple):
        return [redacted(item, keys, depth=depth + 1) for item in cast("list[object]", value)]
    return value


def is_secret(name: object, keys: Collection[str] = ()) -> bool:
    if not isinstance(name, str):
        return False
    if name in keys:
        return True
    words = [word.lower() for word in _WORDS.findall(name)]
    pairs = [one + other for one, other in pairwise(words)]
    return any(word in SECRET_KEYS or word.removesuffix("s") in SECRET_KEYS for word in (*words, *pairs))
