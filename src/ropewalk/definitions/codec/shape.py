"""What an annotation is made of, as far as it decides how its values must be written."""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from typing import Final

import msgspec
from msgspec import Struct
from msgspec import inspect as mi

from ropewalk.definitions.codec.tagged import TAG

BUILTIN: Final = (mi.NoneType, mi.BoolType, mi.IntType, mi.FloatType, mi.StrType, mi.LiteralType)
BUILTIN_CONTAINERS: Final = (mi.ListType, mi.TupleType, mi.VarTupleType, mi.DictType, mi.TypedDictType, mi.UnionType)


class Shape(Struct, frozen=True, kw_only=True):
    """Facts about an annotation, over its whole tree."""

    builtins: bool = True
    """nothing but None, bool, int, float, str and containers of them: values are JSON as they are"""
    guided: bool = False
    """has untyped, custom or unordered parts: the annotation must lead through the value"""
    floats: bool = False
    """NaN and infinities are possible, which JSON lacks"""
    clocks: bool = False
    """datetimes or times: an odd offset is possible"""
    dicts: bool = False
    """a key may look like the codec's own tag"""

    @property
    def may_be_tagged(self) -> bool:
        return self.guided or self.floats or self.clocks or self.dicts


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
        case mi.UUIDType() | mi.DecimalType() | mi.BytesType():
            return True
        case _:
            return False


def type_info(annotation: object) -> mi.Type:
    """Raises TypeError for what msgspec cannot decode unambiguously, NameError for names not defined yet."""
    msgspec.json.Decoder(annotation)
    return mi.type_info(annotation)


def _facts(node: mi.Type) -> Shape:
    unordered = isinstance(node, mi.SetType | mi.FrozenSetType)
    odd_keys = isinstance(node, mi.DictType) and not has_text_keys(node)
    guided = unordered or odd_keys or isinstance(node, mi.AnyType | mi.CustomType)
    return Shape(
        builtins=not guided and isinstance(node, BUILTIN + BUILTIN_CONTAINERS),
        guided=guided,
        floats=isinstance(node, mi.FloatType),
        clocks=isinstance(node, mi.DateTimeType | mi.TimeType),
        dicts=isinstance(node, mi.DictType | mi.TypedDictType) or _has_field(node, TAG),
    )


def _has_field(node: mi.Type, name: str) -> bool:
    return isinstance(node, mi.StructType) and any(field.encode_name == name for field in node.fields)


def _both(one: Shape, other: Shape) -> Shape:
    return Shape(
        builtins=one.builtins and other.builtins,
        guided=one.guided or other.guided,
        floats=one.floats or other.floats,
        clocks=one.clocks or other.clocks,
        dicts=one.dicts or other.dicts,
    )


def custom_classes(info: mi.Type) -> list[type]:
    """Classes that msgspec itself does not know."""
    return [node.cls for node in walk(info) if isinstance(node, mi.CustomType)]
