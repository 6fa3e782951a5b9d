"""What middlewares provided for one attempt, by class. Knows nothing of where the rest comes from."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, cast

from ropewalk.errors import InvalidInput

T = TypeVar("T")


class Provided:
    def __init__(self) -> None:
        self._values: dict[type, object] = {}

    def add(self, kind: type[T], value: T) -> None:
        if not isinstance(kind, type):
            raise InvalidInput(f"provide({kind!r}, ...): give the class to find it by", field="kind")
        if not isinstance(value, kind):
            raise InvalidInput(f"provide({kind.__name__}, {value!r}): the value is no {kind.__name__}", field="value")
        self._values.pop(kind, None)  # so that the newest is the last
        self._values[kind] = value

    def find(self, kind: type[T], elsewhere: Callable[[type[T]], T]) -> T:
        """The one provided under this very class, else the newest that is of it, else what `elsewhere` has."""
        if kind in self._values:
            return cast("T", self._values[kind])
        for value in reversed(self._values.values()):
            if isinstance(value, kind):
                return value
        try:
            return elsewhere(kind)
        except LookupError as error:
            have = ", ".join(each.__name__ for each in self._values)
            raise LookupError(f"{error}; middlewares provided {have}") from None
