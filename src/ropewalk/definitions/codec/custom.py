"""Classes the codec learns: registered ones, and models that validate and dump themselves (as pydantic's do)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Protocol, TypeGuard, TypeVar

from msgspec import Struct

from ropewalk.domain import checks
from ropewalk.errors import DefinitionError, InvalidInput

T = TypeVar("T")


class Registered(Struct, frozen=True):
    cls: type
    tag: str
    encode: Callable[[Any], object]
    decode: Callable[[Any], object]


class Model(Protocol):
    """What a pydantic model offers; anything else that does travels the same way."""

    @classmethod
    def model_validate(cls, obj: object) -> object: ...

    def model_dump(self, *, mode: str) -> object: ...


_by_class: dict[type, Registered] = {}
_by_tag: dict[str, Registered] = {}
_reserved: set[str] = set()


def register_type(cls: type[T], tag: str, encode: Callable[[T], object], decode: Callable[[Any], T]) -> None:
    """Let values of exactly `cls` travel, with or without an annotation.

    `encode` turns one into anything the codec knows, `decode` takes that and gives the value back. `tag` is written
    in stored data: keep it as long as data lives. Registering the same again replaces it.
    """
    _check(cls, tag, encode, decode)
    if tag in _reserved:
        raise DefinitionError(f"tag {tag!r} belongs to the codec itself: choose another for {cls.__qualname__}")
    holder = _by_tag.get(tag)
    if holder is not None and holder.cls is not cls:
        raise DefinitionError(f"tag {tag!r} of {cls.__qualname__} is already the tag of {holder.cls.__qualname__}")
    former = _by_class.get(cls)
    if former is not None:
        del _by_tag[former.tag]
    _by_class[cls] = _by_tag[tag] = Registered(cls, tag, encode, decode)


def _check(cls: object, tag: object, encode: object, decode: object) -> None:
    try:
        checks.instance(cls, "cls", type, "the class whose values are to travel")
        checks.text(tag, "tag")
        checks.function(encode, "encode")
        checks.function(decode, "decode")
    except InvalidInput as error:
        raise DefinitionError(f"register_type: {error}") from error


def reserve(tags: Iterable[str]) -> None:
    """Tags that no registered type may take."""
    _reserved.update(tags)


def registered(cls: type) -> Registered | None:
    return _by_class.get(cls)


def tagged(tag: str) -> Registered | None:
    return _by_tag.get(tag)


def is_model(cls: type) -> TypeGuard[type[Model]]:
    return callable(getattr(cls, "model_validate", None)) and callable(getattr(cls, "model_dump", None))


def is_known(cls: type) -> bool:
    """Can a value annotated with `cls` be encoded and decoded? `object` stands for no declared type."""
    return cls is object or cls in _by_class or is_model(cls)


def dec_hook(cls: type, value: object) -> object:
    """msgspec asks this for every class it does not know itself."""
    if cls is object:
        return value
    try:
        return _decoded(cls, value)
    except (TypeError, ValueError):
        raise  # msgspec says where
    except Exception as error:
        raise ValueError(f"a {cls.__qualname__} cannot be read: {type(error).__name__}: {error}") from error


def _decoded(cls: type, value: object) -> object:
    if (known := _by_class.get(cls)) is not None:
        return known.decode(value)
    if is_model(cls):
        return cls.model_validate(value)
    raise TypeError(f"no way to decode a {cls.__qualname__}: see register_type")
