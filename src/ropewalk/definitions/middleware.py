"""The middlewares that users write: their form, the check that an app has those that a type requires, and their values.

`worker/middleware_chain.py` wraps them around handlers.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar, cast

from ropewalk.domain import checks
from ropewalk.domain.shown_values import shown
from ropewalk.errors import DefinitionError, InvalidInput

if TYPE_CHECKING:
    from ropewalk.definitions.context.context import Context
    from ropewalk.definitions.job_types.job_type import JobType


SHAPE = "async def middleware(ctx, call_next)"
"""The form of a middleware, for error messages."""


class CallNext(Protocol):
    """Calls the next middleware, or the handler after the last one, and returns what it returned.

    A middleware awaits it once. `call_next(ctx)` means the same as `call_next()`, because an attempt has one context.
    """

    def __call__(self, ctx: Context | None = None, /) -> Coroutine[Any, Any, object]: ...


class Middleware(Protocol):
    """A function `async def middleware(ctx, call_next)`, or an object with such a `__call__`.

    What it returns is the result of the job.
    """

    def __call__(self, ctx: Context, call_next: CallNext, /) -> Coroutine[Any, Any, object]: ...


Requirement: TypeAlias = Middleware | type[Middleware]
"""A middleware that a type requires: this object, or any object of this class."""


def middlewares_of(value: object, field: str) -> tuple[Middleware, ...]:
    """Check one or several middlewares. Raises InvalidInput naming what is none."""
    return cast("tuple[Middleware, ...]", tuple(_checked(each, field) for each in _several(value, field)))


def requirements_of(value: object, field: str) -> tuple[Requirement, ...]:
    """Check the middlewares that a type requires, of which some may be classes. Raises InvalidInput."""
    given = _several(value, field)
    required = tuple(each if inspect.isclass(each) else _checked(each, field) for each in given)
    return cast("tuple[Requirement, ...]", required)


def check_required(types: Iterable[JobType[..., Any, Any]], middlewares: Sequence[Middleware]) -> None:
    """Raises DefinitionError if a type requires a middleware that is neither among these nor its own."""
    for job_type in types:
        options = job_type.options
        present = (*middlewares, *options.middlewares)
        lacking = [each for each in options.requires if not any(_meets(one, each) for one in present)]
        if lacking:
            missing = " and ".join(middleware_name(each) for each in lacking)
            have = ", ".join(middleware_name(each) for each in present) or "none"
            raise DefinitionError(
                f"{job_type.name} requires the middleware {missing}, and this app has {have}: "
                f"add it with App(middlewares=[...]), or leave the type out with app.worker(types=[...])"
            )


def middleware_name(middleware: object) -> str:
    """The name of a middleware, for messages and errors."""
    return getattr(middleware, "__qualname__", None) or type(middleware).__qualname__


def _several(value: object, field: str) -> tuple[object, ...]:
    return checks.several(value, field, lambda each, _: each)


def _checked(each: object, field: str) -> object:
    if (reason := _why_not(each)) is not None:
        raise InvalidInput(f"{field}: {middleware_name(each)} {reason}; write `{SHAPE}`", field=field)
    return each


def _why_not(each: object) -> str | None:
    if inspect.isclass(each):
        return "is a class: give an object of it"
    if not callable(each):
        return f"is {each!r}, which cannot be called"
    # A wrapper (functools.wraps) around an async function returns its coroutine.
    function = inspect.unwrap(each if _is_function(each) else each.__call__)
    if inspect.isasyncgenfunction(function) or inspect.isgeneratorfunction(function):
        return "yields: where it does, `await call_next()`"
    if not inspect.iscoroutinefunction(function):
        return "is not async"
    return None if _takes_two(each) else f"takes {inspect.signature(each)}"


def _is_function(called: object) -> bool:
    return inspect.isroutine(called) or isinstance(called, functools.partial)


def _takes_two(called: Callable[..., object]) -> bool:
    try:
        inspect.signature(called).bind(None, None)
    except TypeError:
        return False
    return True


def _meets(given: Middleware, required: Requirement) -> bool:
    return isinstance(given, required) if isinstance(required, type) else given is required


T = TypeVar("T")


class Provided:
    """The values that middlewares provided for one attempt, by class."""

    def __init__(self) -> None:
        self._values: dict[type, object] = {}

    def add(self, kind: type[T], value: T) -> None:
        """Provide a value under this class. Raises InvalidInput if it is no object of it."""
        if not isinstance(kind, type):
            raise InvalidInput(f"provide({kind!r}, ...): give the class to find it by", field="kind")
        if not isinstance(value, kind):
            raise InvalidInput(
                f"provide({kind.__name__}, {shown(value)}): the value is no {kind.__name__}", field="value"
            )
        self._values.pop(kind, None)  # so that the newest is the last
        self._values[kind] = value

    def find(self, kind: type[T], elsewhere: Callable[[type[T]], T]) -> T:
        """The value that was provided under this class; else the newest object of the class; else that of `elsewhere`.

        Raises LookupError.
        """
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
