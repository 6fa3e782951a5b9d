"""What an annotation is made of, as far as it decides how its values must be written."""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from typing import Final

import msgspec
from msgspec import Struct
from msgspec import inspect as mi

from ropewalk.definitions.codec.tagged import TAG

PLAIN: Final = (mi.NoneType, mi.BoolType, mi.IntType, mi.StrType, mi.LiteralType, mi.UnionType)
MOMENTS: Final = (mi.DateTimeType, mi.TimeType, mi.DateType, mi.TimeDeltaType)
KEPT: Final = (*MOMENTS, mi.BytesType, mi.UUIDType, mi.DecimalType)
ARRAYS: Final = (mi.ListType, mi.TupleType, mi.VarTupleType)
EXACT: Final = (*PLAIN, *KEPT, *ARRAYS, mi.FloatType, mi.DictType)


class Shape(Struct, frozen=True, kw_only=True):
    """Facts about an annotation, over its whole tree."""

    exact: bool = True
    """It has only scalars and containers of the standard library that msgspec checks and writes as they are."""
    scalars: bool = True
    """It has only None, bool, int, str and literals: what msgspec's check lets pass can be written as it is."""
    kept: bool = False
    """It has scalars that JSON lacks: moments, bytes, UUIDs, Decimals."""
    comparable: bool = True
    """`==` tells whether values are the same: classes have the one that was generated from their fields, or none."""
    guided: bool = False
    """It has untyped, custom or unordered parts, or odd keys: the annotation must lead through the value."""
    floats: bool = False
    """NaN and infinities are possible, which JSON lacks."""
    clocks: bool = False
    """It has datetimes or times: an odd offset is possible."""
    dicts: bool = False
    """A key of a JSON object may look like the codec's own tag."""
    arrays: bool = False
    """It has lists or tuples, for which msgspec also takes sets."""
    inner_floats: bool = False
    """It has floats inside of other values, for which msgspec also takes Decimals."""


def shape_of(*infos: mi.Type) -> Shape:
    return reduce(_both, (_facts(node) for info in infos for node in walk(info)), Shape())


def walk(info: mi.Type) -> Iterator[mi.Type]:
    """Every node of the tree once; recursive types come back to themselves."""
    seen: set[int] = set()
    waiting = [info]
    while waiting:
        node = bare(waiting.pop())
        if id(node) not in seen:
            seen.add(id(node))
            yield node
            waiting.extend(children(node))


def bare(info: mi.Type) -> mi.Type:
    """Without documentation wrapped around it."""
    while isinstance(info, mi.Metadata):
        info = info.type
    return info


def children(info: mi.Type) -> tuple[mi.Type, ...]:
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
    """Are its keys exact and unambiguous as the text of a JSON object's keys? Other dicts are written as pairs."""
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
    """Raises TypeError for what msgspec cannot decode unambiguously, NameError for names not defined yet."""
    msgspec.json.Decoder(annotation)
    return mi.type_info(annotation)


def _facts(node: mi.Type) -> Shape:
    unordered = isinstance(node, mi.SetType | mi.FrozenSetType)
    odd_keys = isinstance(node, mi.DictType) and not has_text_keys(node)
    enum_keys = isinstance(node, mi.DictType) and isinstance(bare(node.key_type), mi.EnumType)
    guided = unordered or odd_keys or isinstance(node, mi.AnyType | mi.CustomType)
    return Shape(
        scalars=isinstance(node, PLAIN),
        kept=isinstance(node, KEPT),
        comparable=not isinstance(node, mi.NamedTupleType) and _has_generated_eq(node),
        exact=not guided and not enum_keys and isinstance(node, EXACT),
        guided=guided,
        floats=isinstance(node, mi.FloatType),
        clocks=isinstance(node, mi.DateTimeType | mi.TimeType),
        dicts=isinstance(node, mi.DictType | mi.TypedDictType) or _has_field(node, TAG),
        arrays=isinstance(node, ARRAYS),
        inner_floats=not isinstance(node, mi.UnionType) and any(map(_may_be_float, children(node))),
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
            return code is not None and code.co_filename == "<string>"  # where dataclasses makes it from
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
        kept=one.kept or other.kept,
        comparable=one.comparable and other.comparable,
        exact=one.exact and other.exact,
        guided=one.guided or other.guided,
        floats=one.floats or other.floats,
        clocks=one.clocks or other.clocks,
        dicts=one.dicts or other.dicts,
        arrays=one.arrays or other.arrays,
        inner_floats=one.inner_floats or other.inner_floats,
    )


def custom_classes(info: mi.Type) -> list[type]:
    """Classes that msgspec itself does not know."""
    return [node.cls for node in walk(info) if isinstance(node, mi.CustomType)]
