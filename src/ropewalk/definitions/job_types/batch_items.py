"""The items of batch types: what their handlers take and return, and how one item is encoded as the input of a job."""

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
    """The items of one call of a batch type's handler, with the contexts of their jobs in the same order."""

    items: list[I]
    contexts: tuple[Context, ...]

    def __len__(self) -> int:
        return len(self.items)

    def __repr__(self) -> str:
        """Show no items, because it is not known here whether they are secret."""
        return f"Batch({len(self.items)} items)"

    def __redacted__(self, hide: Hide) -> object:
        return repr(self)


class BatchSignature(Struct, frozen=True, kw_only=True):
    """The annotations of a batch type's handler."""

    item: Any
    """The annotation of one item."""
    result: Any
    """The annotation of the result of one job."""
    wants_contexts: bool
    """Whether the handler takes a Batch, and not only the list of items."""


def batch_signature_of(function: Handler) -> BatchSignature:
    """Read the annotations of a handler. Raises DefinitionError if they are wrong.

    Raises NameError or AttributeError if they contain a name that is not defined yet.
    """
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
    """The result type in a return annotation Sequence[O] or Mapping[int, O], which is O without exceptions."""
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
"""The name under which functions of the arguments, such as `options=` and `unique=`, get the item."""


class Item:
    """The input of a batch type's job: one item, which is stored without a name. It has the methods of Arguments."""

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
        """The item of a call, by name. Raises InvalidInput for anything but one positional argument."""
        if kwargs or len(args) != 1:
            given = len(args) + len(kwargs)
            raise InvalidInput(f"{self.job_type} takes its item as one positional argument, not {given} arguments")
        return {ITEM: args[0]}

    def complete(self, given: object) -> dict[str, object]:
        """The item by name. Where other types take a mapping of arguments, a batch type takes the item itself."""
        return {ITEM: given}

    def encode(self, arguments: Mapping[str, object]) -> bytes:
        """Encode the item. Raises InvalidInput if it does not fit."""
        try:
            return self._codec.encode(arguments[ITEM])
        except ValueMismatch as error:
            raise self._invalid_input(error) from error.unless_hidden(self.secrets, ITEM)

    def decode(self, data: bytes) -> dict[str, object]:
        """Decode a stored item. Raises InvalidInput if it does not fit."""
        try:
            return {ITEM: self._codec.decode(data)}
        except ValueMismatch as error:
            raise self._invalid_input(error) from error.unless_hidden(self.secrets, ITEM)

    def from_json(self, data: bytes) -> object:
        """Read the item from JSON, either alone or, as jobs are shown, in an object under the name `item`."""
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

    def merged_with_stored(self, stored: bytes, given: object) -> object:
        """The given item, because an item has no parts to merge."""
        return given

    def _item_from_json(self, data: bytes) -> object:
        try:
            return (self._codec if isinstance(self._codec, TypedCodec) else TypedCodec(self.annotation)).decode(data)
        except ValueMismatch as error:
            raise self._invalid_input(error) from error.unless_hidden(self.secrets, ITEM)

    def _invalid_input(self, error: ValueMismatch) -> InvalidInput:
        return InvalidInput(f"{self.job_type}: the item does not fit: {error.hiding(self.secrets, ITEM)}", field=ITEM)
