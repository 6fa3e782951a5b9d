"""The table of routes: what each one is called, takes, answers and needs. Everything else is made from this table:
dispatch, OpenAPI, the matrix of permissions and the tests.

A route is an async function. Its annotations say which body and query it takes and what it answers:

>>> @jobs.post("/jobs", role=Role.SUBMIT)
... async def enqueue(call: Call[JobSubmission, DryRun]) -> Reply[SubmissionResult]: ...
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final, TypeAlias, TypeVar, get_args, get_origin, get_type_hints

from ropewalk.domain.bounds import check_name
from ropewalk.http.answer import Reply, Stream, Text
from ropewalk.http.call import Call, NoQuery
from ropewalk.http.errors import ErrorCode, HttpError, invalid, not_found
from ropewalk.http.identity.identity import Role

Handler: TypeAlias = Callable[[Call[Any, Any]], Awaitable[object]]
H = TypeVar("H", bound=Handler)

VERSIONED: Final = "/v1"


class Access(Enum):
    """Who may call a route for which no role is needed."""

    IDENTIFIED = "identified"
    """Everybody who proves an identity."""
    PUBLIC = "public"
    """Everybody."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    name: str
    """The name of the operation, unique among all routes."""
    tag: str
    """The family that it belongs to, as the documentation groups it."""
    method: str
    path: str
    needs: Role | Access
    every_tenant: bool
    """Whether only an identity for every tenant may call it."""
    body: Any
    """The shape of the body. None for a route that takes no body."""
    query: type[Any]
    answer: Any
    """The shape of the answer. None for an answer without a body."""
    statuses: Sequence[int]
    """The statuses of success; the first is the usual one."""
    errors: Sequence[ErrorCode]
    """The failures that are special to this route."""
    example: object
    """A body that the route accepts."""
    audited: bool
    """Whether the audit keeps each call."""
    headers: Sequence[str]
    """The headers of a request that mean something to this route alone, such as Idempotency-Key."""
    path_values: Mapping[str, Sequence[str]]
    """The values that a variable part of the path may have, where only some words are known."""
    media_type: str
    """The type of an answer that is not JSON."""
    summary: str
    description: str
    handle: Handler = field(repr=False)

    @property
    def params(self) -> tuple[str, ...]:
        """The names of the variable parts of the path."""
        return tuple(part[1:-1] for part in self.path.split("/") if part.startswith("{"))


class Routes:
    """A family of routes. Decorators add to it."""

    def __init__(self, tag: str, *, prefix: str = VERSIONED) -> None:
        self._tag = tag
        self._prefix = prefix
        self._routes: list[Route] = []

    def __iter__(self) -> Iterator[Route]:
        return iter(self._routes)

    def get(self, path: str, **options: Any) -> Callable[[H], H]:
        return self._route("GET", path, **options)

    def post(self, path: str, **options: Any) -> Callable[[H], H]:
        return self._route("POST", path, **options)

    def put(self, path: str, **options: Any) -> Callable[[H], H]:
        return self._route("PUT", path, **options)

    def patch(self, path: str, **options: Any) -> Callable[[H], H]:
        return self._route("PATCH", path, **options)

    def delete(self, path: str, **options: Any) -> Callable[[H], H]:
        return self._route("DELETE", path, **options)

    def _route(
        self,
        method: str,
        path: str,
        *,
        role: Role | Access,
        statuses: Sequence[int] = (),
        errors: Sequence[ErrorCode] = (),
        example: object = None,
        audited: bool | None = None,
        every_tenant: bool = False,
        headers: Sequence[str] = (),
        path_values: Mapping[str, Sequence[str]] | None = None,
        media_type: str = "text/plain",
    ) -> Callable[[H], H]:
        """`audited` is by default True for what changes something."""

        def add(handler: H) -> H:
            body, query, answer = _shapes(handler)
            summary, _, description = inspect.cleandoc(handler.__doc__ or "").partition("\n\n")
            self._routes.append(
                Route(
                    name=handler.__name__,
                    tag=self._tag,
                    method=method,
                    path=self._prefix + path,
                    needs=role,
                    every_tenant=every_tenant,
                    body=body,
                    query=query,
                    answer=answer,
                    statuses=statuses or ((204,) if answer is None else (200,)),
                    errors=errors,
                    example=example,
                    audited=method != "GET" if audited is None else audited,
                    headers=headers,
                    path_values=path_values or {},
                    media_type=media_type,
                    summary=" ".join(summary.split()),
                    description=" ".join(description.split()),
                    handle=handler,
                )
            )
            return handler

        return add


def _shapes(handler: Handler) -> tuple[Any, type[Any], Any]:
    """The shapes of body, query and answer, from the annotations of a handler."""
    hints = get_type_hints(handler)
    answer = hints.pop("return")
    (call,) = hints.values()
    body, query = get_args(call) or (None, NoQuery)
    if get_origin(answer) is Reply:
        (answer,) = get_args(answer)
    none = type(None)
    return None if body is none else body, query, None if answer is none else answer


class Router:
    """Finds the route of a path. Literal parts win over variable ones, for each method on its own."""

    def __init__(self, routes: Iterable[Route]) -> None:
        self.routes: Final = tuple(routes)
        self._by_length: dict[int, list[tuple[tuple[str, ...], Route]]] = {}
        for route in self.routes:
            pattern = tuple(route.path.lstrip("/").split("/"))
            self._by_length.setdefault(len(pattern), []).append((pattern, route))
        for patterns in self._by_length.values():
            patterns.sort(key=lambda each: sum(part.startswith("{") for part in each[0]))
        self._exact = {(route.method, route.path): route for route in self.routes if not route.params}

    def find(self, method: str, path: str, segments: Callable[[], tuple[str, ...]]) -> tuple[Route, Mapping[str, str]]:
        """The route and the variable parts of the path. Raises HttpError: not found, or another method is needed."""
        wanted = "GET" if method == "HEAD" else method
        exact = self._exact.get((wanted, path))
        if exact is not None:
            return exact, {}
        given = segments()
        allowed: set[str] = set()
        for pattern, route in self._by_length.get(len(given), ()):
            params = _match(pattern, given)
            if params is None:
                continue
            if route.method == wanted:
                _check_params(params)
                return route, params
            allowed.add(route.method)
        if not allowed:
            raise not_found()
        if "GET" in allowed:
            allowed.add("HEAD")
        message = f"this path takes {' or '.join(sorted(allowed))}, not {method}"
        raise HttpError(ErrorCode.METHOD_NOT_ALLOWED, message, headers={"Allow": ", ".join(sorted(allowed))})


def _match(pattern: tuple[str, ...], given: tuple[str, ...]) -> dict[str, str] | None:
    params: dict[str, str] = {}
    for wanted, part in zip(pattern, given, strict=True):
        if wanted.startswith("{"):
            params[wanted[1:-1]] = part
        elif wanted != part:
            return None
    return params


def _check_params(params: Mapping[str, str]) -> None:
    for name, value in params.items():
        if value in ("", ".", ".."):
            raise invalid(f"the path has {value!r} where {name} is expected", field=name)
        check_name(value, name)


NO_JSON: Final = (Stream, Text)
"""Answers that are not JSON."""
