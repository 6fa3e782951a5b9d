"""Classes of users that the codec can write: registered ones, and models with methods for it, such as pydantic's."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Protocol, TypeGuard, TypeVar

from msgspec import Struct

from ropewalk.domain import checks
from ropewalk.errors import DefinitionError, InvalidInput

T = TypeVar("T")


class Registered(Struct, frozen=True):
    """A class that was registered with `register_type`."""

    cls: type
    tag: str
    encode: Callable[[Any], object]
    decode: Callable[[Any], object]


class Model(Protocol):
    """The methods of a pydantic model; any class with these methods is encoded and decoded by them."""

    @classmethod
    def model_validate(cls, obj: object) -> object: ...

    def model_dump(self, *, mode: str) -> object: ...


_by_class: dict[type, Registered] = {}
_by_tag: dict[str, Registered] = {}
_reserved: set[str] = set()


def register_type(cls: type[T], tag: str, encode: Callable[[T], object], decode: Callable[[Any], T]) -> None:
    """Let arguments and results contain values of exactly `cls`, with or without an annotation.

    `encode` turns such a value into anything that the codec knows, and `decode` turns this into the value again. `tag`
    is stored with the data: keep it as long as the data exists. Registering a class again replaces its functions.
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
    """Reserve tags, so that no registered type can take them."""
    _reserved.update(tags)


def registered(cls: type) -> Registered | None:
    """The registration of this class, if there is one."""
    return _by_class.get(cls)


def tagged(tag: str) -> Registered | None:
    """The registration with this tag, if there is one."""
    return _by_tag.get(tag)


def is_model(cls: type) -> TypeGuard[type[Model]]:
    """Whether the class has the methods of a model."""
    return callable(getattr(cls, "model_validate", None)) and callable(getattr(cls, "model_dump", None))


def is_known(cls: type) -> bool:
    """Whether values annotated with `cls` can be encoded and decoded. `object` stands for no declared type."""
    return cls is object or cls in _by_class or is_model(cls)


def dec_hook(cls: type, value: object) -> object:
    """Decode a value of a class that msgspec does not know; msgspec calls this."""
    if cls is object:
        return value
    try:
        return _decoded(cls, value)
    except (TypeError, ValueError):
        raise  # msgspec adds the place
    except Exception as error:
        raise ValueError(f"a {cls.__qualname__} cannot be read: {type(error).__name__}: {error}") from error


def _decoded(cls: type, value: object) -> object:
    if (known := _by_class.get(cls)) is not None:
        return known.decode(value)
    if is_model(cls):
        return cls.model_validate(value)
    raise TypeError(f"no way to decode a {cls.__qualname__}: see register_type")
