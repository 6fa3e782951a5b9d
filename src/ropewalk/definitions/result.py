"""What a handler returns when it says more than a value. Only the context makes one."""

from __future__ import annotations

from typing import Final, Generic, TypeVar

S_co = TypeVar("S_co", covariant=True)
G_co = TypeVar("G_co", covariant=True)
T = TypeVar("T")

_SEAL: Final = object()


class Result(Generic[S_co, G_co]):
    """S is the job's own result, G what its group resolves to. Made by `ctx.result(...)` and `ctx.void()`."""

    __slots__ = ("_value",)

    def __init__(self, value: S_co, *, seal: object = None) -> None:
        if seal is not _SEAL:
            raise TypeError("a Result is made by ctx.result(value) or ctx.void(), inside a handler")
        self._value = value

    @property
    def value(self) -> S_co:
        return self._value

    def __repr__(self) -> str:
        return f"Result({self._value!r})"


def result_of(value: T) -> Result[T, T]:
    """For the context, which remembers every Result it made."""
    return Result(value, seal=_SEAL)
