"""What a handler can return beside a plain value: each makes a Result, which wants to be returned.

What a handler returns when it says more than a value: follow-up work, or how its value joins the group's.

A Result only says what is wanted; completion_plan.py turns the returned one into what is stored. Only the context
makes one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, Generic, Literal, Never, TypeAlias, TypeVar, Unpack, cast, get_args, overload

from msgspec import Struct, structs

from ropewalk.definitions import enqueue_options
from ropewalk.definitions.job import NO_OPTIONS, Job, checked_job
from ropewalk.definitions.options import EnqueueOptions
from ropewalk.domain import checks
from ropewalk.errors import InvalidInput

S_co = TypeVar("S_co", covariant=True)
G_co = TypeVar("G_co", covariant=True)
G1 = TypeVar("G1")
G2 = TypeVar("G2")
G3 = TypeVar("G3")
G4 = TypeVar("G4")
G5 = TypeVar("G5")
G6 = TypeVar("G6")
G7 = TypeVar("G7")
G8 = TypeVar("G8")

Append: TypeAlias = Literal["list", "count", "sum", "min", "max", "merge"]
Fold: TypeAlias = Callable[[Any, Any], object]
"""(existing or None, value) → next"""

_SEAL: Final = object()


class Cohort(Struct, frozen=True):
    """Jobs queued together. What was nested into it begins with it and ends in its own time."""

    items: tuple[Job[Any, Any] | Result[Any, Any], ...]
    options: EnqueueOptions = NO_OPTIONS
    follows: bool = False
    """it came by .next: behind whatever was queued before"""


class Said(Struct, frozen=True, kw_only=True):
    value: object = None
    final: bool = False
    append: Append | Fold | None = None
    cohorts: tuple[Cohort, ...] = ()
    """each waits for the one before"""
    continuation: Job[Any, Any] | None = None

    @property
    def contributes(self) -> bool:
        """Does the job's own value join the group's?"""
        return self.value is not None or self.final or self.append is not None


class Result(Generic[S_co, G_co]):
    """S is the job's own result, G what its group resolves to.

    Made by `ctx.result(...)`, `ctx.queue(...)`, `ctx.continue_with(...)`, `ctx.void()`, and by `.next(...)` of another.
    """

    __slots__ = ("_before", "_made", "_said")

    def __init__(
        self, said: Said, made: list[Result[Any, Any]], before: Result[Any, Any] | None = None, *, seal: object = None
    ) -> None:
        if seal is not _SEAL:
            raise TypeError("a Result is made by ctx.result(value), ctx.queue(...) or ctx.void(), inside a handler")
        self._said = said
        self._made = made
        self._before = before
        made.append(self)

    @property
    def value(self) -> S_co:
        return cast("S_co", self._said.value)

    @property
    def said(self) -> Said:
        return self._said

    # fmt: off
    @overload
    def next(self, a: Queueable[G1], /, **options: Unpack[EnqueueOptions]) -> Result[S_co, G_co | G1]: ...
    @overload
    def next(
        self, a: Queueable[G1], b: Queueable[G2], /, **options: Unpack[EnqueueOptions]
    ) -> Result[S_co, G_co | G1 | G2]: ...
    @overload
    def next(
        self, a: Queueable[G1], b: Queueable[G2], c: Queueable[G3], /, **options: Unpack[EnqueueOptions]
    ) -> Result[S_co, G_co | G1 | G2 | G3]: ...
    @overload
    def next(
        self, a: Queueable[G1], b: Queueable[G2], c: Queueable[G3], d: Queueable[G4], /,
        **options: Unpack[EnqueueOptions],
    ) -> Result[S_co, G_co | G1 | G2 | G3 | G4]: ...
    @overload
    def next(
        self, a: Queueable[G1], b: Queueable[G2], c: Queueable[G3], d: Queueable[G4], e: Queueable[G5], /,
        **options: Unpack[EnqueueOptions],
    ) -> Result[S_co, G_co | G1 | G2 | G3 | G4 | G5]: ...
    @overload
    def next(
        self, a: Queueable[G1], b: Queueable[G2], c: Queueable[G3], d: Queueable[G4], e: Queueable[G5],
        f: Queueable[G6], /, **options: Unpack[EnqueueOptions],
    ) -> Result[S_co, G_co | G1 | G2 | G3 | G4 | G5 | G6]: ...
    @overload
    def next(
        self, a: Queueable[G1], b: Queueable[G2], c: Queueable[G3], d: Queueable[G4], e: Queueable[G5],
        f: Queueable[G6], g: Queueable[G7], /, **options: Unpack[EnqueueOptions],
    ) -> Result[S_co, G_co | G1 | G2 | G3 | G4 | G5 | G6 | G7]: ...
    @overload
    def next(
        self, a: Queueable[G1], b: Queueable[G2], c: Queueable[G3], d: Queueable[G4], e: Queueable[G5],
        f: Queueable[G6], g: Queueable[G7], h: Queueable[G8], /, **options: Unpack[EnqueueOptions],
    ) -> Result[S_co, G_co | G1 | G2 | G3 | G4 | G5 | G6 | G7 | G8]: ...
    @overload
    def next(
        self, a: Queueable[G1], /, *items: Queueable[G1], **options: Unpack[EnqueueOptions]
    ) -> Result[S_co, G_co | G1]: ...
    # fmt: on
    def next(self, *items: Queueable[Any], **options: Unpack[EnqueueOptions]) -> Result[Any, Any]:
        """Then these: when everything queued before, with all that is under it, satisfies `when` (all_success).

        The options are for all of them. No job at all, as from an empty list, is passed over. A job with `depends_on`
        of its own waits for both together.
        """
        if self._said.continuation is not None:
            raise InvalidInput("continue_with(...) ends this job: let the job it continues with queue what comes next")
        enqueue_options.check(options)
        cohort = Cohort(queueable(items), options, follows=True)
        said = structs.replace(self._said, cohorts=(*self._said.cohorts, cohort))
        return Result(said, self._made, self, seal=_SEAL)

    def inside(self) -> Iterator[Result[Any, Any]]:
        """This one, those it was made from, and those nested into it."""
        waiting: list[Result[Any, Any]] = [self]
        while waiting:
            result = waiting.pop()
            yield result
            if result._before is not None:
                waiting.append(result._before)
            for cohort in result._said.cohorts:
                waiting.extend(item for item in cohort.items if isinstance(item, Result))

    def __repr__(self) -> str:
        """Without its value: whether that is secret is not known here."""
        said = self._said
        if said.continuation is not None:
            told = f"continue with {said.continuation}"
        else:
            told = "None" if said.value is None else f"<{type(said.value).__name__}>"
        return f"Result({', then '.join([told, *(f'{len(each.items)} queued' for each in said.cohorts)])})"


Queueable: TypeAlias = Job[Any, G1] | Result[None, G1]
"""What can be queued: a job, or a Result of ctx.queue(...) with everything in it. That one has no value of its own."""


def result_of(said: Said, made: list[Result[Any, Any]]) -> Result[Any, Any]:
    """For the context, which remembers in `made` every Result it made."""
    return Result(said, made, seal=_SEAL)


def queueable(items: tuple[object, ...]) -> tuple[Job[Any, Any] | Result[Any, Any], ...]:
    """Refuse what is no job, and Results that say more than what to queue."""
    for item in items:
        if isinstance(item, Result):
            said = cast("Result[object, object]", item).said
            if said.contributes or said.continuation is not None:
                raise InvalidInput(f"{item!r} cannot be queued: {_instead(said)}", field="queue")
        else:
            checked_job(item, "queue")
    return cast("tuple[Job[Any, Any] | Result[Any, Any], ...]", items)


def _instead(said: Said) -> str:
    if said.continuation is not None:
        return "return it alone, or queue its job and name what follows it with .next(...)"
    return (
        "only jobs and ctx.queue(...), with its .next(...), can be. A job that has a value and queues others returns "
        "ctx.result(value).next(...)"
    )


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
        checks.flag(final, "final")
        if append is not None and not callable(append):
            checks.choice(append, "append", _APPENDS, also="a function")
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
        checked_job(job, "continue_with")
        return self._make(Said(continuation=job))

    def unreturned(self, returned: object) -> list[Result[Any, Any]]:
        """The Results made here that are neither `returned` nor in it: for the engine, which calls that an error."""
        if not self._made or not isinstance(returned, Result):
            return list(self._made)
        inside = {id(each) for each in cast("Result[object, object]", returned).inside()}
        return [each for each in self._made if id(each) not in inside]

    def _make(self, said: Said) -> Result[Any, Any]:
        return result_of(said, self._made)
