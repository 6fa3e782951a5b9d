"""The signature of a handler: the rules for it, and its annotations once they can be resolved."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import FunctionType, NoneType, UnionType
from typing import Any, Final, Literal, Never, NoReturn, TypeAlias, Union, cast, get_args, get_origin, get_type_hints

from msgspec import Struct

from ropewalk.definitions.context.context import Context
from ropewalk.definitions.options import Executor
from ropewalk.definitions.results.results import Result
from ropewalk.errors import DefinitionError

Style: TypeAlias = Literal["async", "thread", "process"]
"""Where a handler runs: on the event loop, in a thread, or in a process of its own."""

Handler: TypeAlias = Callable[..., Any]

REQUIRED: Final = inspect.Parameter.empty
"""Stands for the default of a parameter that has none."""


class Parameter(Struct, frozen=True, kw_only=True):
    """One parameter of a handler."""

    name: str
    annotation: Any
    """The annotation; `Any` if there is none."""
    default: object = REQUIRED
    keyword_only: bool = False


class Signature(Struct, frozen=True, kw_only=True):
    """The signature of a handler as callers see it, without the context."""

    takes_context: bool
    parameters: tuple[Parameter, ...]
    result: Any
    """The annotation of the job's own result; `Any` if there is none."""


def qualified_name(function: Handler) -> str:
    """The module and name of a function, for error messages."""
    return f"{function.__module__}.{function.__qualname__}"


def check_function(function: object) -> Handler:
    """Check a handler as far as possible without resolving its annotations. Raises DefinitionError."""
    if not isinstance(function, FunctionType):
        raise DefinitionError(f"@job takes a plain function, not {function!r}")
    where = qualified_name(function)
    if function.__name__ == "<lambda>":
        raise DefinitionError(f"{where}: a lambda has no name to find it by; write a function with def")
    if "." in function.__qualname__.rpartition("<locals>.")[2]:
        raise DefinitionError(f"{where}: a method cannot be a job; move it out of the class and pass what it needs")
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise DefinitionError(f"{where}: a generator cannot be a job; return a value, or spawn a job for each item")
    for index, parameter in enumerate(inspect.signature(function).parameters.values()):
        _check_parameter(where, index, parameter)
    return function


def style_of(function: Handler, executor: Executor) -> Style:
    """Where this handler runs. Raises DefinitionError if it cannot run where `executor` says."""
    # A wrapper (functools.wraps) around an async function returns its coroutine.
    is_async = inspect.iscoroutinefunction(function) or (
        executor == "auto" and inspect.iscoroutinefunction(inspect.unwrap(function))
    )
    if executor == "auto":
        return "async" if is_async else "thread"
    if is_async:
        raise DefinitionError(
            f"{qualified_name(function)}: executor={executor!r} runs plain functions; write def, not async def"
        )
    if executor == "process" and "<locals>" in function.__qualname__:
        raise DefinitionError(
            f"{qualified_name(function)}: another process cannot find a nested function; move it to the module"
        )
    return executor


def signature_of(function: Handler) -> Signature:
    """Resolve the annotations of a handler. Raises DefinitionError if they are wrong.

    Raises NameError or AttributeError if they contain a name that is not defined yet.
    """
    where = qualified_name(function)
    hints = hints_of(function)
    parameters = [
        Parameter(
            name=each.name,
            annotation=hints.get(each.name, Any),
            default=each.default,
            keyword_only=each.kind is each.KEYWORD_ONLY,
        )
        for each in inspect.signature(function).parameters.values()
    ]
    takes_context = bool(parameters) and parameters[0].annotation is Context
    if parameters and not takes_context:
        _check_first(where, parameters[0], function)
    parameters = parameters[1:] if takes_context else parameters
    for each in parameters:
        if each.annotation is Context:
            raise DefinitionError(f"{where}: only the first parameter can be the Context; move {each.name!r} there")
    result = own_result(where, hints.get("return", Any))
    return Signature(takes_context=takes_context, parameters=tuple(parameters), result=result)


def _check_parameter(where: str, index: int, parameter: inspect.Parameter) -> None:
    name = parameter.name
    if parameter.kind is parameter.VAR_POSITIONAL:
        raise DefinitionError(f"{where}: *{name} has no names to store arguments by; take a list instead")
    if parameter.kind is parameter.VAR_KEYWORD:
        raise DefinitionError(f"{where}: **{name} leaves the arguments open; take a dict instead")
    if parameter.kind is parameter.POSITIONAL_ONLY and index > 0:
        raise DefinitionError(f"{where}: {name!r} is positional-only, but arguments are stored by name; drop the '/'")
    if index == 0 and parameter.annotation is parameter.empty:
        raise DefinitionError(f"{where}: annotate the first parameter {name!r}, with Context or with its type")


def _check_first(where: str, first: Parameter, function: Handler) -> None:
    if first.annotation is Any or first.annotation is object:
        raise DefinitionError(
            f"{where}: the first parameter {first.name!r} may be anything, so it cannot be told from a Context; "
            "give it a type, or put a Context before it"
        )
    if inspect.signature(function).parameters[first.name].kind is inspect.Parameter.POSITIONAL_ONLY:
        raise DefinitionError(f"{where}: {first.name!r} is positional-only, but arguments are stored by name")


def hints_of(function: Handler) -> dict[str, Any]:
    """The resolved annotations of a function by parameter. Raises DefinitionError if one is no type."""
    try:
        return get_type_hints(function, include_extras=True)
    except (SyntaxError, TypeError) as error:
        raise DefinitionError(f"{qualified_name(function)}: an annotation is no type: {error}") from error


def own_result(where: str, annotation: Any) -> Any:
    """The type of the job's own result in a return annotation: T, Result[S, G], or Result[S, G] | None."""
    if annotation in (Never, NoReturn, None, NoneType):
        return None
    members = get_args(annotation) if get_origin(annotation) in (Union, UnionType) else (annotation,)
    results = [each for each in members if each is Result or get_origin(each) is Result]
    if not results:
        return annotation
    optional = NoneType in members
    if len(results) + optional != len(members):
        raise DefinitionError(
            f"{where}: the return annotation mixes Result with plain values; return ctx.result(value) for those"
        )
    own = [get_args(each)[0] if get_args(each) else Any for each in results]
    return cast("Any", Union)[tuple([*own, None] if optional else own)]
