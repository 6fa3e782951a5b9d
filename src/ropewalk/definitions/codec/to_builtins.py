"""Converts a typed value to builtins that JSON can hold, by its annotation.

If the annotation declares everything, msgspec converts the value alone, which is fast. The value is converted part by
part if the annotation contains `Any`, a class with functions of its own, a set, or keys that are no text; the result is
then escaped already. A value that cannot be converted is refused. The codec checks whether the result fits.
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

Converter: TypeAlias = Callable[[Any], object]
"""Converts the values of one annotation to builtins."""
Fielded: TypeAlias = mi.StructType | mi.DataclassType | mi.TypedDictType | mi.NamedTupleType

LEFT_TO_ENCODER: Final = (bytes, datetime, date, time, timedelta, UUID, Decimal)
"""Values of these types are left to the encoder, so that a datetime for a `str` is still seen to be a datetime."""


def builtins_converter(info: mi.Type) -> Converter:
    """The function that converts values of this annotation to builtins.

    The tree that it returns is escaped if the annotation is guided (see Shape), and otherwise not.
    """
    return plain_builtins if not shape_of(info).guided else _ConverterBuilder().converter(info)


def plain_builtins(value: object) -> object:
    """The value as builtins, as msgspec converts it without an annotation."""
    return msgspec.to_builtins(value, builtin_types=LEFT_TO_ENCODER, enc_hook=_plain_type)


class _ConverterBuilder:
    """Builds the converters of an annotation and its parts, each once, so that a recursive annotation ends."""

    def __init__(self) -> None:
        self._built: dict[int, Converter] = {}

    def converter(self, info: mi.Type) -> Converter:
        """The converter of an annotation or a part of one, whose results are escaped."""
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

    def _build(self, node: mi.Type) -> Converter:
        match node:
            case mi.CustomType():
                return _custom(node.cls)
            case mi.SetType() | mi.FrozenSetType():
                return _unordered(self.converter(node.item_type))
            case mi.CollectionType():
                return _items(self.converter(node.item_type))
            case mi.TupleType():
                return _fixed([self.converter(item) for item in node.item_types])
            case mi.DictType():
                return _mapping(node, self.converter(node.key_type), self.converter(node.value_type))
            case mi.UnionType():
                return _union([(bare(each), self.converter(each)) for each in node.types])
            case mi.StructType() | mi.DataclassType() | mi.TypedDictType() | mi.NamedTupleType():
                return _fields(node, {field.name: self.converter(field.type) for field in node.fields})
            case _:
                return tag


def _escaped(value: object) -> object:
    return escape(plain_builtins(value))


def _plain_type(value: object) -> object:
    """A value of a subclass, or of another collection, as a value of the plain type, which msgspec can write."""
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


def _custom(cls: type) -> Converter:
    if cls is object:
        return tag

    def convert(value: Any) -> object:
        if not isinstance(value, cls):
            return _escaped(value)
        if (known := custom.registered(cls)) is not None:
            return tag(known.encode(value))
        if custom.is_model(cls):
            return _escaped(cast("custom.Model", value).model_dump(mode="json"))
        raise ValueMismatch(f"a {cls.__qualname__} travels only when it is registered: see register_type")

    return convert


def _unordered(convert: Converter) -> Converter:
    def convert_all(value: object) -> object:
        if not isinstance(value, AnySet):
            raise _unexpected("set", value)
        return ordered(_each(convert, cast("Iterable[object]", value)))

    return convert_all


def _items(convert: Converter) -> Converter:
    def convert_all(value: object) -> object:
        if not _is_array(value):
            raise _unexpected("array", value)
        return _each(convert, value)

    return convert_all


def _fixed(converters: Sequence[Converter]) -> Converter:
    def convert_all(value: object) -> object:
        if not _is_array(value) or len(value) != len(converters):
            raise _unexpected(f"array of length {len(converters)}", value)
        return [_convert_at(f"[{index}]", converters[index], item) for index, item in enumerate(value)]

    return convert_all


def _mapping(node: mi.DictType, convert_key: Converter, convert: Converter) -> Converter:
    text = has_text_keys(node)
    untyped = isinstance(bare(node.key_type), mi.AnyType)

    def convert_all(value: object) -> object:
        if not isinstance(value, Mapping):
            raise _unexpected("object", value)
        given = cast("Mapping[object, object]", value)
        items = [_convert_at(f"[{key!r}]", convert, item) for key, item in given.items()]
        if text:
            return json_object(dict(zip(map(plain_builtins, given), items, strict=True)))
        keys = [_convert_at(f"[{key!r}]", lambda key: _key_json(convert_key(key)), key) for key in given]
        if untyped and all(type(key) is str for key in keys):
            return json_object(dict(zip(cast("list[str]", keys), items, strict=True)))
        return pairs(zip(keys, items, strict=True))

    return convert_all


def _key_json(tree: object) -> object:
    """A key as JSON. A scalar that JSON lacks gets a tag, because msgspec reads some texts in keys as numbers."""
    return tag(tree) if isinstance(tree, LEFT_TO_ENCODER) else tree


def _union(choices: Sequence[tuple[mi.Type, Converter]]) -> Converter:
    """Convert by the member of the union that the value looks like.

    That is unambiguous, because msgspec allows at most one array, one object and one custom class in a union.
    """

    def convert_one(value: object) -> object:
        for node, convert in choices:
            if getattr(node, "cls", None) is type(value):  # checked first, because a base class may be a member, too
                return convert(value)
        for node, convert in choices:
            if _looks_like(node, value):
                return convert(value)
        return _escaped(value)

    return convert_one


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


def _fields(node: Fielded, converters: Mapping[str, Converter]) -> Converter:
    if isinstance(node, mi.TypedDictType):
        return lambda value: _entries(value, converters)
    cls = node.cls
    array = isinstance(node, mi.NamedTupleType) or (isinstance(node, mi.StructType) and node.array_like)
    head = _tag_of(node)
    names = {field.name: field.encode_name for field in node.fields}
    by_encoded_name = {encoded: converters[name] for name, encoded in names.items()}

    def convert_all(value: object) -> object:
        if not isinstance(value, cls):
            return _entries(value, by_encoded_name)
        given = {name: getattr(value, name) for name in names}
        written = {
            names[name]: _convert_at(f".{names[name]}", converters[name], item)
            for name, item in given.items()
            if item is not msgspec.UNSET
        }
        return [*head.values(), *written.values()] if array else json_object({**head, **written})

    return convert_all


def _tag_of(node: Fielded) -> dict[str, object]:
    """The field by which msgspec tells the Structs of a union apart, with its value; empty if there is none."""
    if isinstance(node, mi.StructType) and node.tag_field is not None:
        return {node.tag_field: node.tag}
    return {}


def _entries(value: object, converters: Mapping[str, Converter]) -> object:
    if not isinstance(value, Mapping):
        raise _unexpected("object", value)
    given = cast("Mapping[str, object]", value)
    return json_object(
        {name: _convert_at(f".{name}", converters.get(name, _escaped), item) for name, item in given.items()}
    )


def _is_array(value: object) -> TypeGuard[Sequence[object]]:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes | bytearray)


def _unexpected(expected: str, value: object) -> ValueMismatch:
    return ValueMismatch(f"expected `{expected}`, got `{type(value).__qualname__}`")


def _each(convert: Converter, values: Iterable[object]) -> list[object]:
    return [_convert_at(f"[{index}]", convert, item) for index, item in enumerate(values)]


def _convert_at(step: str, convert: Converter, value: object) -> object:
    """Convert one part; a mismatch gets the step that leads to the part."""
    try:
        return convert(value)
    except ValueMismatch as error:
        raise error.under(step) from error
