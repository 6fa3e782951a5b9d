"""What a handler returns when it returns more than a value: jobs that follow, or how its value joins that of its group.

The context makes a Result, and the handler has to return it. A Result only describes what is to happen;
completion_plan.py makes the jobs of it that are stored.
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
"""The ways in which values are folded into the value of a group."""

Fold: TypeAlias = Callable[[Any, Any], object]
"""A function from the value of the group so far, or None, and a job's value to the next value of the group."""

_SEAL: Final = object()


class Cohort(Struct, frozen=True):
    """Jobs that were queued together. Those of a nested Result begin with them, and the next cohort waits for all."""

    items: tuple[Job[Any, Any] | Result[Any, Any], ...]
    options: EnqueueOptions = NO_OPTIONS
    follows: bool = False
    """Whether it came by `.next`, so that it waits for the cohort before."""


class Said(Struct, frozen=True, kw_only=True):
    """The content of a Result: what its handler said with it."""

    value: object = None
    final: bool = False
    append: Append | Fold | None = None
    cohorts: tuple[Cohort, ...] = ()
    """The cohorts in order; each waits for the one before."""
    continuation: Job[Any, Any] | None = None

    @property
    def contributes(self) -> bool:
        """Whether the job's own value becomes a part of the value of its group."""
        return self.value is not None or self.final or self.append is not None


class Result(Generic[S_co, G_co]):
    """What a handler can return instead of a plain value.

    S is the type of the job's own result, G that of the value of its group.
    `ctx.result(...)`, `ctx.queue(...)`, `ctx.continue_with(...)` and `ctx.void()` make one, and so does `.next(...)`.
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
        """The job's own result."""
        return cast("S_co", self._said.value)

    @property
    def said(self) -> Said:
        """For the engine: what this Result contains."""
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
        """Queue these jobs behind those queued before, so that they start when those satisfy `when` (all_success).

        A job queued before counts with everything under it. The options apply to all of these jobs. A call without
        jobs, as from an empty list, has no effect. A job with `depends_on` of its own waits for both together.
        """
        if self._said.continuation is not None:
            raise InvalidInput("continue_with(...) ends this job: let the job it continues with queue what comes next")
        enqueue_options.check(options)
        cohort = Cohort(queueable(items), options, follows=True)
        said = structs.replace(self._said, cohorts=(*self._said.cohorts, cohort))
        return Result(said, self._made, self, seal=_SEAL)

    def inside(self) -> Iterator[Result[Any, Any]]:
        """This Result, those that it was made from, and those that are nested in it."""
        waiting: list[Result[Any, Any]] = [self]
        while waiting:
            result = waiting.pop()
            yield result
            if result._before is not None:
                waiting.append(result._before)
            for cohort in result._said.cohorts:
                waiting.extend(item for item in cohort.items if isinstance(item, Result))

    def __repr__(self) -> str:
        """Show no value, because it is not known here whether it is secret."""
        said = self._said
        if said.continuation is not None:
            first = f"continue with {said.continuation}"
        else:
            first = "None" if said.value is None else f"<{type(said.value).__name__}>"
        return f"Result({', then '.join([first, *(f'{len(each.items)} queued' for each in said.cohorts)])})"


Queueable: TypeAlias = Job[Any, G1] | Result[None, G1]
"""What can be queued: a job, or a Result of ctx.queue(...), which has no value of its own, with everything in it."""


def result_of(said: Said, made: list[Result[Any, Any]]) -> Result[Any, Any]:
    """Make a Result for the context, which remembers all its Results in `made`."""
    return Result(said, made, seal=_SEAL)


def queueable(items: tuple[object, ...]) -> tuple[Job[Any, Any] | Result[Any, Any], ...]:
    """The items, checked. Raises InvalidInput for what is no job, and for a Result that is more than jobs to queue."""
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
    """The part of a Context that makes Results and remembers them."""

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
        """Make a Result to return: `value` is the job's result, and its group's value unless another job ends later.

        `final` locks the group's value. `append` folds all contributed values into one: "list", "count", "sum", "min",
        "max", "merge", or a function from the value so far, or None, and a new value to the next one.
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
        """Make a Result to return: these jobs do the work, in the same group. `.next(...)` queues jobs behind them.

        They are written together with the completion of this job, so a failed attempt queues nothing.
        """
        return self._make(Said(cohorts=(Cohort(queueable(items)),)))

    def void(self) -> Result[None, Never]:
        """Make a Result to return: the job has no result, as if the handler returned None."""
        return self._make(Said())

    def continue_with(self, job: Job[S, G]) -> Result[S, G]:
        """Make a Result to return: the job ends, and `job` continues its chain, whose result is that of `job`."""
        checked_job(job, "continue_with")
        return self._make(Said(continuation=job))

    def unreturned(self, returned: object) -> list[Result[Any, Any]]:
        """For the engine: the Results made here that are neither `returned` nor in it, which is an error."""
        if not self._made or not isinstance(returned, Result):
            return list(self._made)
        inside = {id(each) for each in cast("Result[object, object]", returned).inside()}
        return [each for each in self._made if id(each) not in inside]

    def _make(self, said: Said) -> Result[Any, Any]:
        return result_of(said, self._made)
