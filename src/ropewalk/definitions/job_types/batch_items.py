"""What the handler of a batch type takes and gives: `list[I]` or `Batch[I]`, and one output for each item."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import NoneType, UnionType
from typing import Any, Final, Generic, TypeVar, Union, cast, get_args, get_origin

import msgspec
from msgspec import Struct

from ropewalk.definitions.codec.codec import JsonCodec, TypedCodec, UserCodec
from ropewalk.definitions.codec.mismatch import ValueMismatch
from ropewalk.definitions.context.context import Context
from ropewalk.definitions.job_types.arguments import fields_of_json
from ropewalk.definitions.job_types.signature import Handler, hints_of, own_result, qualified_name
from ropewalk.domain.redaction import Hide
from ropewalk.domain.secret_marks import is_marked_secret, secret_names
from ropewalk.errors import DefinitionError, InvalidInput
from ropewalk.ports.codec import Codec

I = TypeVar("I")  # noqa: E741 # as in list[I]: an item


@dataclass(frozen=True, slots=True, repr=False)
class Batch(Generic[I]):
    """The items of one call, each with the context of its job."""

    items: list[I]
    contexts: tuple[Context, ...]

    def __len__(self) -> int:
        return len(self.items)

    def __repr__(self) -> str:
        """Without its items: whether they are secret is not known here."""
        return f"Batch({len(self.items)} items)"

    def __redacted__(self, hide: Hide) -> object:
        return repr(self)


class BatchSignature(Struct, frozen=True, kw_only=True):
    item: Any
    result: Any
    """of one item: S"""
    wants_contexts: bool
    """it takes a Batch, not only the list"""


def batch_signature_of(function: Handler) -> BatchSignature:
    """Raises NameError or AttributeError where annotations name what is not defined (yet), else DefinitionError."""
    where, hints = qualified_name(function), hints_of(function)
    names = list(inspect.signature(function).parameters)
    annotation = hints.get(names[0]) if len(names) == 1 else None
    origin, inside = get_origin(annotation), get_args(annotation)
    if origin not in (list, Batch) or len(inside) != 1:
        raise DefinitionError(
            f"{where}: the handler of a batch type takes exactly one parameter, annotated list[I] or Batch[I]"
        )
    result = _output(where, hints.get("return", Any))
    return BatchSignature(item=inside[0], result=result, wants_contexts=origin is Batch)


def _output(where: str, annotation: Any) -> Any:
    """O of Sequence[O] or Mapping[int, O]: exceptions in it are outcomes of their own, not results."""
    if annotation is Any:
        return Any
    origin, inside = get_origin(annotation), get_args(annotation)
    if isinstance(origin, type) and issubclass(origin, Mapping) and len(inside) == 2 and inside[0] is int:
        origin, inside = list, inside[1:]
    one_by_one = isinstance(origin, type) and issubclass(origin, Sequence) and len(set(inside) - {...}) == 1
    if not one_by_one:
        raise DefinitionError(
            f"{where}: the handler of a batch type returns one output for each item: annotate it as list[O], or "
            f"dict[int, O] by position, not {annotation!r}"
        )
    members = get_args(inside[0]) if get_origin(inside[0]) in (Union, UnionType) else (inside[0],)
    kept = [each for each in members if not _is_exception(each)]
    if not kept:
        return NoneType
    return own_result(where, inside[0] if len(kept) == len(members) else cast("Any", Union)[tuple(kept)])


def _is_exception(annotation: object) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, BaseException)


ITEM: Final = "item"
"""under this name functions of the arguments (`options=`, `unique=`) find it"""


class Item:
    names = (ITEM,)
    required = frozenset(names)

    def __init__(self, job_type: str, annotation: Any, codec: Codec) -> None:
        self.job_type = job_type
        self.annotation = annotation
        marked = frozenset({ITEM} if is_marked_secret(annotation) else ())
        self.secrets = marked | secret_names(annotation)
        self.plain_json = type(codec) is JsonCodec
        self._codec = TypedCodec(annotation) if self.plain_json else UserCodec(codec, annotation)

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
            return self._codec.encode(arguments[ITEM])
        except ValueMismatch as error:
            raise self._invalid_input(error) from error.unless_hidden(self.secrets, ITEM)

    def decode(self, data: bytes) -> dict[str, object]:
        try:
            return {ITEM: self._codec.decode(data)}
        except ValueMismatch as error:
            raise self._invalid_input(error) from error.unless_hidden(self.secrets, ITEM)

    def from_json(self, data: bytes) -> object:
        """The item, from JSON of itself or, as jobs are shown, of an object that holds it as `item`."""
        try:
            named = fields_of_json.decode(data)
        except msgspec.DecodeError:
            named = {}
        if named.keys() != {ITEM}:
            return self._item_from_json(data)
        try:
            return self._item_from_json(bytes(named[ITEM]))
        except InvalidInput:
            try:
                return self._item_from_json(data)
            except InvalidInput:
                pass
            raise

    part_from_json = from_json

    def merged_with_stored(self, stored: bytes, given: object) -> object:  # an item has no parts
        return given

    def _item_from_json(self, data: bytes) -> object:
        try:
            return (self._codec if isinstance(self._codec, TypedCodec) else TypedCodec(self.annotation)).decode(data)
        except ValueMismatch as error:
            raise self._invalid_input(error) from error.unless_hidden(self.secrets, ITEM)

    def _invalid_input(self, error: ValueMismatch) -> InvalidInput:
        return InvalidInput(f"{self.job_type}: the item does not fit: {error.hiding(self.secrets, ITEM)}", field=ITEM)
