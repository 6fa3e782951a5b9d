"""A typed value as builtins that JSON can hold, led by its annotation.

Where the annotation says everything, msgspec lowers the value alone and fast. Only where it is silent (`Any`), where
a class brings its own functions, where order is not given (sets), or where keys are no text, the annotation's tree is
walked here, and what comes out is escaped already. Lowering refuses what it cannot walk; whether the result fits the
annotation is the codec's to check.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AnySet
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, Final, TypeAlias, TypeGuard, cast
from uuid import UUID

import msgspec
from msgspec import inspect as mi

from ropewalk.definitions.codec import custom
from ropewalk.definitions.codec.mismatch import ValueMismatch
from ropewalk.definitions.codec.shape import bare, has_text_keys, shape_of
from ropewalk.definitions.codec.tagged import escape, json_object, ordered, pairs, tag

Lower: TypeAlias = Callable[[Any], object]
Fielded: TypeAlias = mi.StructType | mi.DataclassType | mi.TypedDictType | mi.NamedTupleType

KEPT: Final = (bytes, datetime, date, time, timedelta, UUID, Decimal)
"""stay objects until JSON is written, so that a datetime given for a `str` is still seen to be one"""


def lowering(info: mi.Type) -> Lower:
    """How values of this annotation are lowered. Parts that need no guidance are left to msgspec.

    Without guidance the tree is raw; with guidance it is escaped.
    """
    return lowered if not shape_of(info).guided else _Guide().through(info)


def lowered(value: object) -> object:
    return msgspec.to_builtins(value, builtin_types=KEPT, enc_hook=_simplified)


class _Guide:
    """Builds the function of every node once, so that recursive annotations end."""

    def __init__(self) -> None:
        self._built: dict[int, Lower] = {}

    def through(self, info: mi.Type) -> Lower:
        node = bare(info)
        if not shape_of(node).guided:
            return _escaped
        key = id(node)
        if key not in self._built:

            def itself(value: object) -> object:
                return self._built[key](value)

            self._built[key] = itself
            self._built[key] = self._build(node)
        return self._built[key]

    def _build(self, node: mi.Type) -> Lower:
        match node:
            case mi.CustomType():
                return _custom(node.cls)
            case mi.SetType() | mi.FrozenSetType():
                return _unordered(self.through(node.item_type))
            case mi.CollectionType():
                return _items(self.through(node.item_type))
            case mi.TupleType():
                return _fixed([self.through(item) for item in node.item_types])
            case mi.DictType():
                return _mapping(node, self.through(node.key_type), self.through(node.value_type))
            case mi.UnionType():
                return _union([(bare(each), self.through(each)) for each in node.types])
            case mi.StructType() | mi.DataclassType() | mi.TypedDictType() | mi.NamedTupleType():
                return _fields(node, {field.name: self.through(field.type) for field in node.fields})
            case _:
                return tag


def _escaped(value: object) -> object:
    return escape(lowered(value))


def _simplified(value: object) -> object:
    """Subclasses of builtins and other collections, which fit an annotation but which msgspec does not write."""
    match value:
        case str():
            return "".join((value,))
        case int():
            return int(value)
        case float():
            return float(value)
        case bytes():
            return bytes(value)
        case Mapping():
            return dict(cast("Mapping[object, object]", value))
        case Sequence():
            return list(cast("Sequence[object]", value))
        case _:
            kind = type(value)
            raise TypeError(f"a value of type {kind.__module__}.{kind.__qualname__} does not fit")


def _custom(cls: type) -> Lower:
    if cls is object:
        return tag

    def lower(value: Any) -> object:
        if not isinstance(value, cls):
            return _escaped(value)
        if (known := custom.registered(cls)) is not None:
            return tag(known.encode(value))
        if custom.is_model(cls):
            return _escaped(cast("custom.Model", value).model_dump(mode="json"))
        raise ValueMismatch(f"a {cls.__qualname__} travels only when it is registered: see register_type")

    return lower


def _unordered(lower: Lower) -> Lower:
    def lower_all(value: object) -> object:
        if not isinstance(value, AnySet):
            raise _unexpected("set", value)
        return ordered(_each(lower, cast("Iterable[object]", value)))

    return lower_all


def _items(lower: Lower) -> Lower:
    def lower_all(value: object) -> object:
        if not _is_array(value):
            raise _unexpected("array", value)
        return _each(lower, value)

    return lower_all


def _fixed(lowers: Sequence[Lower]) -> Lower:
    def lower_all(value: object) -> object:
        if not _is_array(value) or len(value) != len(lowers):
            raise _unexpected(f"array of length {len(lowers)}", value)
        return [_named(f"[{index}]", lowers[index], item) for index, item in enumerate(value)]

    return lower_all


def _mapping(node: mi.DictType, lower_key: Lower, lower: Lower) -> Lower:
    text = has_text_keys(node)
    untyped = isinstance(bare(node.key_type), mi.AnyType)

    def lower_all(value: object) -> object:
        if not isinstance(value, Mapping):
            raise _unexpected("object", value)
        given = cast("Mapping[object, object]", value)
        items = [_named(f"[{key!r}]", lower, item) for key, item in given.items()]
        if text:
            return json_object(dict(zip(map(lowered, given), items, strict=True)))
        keys = [_named(f"[{key!r}]", lambda key: _odd_key(lower_key(key)), key) for key in given]
        if untyped and all(type(key) is str for key in keys):
            return json_object(dict(zip(cast("list[str]", keys), items, strict=True)))
        return pairs(zip(keys, items, strict=True))

    return lower_all


def _odd_key(tree: object) -> object:
    """A scalar that JSON lacks is tagged, because msgspec takes some texts for numbers where they are keys."""
    return tag(tree) if isinstance(tree, KEPT) else tree


def _union(choices: Sequence[tuple[mi.Type, Lower]]) -> Lower:
    """msgspec allows at most one array, one object and one custom class in a union: the value's looks decide."""

    def lower_one(value: object) -> object:
        for node, lower in choices:
            if getattr(node, "cls", None) is type(value):  # before a base class of it, which may be a choice, too
                return lower(value)
        for node, lower in choices:
            if _looks_like(node, value):
                return lower(value)
        return _escaped(value)

    return lower_one


def _looks_like(node: mi.Type, value: object) -> bool:
    match node:
        case mi.AnyType():
            return True
        case mi.CollectionType() | mi.TupleType():
            return isinstance(value, AnySet) or _is_array(value)
        case mi.DictType() | mi.TypedDictType():
            return isinstance(value, Mapping)
        case mi.StructType(array_like=False) if isinstance(value, Mapping):
            given = cast("Mapping[object, object]", value)
            return node.tag_field is None or given.get(node.tag_field) == node.tag
        case mi.DataclassType() if isinstance(value, Mapping):
            return True
        case mi.StructType() | mi.DataclassType() | mi.NamedTupleType() | mi.CustomType():
            return isinstance(value, node.cls)
        case _:
            return False


def _fields(node: Fielded, lowers: Mapping[str, Lower]) -> Lower:
    if isinstance(node, mi.TypedDictType):
        return lambda value: _entries(value, lowers)
    cls = node.cls
    array = isinstance(node, mi.NamedTupleType) or (isinstance(node, mi.StructType) and node.array_like)
    head = _tag_of(node)
    names = {field.name: field.encode_name for field in node.fields}
    by_encoded_name = {encoded: lowers[name] for name, encoded in names.items()}

    def lower_all(value: object) -> object:
        if not isinstance(value, cls):
            return _entries(value, by_encoded_name)
        given = {name: getattr(value, name) for name in names}
        written = {
            names[name]: _named(f".{names[name]}", lowers[name], item)
            for name, item in given.items()
            if item is not msgspec.UNSET
        }
        return [*head.values(), *written.values()] if array else json_object({**head, **written})

    return lower_all


def _tag_of(node: Fielded) -> dict[str, object]:
    """How msgspec marks members of a union of Structs."""
    if isinstance(node, mi.StructType) and node.tag_field is not None:
        return {node.tag_field: node.tag}
    return {}


def _entries(value: object, lowers: Mapping[str, Lower]) -> object:
    if not isinstance(value, Mapping):
        raise _unexpected("object", value)
    given = cast("Mapping[str, object]", value)
    return json_object({name: _named(f".{name}", lowers.get(name, _escaped), item) for name, item in given.items()})


def _is_array(value: object) -> TypeGuard[Sequence[object]]:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes | bytearray)


def _unexpected(expected: str, value: object) -> ValueMismatch:
    return ValueMismatch(f"expected `{expected}`, got `{type(value).__qualname__}`")


def _each(lower: Lower, values: Iterable[object]) -> list[object]:
    return [_named(f"[{index}]", lower, item) for index, item in enumerate(values)]


def _named(step: str, lower: Lower, value: object) -> object:
    """Lower one part; what does not fit is named by its step."""
    try:
        return lower(value)
    except ValueMismatch as error:
        raise error.under(step) from error
