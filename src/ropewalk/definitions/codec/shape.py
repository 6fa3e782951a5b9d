"""The shape of an annotation: the facts about its parts that decide how its values have to be encoded."""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from typing import Final

import msgspec
from msgspec import Struct
from msgspec import inspect as mi

from ropewalk.definitions.codec.tagged import TAG

# The kinds of annotations, as msgspec describes them.
PLAIN: Final = (mi.NoneType, mi.BoolType, mi.IntType, mi.StrType, mi.LiteralType, mi.UnionType)
MOMENTS: Final = (mi.DateTimeType, mi.TimeType, mi.DateType, mi.TimeDeltaType)
NON_JSON_SCALARS: Final = (*MOMENTS, mi.BytesType, mi.UUIDType, mi.DecimalType)
ARRAYS: Final = (mi.ListType, mi.TupleType, mi.VarTupleType)
EXACT: Final = (*PLAIN, *NON_JSON_SCALARS, *ARRAYS, mi.FloatType, mi.DictType)


class Shape(Struct, frozen=True, kw_only=True):
    """Facts about all parts of an annotation together."""

    exact: bool = True
    """It has only scalars and containers of the standard library, which msgspec checks and writes as they are."""
    scalars: bool = True
    """It has only None, bool, int, str and literals, so that a value that passes the check is written as it is."""
    has_non_json_scalars: bool = False
    """It has scalars that JSON lacks: dates and times, bytes, UUIDs, Decimals."""
    comparable: bool = True
    """`==` decides whether two values are the same, because every class compares its fields or has no `==`."""
    guided: bool = False
    """It has untyped, custom or unordered parts, or odd keys, so that values are converted part by part."""
    has_floats: bool = False
    """It has floats, which may be NaN or infinite; JSON lacks these."""
    has_times: bool = False
    """It has datetimes or times, whose offset may not be in whole minutes."""
    may_have_tag_key: bool = False
    """It has JSON objects of which a key may be the codec's own tag."""
    has_arrays: bool = False
    """It has lists or tuples, for which msgspec also accepts sets."""
    has_inner_floats: bool = False
    """It has floats inside of other values, for which msgspec also accepts Decimals."""


def shape_of(*infos: mi.Type) -> Shape:
    """The shape of these annotations together."""
    return reduce(_both, (_facts(node) for info in infos for node in walk(info)), Shape())


def walk(info: mi.Type) -> Iterator[mi.Type]:
    """Every part of an annotation, once, even if the annotation is recursive."""
    seen: set[int] = set()
    waiting = [info]
    while waiting:
        node = bare(waiting.pop())
        if id(node) not in seen:
            seen.add(id(node))
            yield node
            waiting.extend(children(node))


def bare(info: mi.Type) -> mi.Type:
    """The annotation inside of documentation that is wrapped around it."""
    while isinstance(info, mi.Metadata):
        info = info.type
    return info


def children(info: mi.Type) -> tuple[mi.Type, ...]:
    """The annotations directly inside of this one, such as that of a list's items."""
    match info:
        case mi.CollectionType():
            return (info.item_type,)
        case mi.TupleType():
            return info.item_types
        case mi.DictType():
            return (info.key_type, info.value_type)
        case mi.UnionType():
            return info.types
        case mi.StructType() | mi.DataclassType() | mi.TypedDictType() | mi.NamedTupleType():
            return tuple(field.type for field in info.fields)
        case _:
            return ()


def has_text_keys(info: mi.DictType) -> bool:
    """Whether the keys of this dict are exact and unambiguous as keys of a JSON object. Other dicts become pairs."""
    match bare(info.key_type):
        case mi.LiteralType(values):
            return all(isinstance(value, str) for value in values)
        case mi.StrType() | mi.IntType() | mi.EnumType() | mi.DateType() | mi.TimeDeltaType():
            return True
        case mi.UUIDType() | mi.BytesType():
            return True  # not decimals: msgspec reads the key "-0" as 0
        case _:
            return False


def type_info(annotation: object) -> mi.Type:
    """What msgspec knows about an annotation.

    Raises TypeError if msgspec cannot decode it unambiguously, and NameError if a name in it is not defined yet.
    """
    msgspec.json.Decoder(annotation)
    return mi.type_info(annotation)


def _facts(node: mi.Type) -> Shape:
    unordered = isinstance(node, mi.SetType | mi.FrozenSetType)
    odd_keys = isinstance(node, mi.DictType) and not has_text_keys(node)
    enum_keys = isinstance(node, mi.DictType) and isinstance(bare(node.key_type), mi.EnumType)
    guided = unordered or odd_keys or isinstance(node, mi.AnyType | mi.CustomType)
    return Shape(
        scalars=isinstance(node, PLAIN),
        has_non_json_scalars=isinstance(node, NON_JSON_SCALARS),
        comparable=not isinstance(node, mi.NamedTupleType) and _has_generated_eq(node),
        exact=not guided and not enum_keys and isinstance(node, EXACT),
        guided=guided,
        has_floats=isinstance(node, mi.FloatType),
        has_times=isinstance(node, mi.DateTimeType | mi.TimeType),
        may_have_tag_key=isinstance(node, mi.DictType | mi.TypedDictType) or _has_field(node, TAG),
        has_arrays=isinstance(node, ARRAYS),
        has_inner_floats=not isinstance(node, mi.UnionType) and any(map(_may_be_float, children(node))),
    )


def _may_be_float(info: mi.Type) -> bool:
    node = bare(info)
    members = node.types if isinstance(node, mi.UnionType) else (node,)
    return any(isinstance(bare(member), mi.FloatType) for member in members)


def _has_generated_eq(node: mi.Type) -> bool:
    match node:
        case mi.StructType(cls):
            return cls.__struct_config__.eq and cls.__eq__ is Struct.__eq__
        case mi.DataclassType(cls):
            code = getattr(cls.__eq__, "__code__", None)
            return code is not None and code.co_filename == "<string>"  # generated code has this name
        case mi.CustomType(cls):
            return cls is object
        case _:
            return True


def _has_field(node: mi.Type, name: str) -> bool:
    if not isinstance(node, mi.StructType):
        return False
    return node.tag_field == name or any(field.encode_name == name for field in node.fields)


def _both(one: Shape, other: Shape) -> Shape:
    return Shape(
        scalars=one.scalars and other.scalars,
        has_non_json_scalars=one.has_non_json_scalars or other.has_non_json_scalars,
        comparable=one.comparable and other.comparable,
        exact=one.exact and other.exact,
        guided=one.guided or other.guided,
        has_floats=one.has_floats or other.has_floats,
        has_times=one.has_times or other.has_times,
        may_have_tag_key=one.may_have_tag_key or other.may_have_tag_key,
        has_arrays=one.has_arrays or other.has_arrays,
        has_inner_floats=one.has_inner_floats or other.has_inner_floats,
    )


def custom_classes(info: mi.Type) -> list[type]:
    """The classes in this annotation that msgspec does not know."""
    return [node.cls for node in walk(info) if isinstance(node, mi.CustomType)]
