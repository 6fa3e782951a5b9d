"""A job as it is built: immutable, checked, encoded, with its id. Nothing is queued until it is enqueued."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Generic, TypeVar, Unpack, cast

from msgspec import Struct, structs

from ropewalk.definitions import checks, identity
from ropewalk.definitions.options import EnqueueOptions

if TYPE_CHECKING:
    from ropewalk.definitions.job_types.job_type import JobType

S_co = TypeVar("S_co", covariant=True)
G_co = TypeVar("G_co", covariant=True)

REPR_CHARS_MAX: Final = 120

NO_OPTIONS: Final = cast("EnqueueOptions", MappingProxyType({}))


class Job(Struct, Generic[S_co, G_co], frozen=True, eq=False):
    """Made by calling a job type. Two jobs are equal when id, type, input and options are."""

    id: str
    type: JobType[..., S_co, G_co]
    input: bytes
    """the encoded arguments: what is stored"""
    arguments: Mapping[str, object]
    """as they were given, defaults filled in"""
    options: EnqueueOptions = NO_OPTIONS
    """what `using` was given; read-only"""

    def using(self, **options: Unpack[EnqueueOptions]) -> Job[S_co, G_co]:
        """A copy with these options (over earlier ones), and with the same id unless `id` is among them."""
        checks.known_names(options, ENQUEUE_OPTIONS, "option of a job")
        own_id = options.pop("id", self.id)
        merged = MappingProxyType({**self.options, **options})
        return structs.replace(self, id=own_id, options=cast("EnqueueOptions", merged))

    def again(self) -> Job[S_co, G_co]:
        """A copy with a new id: the same work, once more."""
        return structs.replace(self, id=identity.new_id())

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Job):
            return NotImplemented
        return self._content() == other._content()

    def __ne__(self, other: object) -> bool:
        return not self == other  # Struct brings a `!=` of its own, which is not the opposite of this `==`

    def _content(self) -> tuple[object, ...]:
        return self.id, self.type, self.input, self.options

    def __hash__(self) -> int:
        return hash(self.id)

    def __repr__(self) -> str:
        given = "".join(f" {name}={value!r}" for name, value in self.arguments.items())
        shown = given if len(given) <= REPR_CHARS_MAX else f"{given[:REPR_CHARS_MAX]}..."
        return f"Job({self.type.name}{shown})"


ENQUEUE_OPTIONS: Final = frozenset(EnqueueOptions.__annotations__)
