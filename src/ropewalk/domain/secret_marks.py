"""Finds what annotations mark as secret: `Annotated[..., Secret]` in arguments, results and fields of classes."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any, get_args, get_type_hints


class Secret:
    """Marks a value that is shown to nobody: an argument `card: Annotated[str, Secret]`, or such a field of a class."""


def is_marked_secret(annotation: Any) -> bool:
    """Whether an annotation is `Annotated[..., Secret]`, or a union or container of that."""
    return any(_is_mark(part) for part in _parts(annotation))


def secret_names(annotation: Any) -> frozenset[str]:
    """Returns the names of the fields that are marked as Secret in all classes in this annotation."""
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
    """Returns the names of the fields of a class that are annotated as Secret."""
    return frozenset(name for name, hint in _hints(kind).items() if is_marked_secret(hint))


def _hints(kind: type) -> dict[str, Any]:
    if kind.__module__ == "builtins" or not any("__annotations__" in vars(each) for each in kind.__mro__):
        return {}
    try:
        return get_type_hints(kind, include_extras=True)
    except Exception:  # A name exists only for type checkers, so the text of the annotation decides.
        named = [(name, hint) for each in kind.__mro__ for name, hint in vars(each).get("__annotations__", {}).items()]
        return {name: Secret if "Secret" in str(hint) else hint for name, hint in named}


def _parts(annotation: Any) -> Iterator[Any]:
    """Yields an annotation and all annotations that it contains."""
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
