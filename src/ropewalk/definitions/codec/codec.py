"""The default codec, which writes a value as JSON by its annotation and reads exactly this value back.

It never imports, evaluates or unpickles what it reads.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from functools import lru_cache
from typing import Any, Final, cast

import msgspec
from msgspec import inspect as mi

from ropewalk.definitions.codec import custom
from ropewalk.definitions.codec.mismatch import NOT_GIVEN, ValueMismatch, as_mismatch
from ropewalk.definitions.codec.read_back import check_depth, check_same, fields_of
from ropewalk.definitions.codec.shape import Shape, shape_of, type_info
from ropewalk.definitions.codec.tagged import TAG_BYTES, escape, untag
from ropewalk.definitions.codec.to_builtins import LEFT_TO_ENCODER, builtins_converter
from ropewalk.ports.codec import Codec


class JsonCodec(Codec):
    """Writes values with an annotation as plain JSON, and marks the types of others with tags (tagged.py)."""

    def encode(self, value: object, annotation: object) -> bytes:
        """Encode a value. Raises ValueMismatch naming the place of what does not fit."""
        return typed_codec(annotation).encode(value)

    def decode(self, data: bytes, annotation: object) -> object:
        """Decode a value. Raises ValueMismatch naming the place of what does not fit."""
        return typed_codec(annotation).decode(data)


DEFAULT_CODEC: Final = JsonCodec()


class TypedCodec:
    """Encodes and decodes the values of one annotation.

    Encoding checks the value against the annotation, because msgspec's encoder alone would write an int where a str is
    declared. The check is `msgspec.convert`, which takes 0.15 µs for `{"a": 1, "b": 2}`.

    Every value that was encoded can be read back as it was. For an annotation that has only exact parts, this
    is certain from the beginning. Any other value, and a value that needed a tag, is decoded once and compared.
    """

    __slots__ = (
        "_annotation",
        "_decoder",
        "_fields",
        "_left_to_encoder",
        "_scalars",
        "_shape",
        "_to_builtins",
        "_untyped",
    )

    def __init__(self, annotation: Any, shape: Shape | None = None) -> None:
        """Prepare for this annotation. If a shape is given, the annotation is a Struct, and values come as mappings."""
        info = type_info(annotation)
        self._annotation = annotation
        self._shape = shape if shape is not None else shape_of(info)
        self._scalars = self._shape.scalars
        self._left_to_encoder = LEFT_TO_ENCODER if self._shape.has_non_json_scalars else None
        self._to_builtins = builtins_converter(info)
        self._untyped = isinstance(info, mi.AnyType)
        self._decoder = msgspec.json.Decoder(annotation, dec_hook=custom.dec_hook)
        self._fields = None if shape is None else fields_of(annotation)

    def encode(self, value: object) -> bytes:
        """Encode a value. Raises ValueMismatch naming the place of what does not fit."""
        if not self._scalars:
            return self._encode_or_explain(value)
        try:
            msgspec.convert(value, self._annotation)
            return _ENCODER.encode(value)
        except Exception:  # the value may still fit: it may have a subclass of str
            return self._encode_or_explain(value)

    def _encode_or_explain(self, value: object) -> bytes:
        try:
            data = self._encode_fast(value) if self._shape.exact else None
            return self._encode_and_read_back(value) if data is None else data
        except Exception as error:  # the user's own functions may raise anything
            raise as_mismatch(error) from error

    def decode(self, data: bytes) -> object:
        """Decode a value. Raises ValueMismatch naming the place of what does not fit."""
        try:
            if self._scalars or TAG_BYTES not in data:
                return self._decoder.decode(data)
            tree = untag(msgspec.json.decode(data))
            return msgspec.convert(tree, self._annotation, str_keys=True, dec_hook=custom.dec_hook)
        except Exception as error:
            raise as_mismatch(error) from error

    def _encode_fast(self, value: object) -> bytes | None:
        """Encode an exact annotation's value without building its tree; None if the slower way has to decide."""
        shape = self._shape
        try:
            converted = msgspec.convert(value, self._annotation, builtin_types=self._left_to_encoder)
            if (shape.has_arrays or shape.has_floats) and not self._equals(converted, value):
                return None
            data = self._json_of(value)
            if TAG_BYTES not in data:
                return data if not shape.has_inner_floats or self._decoder.decode(data) == converted else None
        except Exception:
            return None
        self._check_read_back(data, value)
        return data

    def _json_of(self, raw: object) -> bytes:
        """Encode a tree of builtins; only here is a tree escaped that was not escaped while it was built."""
        shape = self._shape
        if shape.has_times:
            return _ENCODER.encode(escape(raw))
        data = _ENCODER.encode(raw)
        # msgspec writes NaN as null, so a NaN is possible only if there is a null.
        if (shape.has_floats and b"null" in data) or (shape.may_have_tag_key and TAG_BYTES in data):
            return _ENCODER.encode(escape(raw))
        return data

    def _equals(self, converted: object, value: object) -> bool:
        """Whether the converted value is the given one.

        It may not be: msgspec accepts a set for a list, and writes it in any order, and a Decimal for a float, as text.
        """
        if self._fields is None:
            return _are_equal(converted, value)
        for name, item in cast("dict[str, object]", value).items():
            other = getattr(converted, self._fields[name])
            if other is not item and not _are_equal(other, item):
                return False
        return True

    def _encode_and_read_back(self, value: object) -> bytes:
        tree = self._to_builtins(value)
        if self._untyped:
            data = _ENCODER.encode(tree)
        elif self._shape.guided:
            self._check(untag(tree))
            data = _ENCODER.encode(tree)
        else:
            self._check(tree)
            data = self._json_of(tree)
        check_depth(data)
        if not self._untyped or TAG_BYTES in data:
            self._check_read_back(data, value)
        return data

    def _check(self, tree: object) -> None:
        msgspec.convert(tree, self._annotation, builtin_types=LEFT_TO_ENCODER, dec_hook=custom.dec_hook)

    def _check_read_back(self, data: bytes, value: object) -> None:
        try:
            back = self.decode(data)
        except ValueMismatch as error:
            at_fault = _field_value(value, error.path)
            problem = f"it could not be read back: {error.problem}"
            raise ValueMismatch(problem, error.path, at_fault, quotes=error.quotes) from error
        if not (self._shape.comparable and self._equals(back, value)):
            check_same(value, back)


def _are_equal(one: object, other: object) -> bool:
    try:
        return one is other or (one == other and (type(other) is not Decimal or type(one) is Decimal))
    except ArithmeticError:  # a signalling NaN cannot be compared
        return False


def _field_value(value: object, path: str) -> object:
    """The value of the field that the path begins with; the whole value if it begins with none."""
    named = _FIELD.match(path)
    if named is None:
        return value
    if isinstance(value, Mapping):
        return cast("Mapping[str, object]", value).get(named[1], NOT_GIVEN)
    return getattr(value, named[1], NOT_GIVEN)


class UserCodec:
    """Encodes and decodes the values of one annotation with a codec of the user's own."""

    __slots__ = ("_annotation", "_codec")

    def __init__(self, codec: Codec, annotation: object) -> None:
        self._codec = codec
        self._annotation = annotation

    def encode(self, value: object) -> bytes:
        """Encode a value; the user's codec may raise anything."""
        return self._codec.encode(value, self._annotation)

    def decode(self, data: bytes) -> object:
        """Decode a value; the user's codec may raise anything."""
        return self._codec.decode(data, self._annotation)


def typed_codec(annotation: object) -> TypedCodec:
    """The codec of an annotation; it is built once if the annotation can be hashed."""
    try:
        hash(annotation)
    except TypeError:
        return TypedCodec(annotation)
    return _cached_codec(cast("Any", annotation))


@lru_cache(maxsize=1024)
def _cached_codec(annotation: Any) -> TypedCodec:
    return TypedCodec(annotation)


_FIELD: Final = re.compile(r"\$\.(\w+)")
_ENCODER: Final = msgspec.json.Encoder()
