"""The default codec: JSON by annotation, exact both ways. Never imports, evaluates or unpickles what it reads."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from functools import lru_cache
from typing import Any, Final, cast

import msgspec
from msgspec import inspect as mi

from ropewalk.definitions.codec import custom
from ropewalk.definitions.codec.mismatch import NOT_GIVEN, ValueMismatch, misfit
from ropewalk.definitions.codec.read_back import check_depth, check_same, fields_of
from ropewalk.definitions.codec.shape import Shape, shape_of, type_info
from ropewalk.definitions.codec.tagged import TAG_BYTES, escape, revive
from ropewalk.definitions.codec.to_builtins import KEPT, lowering
from ropewalk.ports.codec import Codec


class JsonCodec(Codec):
    """Values by their annotation as plain JSON; what is not declared, by tags (tagged.py)."""

    def encode(self, value: object, annotation: object) -> bytes:
        return wire(annotation).encode(value)

    def decode(self, data: bytes, annotation: object) -> object:
        return wire(annotation).decode(data)


DEFAULT_CODEC: Final = JsonCodec()


class TypedCodec:
    """How values of one annotation travel.

    Encoding checks the value against the annotation: msgspec's encoder alone would write an int where a str is
    declared. `convert` does it, at 0.15 µs for `{"a": 1, "b": 2}`.

    What has been encoded can be read back, and is then what it was. Where the annotation has only exact parts, this is
    known when the type is built. Everything else, and whatever needed a tag, is decoded once and compared.
    """

    __slots__ = ("_annotation", "_decoder", "_fields", "_kept", "_lower", "_scalars", "_shape", "_untyped")

    def __init__(self, annotation: Any, shape: Shape | None = None) -> None:
        """With a shape, the annotation is a Struct of arguments, which come as a mapping."""
        info = type_info(annotation)
        self._annotation = annotation
        self._shape = shape if shape is not None else shape_of(info)
        self._scalars = self._shape.scalars
        self._kept = KEPT if self._shape.kept else None
        self._lower = lowering(info)
        self._untyped = isinstance(info, mi.AnyType)
        self._decoder = msgspec.json.Decoder(annotation, dec_hook=custom.dec_hook)
        self._fields = None if shape is None else fields_of(annotation)

    def encode(self, value: object) -> bytes:
        """Raises ValueMismatch naming the place of what does not fit."""
        if not self._scalars:
            return self._carefully(value)
        try:
            msgspec.convert(value, self._annotation)
            return _ENCODER.encode(value)
        except Exception:  # which may still fit: a subclass of str
            return self._carefully(value)

    def _carefully(self, value: object) -> bytes:
        try:
            data = self._at_once(value) if self._shape.exact else None
            return self._thoroughly(value) if data is None else data
        except Exception as error:  # functions of the user's may raise anything
            raise misfit(error) from error

    def decode(self, data: bytes) -> object:
        """Raises ValueMismatch naming the place of what does not fit."""
        try:
            if self._scalars or TAG_BYTES not in data:
                return self._decoder.decode(data)
            tree = revive(msgspec.json.decode(data))
            return msgspec.convert(tree, self._annotation, str_keys=True, dec_hook=custom.dec_hook)
        except Exception as error:
            raise misfit(error) from error

    def _at_once(self, value: object) -> bytes | None:
        """None where the thorough way has to tell."""
        shape = self._shape
        try:
            converted = msgspec.convert(value, self._annotation, builtin_types=self._kept)
            if (shape.arrays or shape.floats) and not self._is(converted, value):
                return None
            data = self._written(value)
            if TAG_BYTES not in data:
                return data if not shape.inner_floats or self._decoder.decode(data) == converted else None
        except Exception:
            return None
        self._check_read_back(data, value)
        return data

    def _written(self, raw: object) -> bytes:
        """The one place that escapes a raw tree."""
        shape = self._shape
        if shape.clocks:
            return _ENCODER.encode(escape(raw))
        data = _ENCODER.encode(raw)
        # msgspec writes NaN as null: only where a null is there at all, it is worth looking for one.
        if (shape.floats and b"null" in data) or (shape.dicts and TAG_BYTES in data):
            return _ENCODER.encode(escape(raw))
        return data

    def _is(self, converted: object, value: object) -> bool:
        """msgspec takes a set for a list, too, and would write it in any order; and a Decimal for a float, as text."""
        if self._fields is None:
            return _same(converted, value)
        for name, item in cast("dict[str, object]", value).items():
            other = getattr(converted, self._fields[name])
            if other is not item and not _same(other, item):
                return False
        return True

    def _thoroughly(self, value: object) -> bytes:
        tree = self._lower(value)
        if self._untyped:
            data = _ENCODER.encode(tree)
        elif self._shape.guided:
            self._check(revive(tree))
            data = _ENCODER.encode(tree)
        else:
            self._check(tree)
            data = self._written(tree)
        check_depth(data)
        if not self._untyped or TAG_BYTES in data:
            self._check_read_back(data, value)
        return data

    def _check(self, tree: object) -> None:
        msgspec.convert(tree, self._annotation, builtin_types=KEPT, dec_hook=custom.dec_hook)

    def _check_read_back(self, data: bytes, value: object) -> None:
        try:
            back = self.decode(data)
        except ValueMismatch as error:
            at_fault = _part(value, error.path)
            problem = f"it could not be read back: {error.problem}"
            raise ValueMismatch(problem, error.path, at_fault, quotes=error.quotes) from error
        if not (self._shape.comparable and self._is(back, value)):
            check_same(value, back)


def _same(one: object, other: object) -> bool:
    try:
        return one is other or (one == other and (type(other) is not Decimal or type(one) is Decimal))
    except ArithmeticError:  # a signalling NaN cannot be compared
        return False


def _part(value: object, path: str) -> object:
    """The value of the field at the beginning of a path, or the whole where there is none."""
    named = _FIELD.match(path)
    if named is None:
        return value
    if isinstance(value, Mapping):
        return cast("Mapping[str, object]", value).get(named[1], NOT_GIVEN)
    return getattr(value, named[1], NOT_GIVEN)


class Bound:
    """A user's own codec, for one annotation."""

    __slots__ = ("_annotation", "_codec")

    def __init__(self, codec: Codec, annotation: object) -> None:
        self._codec = codec
        self._annotation = annotation

    def encode(self, value: object) -> bytes:
        return self._codec.encode(value, self._annotation)

    def decode(self, data: bytes) -> object:
        return self._codec.decode(data, self._annotation)


def wire(annotation: object) -> TypedCodec:
    """The wire of an annotation, built once where it can be remembered."""
    try:
        hash(annotation)
    except TypeError:
        return TypedCodec(annotation)
    return _remembered(cast("Any", annotation))


@lru_cache(maxsize=1024)
def _remembered(annotation: Any) -> TypedCodec:
    return TypedCodec(annotation)


_FIELD: Final = re.compile(r"\$\.(\w+)")
_ENCODER: Final = msgspec.json.Encoder()
