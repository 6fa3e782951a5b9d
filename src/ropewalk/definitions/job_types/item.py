"""The one input of a batch type's job: stored as itself, without a name around it. Offers what Arguments offers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ropewalk.definitions.codec.codec import Bound, JsonCodec, Wire
from ropewalk.definitions.codec.mismatch import Misfit
from ropewalk.errors import InvalidInput
from ropewalk.ports.codec import Codec

ITEM: Final = "item"
"""under this name functions of the arguments (`options=`, `unique=`) find it"""


class Item:
    names = (ITEM,)
    required = frozenset(names)

    def __init__(self, job_type: str, annotation: Any, codec: Codec) -> None:
        self.job_type = job_type
        self.annotation = annotation
        self.plain_json = type(codec) is JsonCodec
        self._wire = Wire(annotation) if self.plain_json else Bound(codec, annotation)

    def bind(self, args: tuple[object, ...], kwargs: Mapping[str, object]) -> dict[str, object]:
        if kwargs or len(args) != 1:
            given = len(args) + len(kwargs)
            raise InvalidInput(f"{self.job_type} takes its item as one positional argument, not {given} arguments")
        return {ITEM: args[0]}

    def complete(self, given: object) -> dict[str, object]:
        """By name or over HTTP the payload is the item itself."""
        return {ITEM: given}

    def encode(self, arguments: Mapping[str, object]) -> bytes:
        try:
            return self._wire.encode(arguments[ITEM])
        except Misfit as error:
            raise self._named(error) from error

    def decode(self, data: bytes) -> dict[str, object]:
        try:
            return {ITEM: self._wire.decode(data)}
        except Misfit as error:
            raise self._named(error) from error

    def _named(self, error: Misfit) -> InvalidInput:
        return InvalidInput(f"{self.job_type}: the item does not fit: {error}", field=ITEM)
