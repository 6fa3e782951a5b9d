"""The default codec: JSON by annotation, exact both ways. Never imports, evaluates or unpickles what it reads."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final, cast

import msgspec
from msgspec import inspect as mi

from ropewalk.definitions.codec import custom
from ropewalk.definitions.codec.mismatch import REFUSALS, misfit
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
    declared. `convert` does it, at 0.15 µs for `{"a": 1, "b": 2}`; to decode what was encoded costs the same, but
    would let a datetime pass for a str.
    """

    __slots__ = ("_annotation", "_decoder", "_lower", "_shape", "_untyped")

    def __init__(self, annotation: Any, shape: Shape | None = None) -> None:
        info = type_info(annotation)
        self._annotation = annotation
        self._shape = shape if shape is not None else shape_of(info)
        self._lower = lowering(info)
        self._untyped = isinstance(info, mi.AnyType)
        self._decoder = msgspec.json.Decoder(annotation, dec_hook=custom.dec_hook)

    def encode(self, value: object) -> bytes:
        """Raises Misfit naming the place of what does not fit."""
        if self._shape.builtins:
            try:
                msgspec.convert(value, self._annotation)
                return self._written(value)
            except REFUSALS:
                pass  # a str subclass, a range for a Sequence, or a misfit: the thorough way tells
        try:
            return self._thoroughly(value)
        except REFUSALS as error:
            raise misfit(error) from error

    def decode(self, data: bytes) -> object:
        """Raises Misfit naming the place of what does not fit."""
        try:
            if not self._shape.may_be_tagged or TAG_BYTES not in data:
                return self._decoder.decode(data)
            tree = revive(msgspec.json.decode(data))
            return msgspec.convert(tree, self._annotation, str_keys=True, dec_hook=custom.dec_hook)
        except REFUSALS as error:
            raise misfit(error) from error

    def _thoroughly(self, value: object) -> bytes:
        tree = self._lower(value)
        if self._untyped:
            return _ENCODER.encode(tree)
        if self._shape.guided:
            self._check(revive(tree))
            return _ENCODER.encode(tree)
        self._check(tree)
        return self._written(tree if not self._shape.clocks else escape(tree))

    def _check(self, tree: object) -> None:
        msgspec.convert(tree, self._annotation, builtin_types=KEPT, dec_hook=custom.dec_hook)

    def _written(self, tree: object) -> bytes:
        data = _ENCODER.encode(tree)
        # msgspec writes NaN as null: only where a null is there at all, it is worth looking for one.
        if (self._shape.floats and b"null" in data) or (self._shape.dicts and TAG_BYTES in data):
            return _ENCODER.encode(escape(tree))
        return data


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


_ENCODER: Final = msgspec.json.Encoder()
