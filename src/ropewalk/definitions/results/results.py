"""What a handler can return beside a plain value: each makes a Result, which wants to be returned."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, Never, TypeVar, cast, get_args, overload

from ropewalk.definitions.job import Job
from ropewalk.definitions.results.result import (
    G1,
    G2,
    G3,
    G4,
    G5,
    G6,
    G7,
    G8,
    Append,
    Cohort,
    Fold,
    Queueable,
    Result,
    Said,
    queueable,
    result_of,
)
from ropewalk.errors import InvalidInput

S = TypeVar("S")
G = TypeVar("G")
T = TypeVar("T")
N = TypeVar("N")
NumberT = TypeVar("NumberT", bound=int | float)
MappingT = TypeVar("MappingT", bound=Mapping[Any, Any])

_APPENDS: Final = get_args(Append)


class Results:
    """The part of a Context that makes Results, and remembers them."""

    def __init__(self) -> None:
        self._made: list[Result[Any, Any]] = []

    # fmt: off
    @overload
    def result(self, value: T, *, final: bool = False, append: None = None) -> Result[T, T]: ...
    @overload
    def result(self, value: T, *, append: Literal["list"]) -> Result[T, list[T]]: ...
    @overload
    def result(self, value: T, *, append: Literal["count"]) -> Result[T, int]: ...
    @overload
    def result(self, value: NumberT, *, append: Literal["sum", "min", "max"]) -> Result[NumberT, NumberT]: ...
    @overload
    def result(self, value: MappingT, *, append: Literal["merge"]) -> Result[MappingT, MappingT]: ...
    @overload
    def result(self, value: T, *, append: Callable[[N | None, T], N]) -> Result[T, N]: ...
    # fmt: on
    def result(self, value: object, *, final: bool = False, append: Append | Fold | None = None) -> Result[Any, Any]:
        """Return this: the job's result is `value`, and so is its group's unless another one ends later.

        `final` locks the group's value; `append` folds all that are contributed into one: "list", "count", "sum",
        "min", "max", "merge", or a function (existing or None, value) → next.
        """
        if final and append is not None:
            raise InvalidInput(
                "final=True locks the group's value, append= adds to it: give one of them", field="final"
            )
        if append is not None and append not in _APPENDS and not callable(append):
            told = ", ".join(map(repr, _APPENDS))
            raise InvalidInput(f"append={append!r} must be {told} or a function", field="append")
        return self._make(Said(value=value, final=final, append=append))

    # fmt: off
    @overload
    def queue(self, a: Queueable[G1], /) -> Result[None, G1]: ...
    @overload
    def queue(self, a: Queueable[G1], b: Queueable[G2], /) -> Result[None, G1 | G2]: ...
    @overload
    def queue(self, a: Queueable[G1], b: Queueable[G2], c: Queueable[G3], /) -> Result[None, G1 | G2 | G3]: ...
    @overload
    def queue(
        self, a: Queueable[G1], b: Queueable[G2], c: Queueable[G3], d: Queueable[G4], /
    ) -> Result[None, G1 | G2 | G3 | G4]: ...
    @overload
    def queue(
        self, a: Queueable[G1], b: Queueable[G2], c: Queueable[G3], d: Queueable[G4], e: Queueable[G5], /
    ) -> Result[None, G1 | G2 | G3 | G4 | G5]: ...
    @overload
    def queue(
        self, a: Queueable[G1], b: Queueable[G2], c: Queueable[G3], d: Queueable[G4], e: Queueable[G5],
        f: Queueable[G6], /,
    ) -> Result[None, G1 | G2 | G3 | G4 | G5 | G6]: ...
    @overload
    def queue(
        self, a: Queueable[G1], b: Queueable[G2], c: Queueable[G3], d: Queueable[G4], e: Queueable[G5],
        f: Queueable[G6], g: Queueable[G7], /,
    ) -> Result[None, G1 | G2 | G3 | G4 | G5 | G6 | G7]: ...
    @overload
    def queue(
        self, a: Queueable[G1], b: Queueable[G2], c: Queueable[G3], d: Queueable[G4], e: Queueable[G5],
        f: Queueable[G6], g: Queueable[G7], h: Queueable[G8], /,
    ) -> Result[None, G1 | G2 | G3 | G4 | G5 | G6 | G7 | G8]: ...
    @overload
    def queue(self, *items: Queueable[G1]) -> Result[None, G1]: ...
    # fmt: on
    def queue(self, *items: Queueable[Any]) -> Result[None, Any]:
        """Return this: the work is done by these, in the same group; `.next(...)` says what follows them.

        They are written together with the end of this job: a failed attempt queues nothing.
        """
        return self._make(Said(cohorts=(Cohort(queueable(items)),)))

    def void(self) -> Result[None, Never]:
        """Return this: the job has no result. The same as returning None."""
        return self._make(Said())

    def continue_with(self, job: Job[S, G]) -> Result[S, G]:
        """Return this: the job ends, and its chain goes on with `job`, whose result becomes the chain's."""
        if not isinstance(job, Job):
            raise InvalidInput(f"continue_with({job!r}): give a job, made by calling a job type")
        return self._make(Said(continuation=job))

    def unreturned(self, returned: object) -> list[Result[Any, Any]]:
        """The Results made here that are neither `returned` nor in it: for the engine, which calls that an error."""
        if not self._made or not isinstance(returned, Result):
            return list(self._made)
        inside = {id(each) for each in cast("Result[object, object]", returned).inside()}
        return [each for each in self._made if id(each) not in inside]

    def _make(self, said: Said) -> Result[Any, Any]:
        return result_of(said, self._made)
