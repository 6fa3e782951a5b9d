"""`@job`: makes a job type of a function, with types that follow from the signature of the function.

The order of the overloads matters: async functions come before plain ones, a Context before plain arguments, a Result
before None, and None before any other type. They say `Coroutine` and not `Awaitable`, because `async def` makes it.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Concatenate, Final, Literal, Never, ParamSpec, TypeVar, Unpack, overload

from ropewalk.definitions.context.context import Context
from ropewalk.definitions.job_types.job_type import JobType
from ropewalk.definitions.options import JobTypeOptions, ProcessOptions, type_options
from ropewalk.definitions.results.results import Result
from ropewalk.domain import checks
from ropewalk.errors import DefinitionError, InvalidInput

P = ParamSpec("P")
S = TypeVar("S")
G = TypeVar("G")
T = TypeVar("T")


class _Decorator:
    """The options of a job type, kept until the decorator gets the function."""

    def __init__(self, options: Mapping[str, object]) -> None:
        self._options = dict(options)

    def _with(self, options: Mapping[str, object]) -> dict[str, object]:
        return {**self._options, **options}

    def _make(self, function: object) -> JobType[..., Any, Any]:
        options = dict(self._options)
        shown = getattr(function, "__qualname__", repr(function))
        name = options.pop("name", None)
        try:
            name = None if name is None else checks.text(name, "name")
        except InvalidInput as error:
            raise DefinitionError(f"@job on {shown}: {error}") from error
        return JobType(function, type_options(options, shown), name)


class AsyncFunctionRefused:
    """What type checkers see in place of a job type where an async function should run in a thread or a process.

    It can neither be called nor registered. When the program runs, the decorator raises DefinitionError instead.
    """


class PlainDecorator(_Decorator):
    """The decorator for handlers that run in a thread or a process, which must be plain functions."""

    # This overload overlaps the last ones, for which an async function is a plain one that returns a coroutine.
    @overload
    def __call__(  # type: ignore[overload-overlap]
        self, function: Callable[..., Coroutine[Any, Any, Any]], /
    ) -> AsyncFunctionRefused: ...
    @overload
    def __call__(self, function: Callable[Concatenate[Context, P], Result[S, G]], /) -> JobType[P, S, G]: ...
    @overload
    def __call__(self, function: Callable[Concatenate[Context, P], None], /) -> JobType[P, None, Never]: ...
    @overload
    def __call__(
        self, function: Callable[Concatenate[Context, P], Result[S, G] | None], /
    ) -> JobType[P, S | None, G]: ...
    @overload
    def __call__(self, function: Callable[Concatenate[Context, P], T], /) -> JobType[P, T, T]: ...
    @overload
    def __call__(self, function: Callable[P, Result[S, G]], /) -> JobType[P, S, G]: ...
    @overload
    def __call__(self, function: Callable[P, None], /) -> JobType[P, None, Never]: ...
    @overload
    def __call__(self, function: Callable[P, Result[S, G] | None], /) -> JobType[P, S | None, G]: ...
    @overload
    def __call__(self, function: Callable[P, T], /) -> JobType[P, T, T]: ...
    @overload
    def __call__(self, **options: Unpack[JobTypeOptions]) -> PlainDecorator: ...
    def __call__(
        self, function: Callable[..., object] | None = None, **options: Any
    ) -> JobType[..., Any, Any] | AsyncFunctionRefused | PlainDecorator:
        return PlainDecorator(self._with(options)) if function is None else self._make(function)


class JobDecorator(_Decorator):
    """A decorator that makes a job type of a function. Called with options, it makes a decorator with these added."""

    @overload
    def __call__(
        self, function: Callable[Concatenate[Context, P], Coroutine[Any, Any, Result[S, G]]], /
    ) -> JobType[P, S, G]: ...
    @overload
    def __call__(
        self, function: Callable[Concatenate[Context, P], Coroutine[Any, Any, None]], /
    ) -> JobType[P, None, Never]: ...
    @overload
    def __call__(
        self, function: Callable[Concatenate[Context, P], Coroutine[Any, Any, Result[S, G] | None]], /
    ) -> JobType[P, S | None, G]: ...
    @overload
    def __call__(self, function: Callable[Concatenate[Context, P], Coroutine[Any, Any, T]], /) -> JobType[P, T, T]: ...
    @overload
    def __call__(self, function: Callable[P, Coroutine[Any, Any, Result[S, G]]], /) -> JobType[P, S, G]: ...
    @overload
    def __call__(self, function: Callable[P, Coroutine[Any, Any, None]], /) -> JobType[P, None, Never]: ...
    @overload
    def __call__(
        self, function: Callable[P, Coroutine[Any, Any, Result[S, G] | None]], /
    ) -> JobType[P, S | None, G]: ...
    @overload
    def __call__(self, function: Callable[P, Coroutine[Any, Any, T]], /) -> JobType[P, T, T]: ...
    @overload
    def __call__(self, function: Callable[Concatenate[Context, P], Result[S, G]], /) -> JobType[P, S, G]: ...
    @overload
    def __call__(self, function: Callable[Concatenate[Context, P], None], /) -> JobType[P, None, Never]: ...
    @overload
    def __call__(
        self, function: Callable[Concatenate[Context, P], Result[S, G] | None], /
    ) -> JobType[P, S | None, G]: ...
    @overload
    def __call__(self, function: Callable[Concatenate[Context, P], T], /) -> JobType[P, T, T]: ...
    @overload
    def __call__(self, function: Callable[P, Result[S, G]], /) -> JobType[P, S, G]: ...
    @overload
    def __call__(self, function: Callable[P, None], /) -> JobType[P, None, Never]: ...
    @overload
    def __call__(self, function: Callable[P, Result[S, G] | None], /) -> JobType[P, S | None, G]: ...
    @overload
    def __call__(self, function: Callable[P, T], /) -> JobType[P, T, T]: ...
    @overload
    def __call__(self, *, executor: Literal["process"], **options: Unpack[ProcessOptions]) -> PlainDecorator: ...
    @overload
    def __call__(self, *, executor: Literal["thread"], **options: Unpack[JobTypeOptions]) -> PlainDecorator: ...
    @overload
    def __call__(self, *, executor: Literal["auto"] = ..., **options: Unpack[JobTypeOptions]) -> JobDecorator: ...
    def __call__(
        self, function: Callable[..., object] | None = None, **options: Any
    ) -> JobType[..., Any, Any] | PlainDecorator | JobDecorator:
        if function is not None:
            return self._make(function)
        kind = PlainDecorator if options.get("executor") in ("thread", "process") else JobDecorator
        return kind(self._with(options))


job: Final = JobDecorator({})
"""`@job`, or `@job(name=..., **options)`. To share options, write `slow = job(queue="slow")` and then `@slow`."""
