"""What the handler of a batch type takes and gives: `list[I]` or `Batch[I]`, and one output for each item."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import NoneType, UnionType
from typing import Any, Generic, TypeVar, Union, cast, get_args, get_origin

from msgspec import Struct

from ropewalk.definitions.context.context import Context
from ropewalk.definitions.job_types.signature import Handler, hints_of, own_result, place
from ropewalk.domain.redaction import Hide
from ropewalk.errors import DefinitionError

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
    where, hints = place(function), hints_of(function)
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
