"""The OpenAPI 3.1 document, made from the table of routes and the types that validate requests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, Final

import msgspec
from msgspec import Struct, structs

from ropewalk.http.answer import VERSION
from ropewalk.http.decoding import HEADER_CHARS_MAX, may_be_left_out
from ropewalk.http.errors import APIError, ErrorCode
from ropewalk.http.identity.identity import Role
from ropewalk.http.routes import ALL_ROUTES
from ropewalk.http.routing import NO_JSON, Access, Route
from ropewalk.http.wire import Name

_REF: Final = "#/components/schemas/{name}"
_COMMON: Final = (ErrorCode.INVALID_REQUEST, ErrorCode.UNAVAILABLE)
_IDENTIFIED: Final = (ErrorCode.UNAUTHORIZED, ErrorCode.FORBIDDEN, ErrorCode.QUOTA_EXCEEDED)
_SAFE: Final = frozenset({"GET", "HEAD"})
_HEADERS: Final = {
    "Idempotency-Key": "Makes a repeat of the request find the jobs of the first one.",
    "If-Match": "The change is made only if the ETag is still this one.",
}
_HEADER_VALUE: Final = {"type": "string", "minLength": 1, "maxLength": HEADER_CHARS_MAX, "pattern": "^[!-~]+$"}
"""What decoding.check_headers takes."""
_ANSWERED: Final = {
    "X-Request-ID": {"description": "Names the request in logs and in the audit.", "schema": {"type": "string"}},
    "Ropewalk-Version": {"description": "The version of the server.", "schema": {"type": "string"}},
}


@lru_cache(maxsize=1)
def document() -> dict[str, Any]:
    """The whole document."""
    schemas, components = _schemas(ALL_ROUTES)
    paths: dict[str, dict[str, Any]] = {}
    for route in ALL_ROUTES:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, schemas)
    return {
        "openapi": "3.1.0",
        "info": {"title": "ropewalk", "version": VERSION, "description": "A durable work queue and workflow engine."},
        "paths": paths,
        "components": {
            "schemas": components,
            "headers": _ANSWERED,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _schemas(routes: Iterable[Route]) -> tuple[Mapping[Any, Any], dict[str, Any]]:
    """The schema of every shape, and the named ones that they refer to."""
    shapes: list[Any] = [APIError, Name]
    for route in routes:
        shapes += [each for each in (route.body, route.answer) if each is not None and each not in NO_JSON]
        shapes += [field.type for field in _fields(route.query)]
    made, components = msgspec.json.schema_components(shapes, ref_template=_REF)
    return dict(zip(map(_key, shapes), made, strict=True)), components


def _operation(route: Route, schemas: Mapping[Any, Any]) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "operationId": route.name,
        "tags": [route.tag],
        "summary": route.summary,
        "parameters": [
            *(_path_parameter(name, route, schemas) for name in route.params),
            *_query_parameters(route.query, schemas),
            *map(_header_parameter, route.headers),
        ],
        "responses": _responses(route, schemas),
    }
    if route.description:
        operation["description"] = route.description
    if route.body is not None:
        content: dict[str, Any] = {"schema": schemas[_key(route.body)]}
        if route.example is not None:
            content["example"] = route.example
        required = not may_be_left_out(route.body)
        operation["requestBody"] = {"required": required, "content": {"application/json": content}}
    if route.needs is not Access.PUBLIC:
        operation["security"] = [{"token": []}]
        operation["x-role"] = route.needs.value
    if route.every_tenant:
        operation["x-every-tenant"] = True
    return operation


def _path_parameter(name: str, route: Route, schemas: Mapping[Any, Any]) -> dict[str, Any]:
    values = route.path_values.get(name)
    schema = schemas[_key(Name)] if values is None else {"type": "string", "enum": list(values)}
    return {"name": name, "in": "path", "required": True, "schema": schema}


def _query_parameters(query: type[Any], schemas: Mapping[Any, Any]) -> list[dict[str, Any]]:
    return [
        {"name": field.encode_name, "in": "query", "required": field.required, "schema": schemas[_key(field.type)]}
        for field in _fields(query)
    ]


def _header_parameter(name: str) -> dict[str, Any]:
    return {"name": name, "in": "header", "required": False, "description": _HEADERS[name], "schema": _HEADER_VALUE}


def _responses(route: Route, schemas: Mapping[Any, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for status in route.statuses:
        found[str(status)] = {"description": "Success" if status < 400 else "Not now", **_content(route, schemas)}
    by_status: dict[int, list[str]] = {}
    for code in sorted(_errors(route)):
        by_status.setdefault(code.status, []).append(code.value)
    for status, names in sorted(by_status.items()):
        shapes = [schemas[_key(APIError)]]
        if status in route.statuses:  # such as a health check that answers 503 in its own shape
            shapes.insert(0, schemas[_key(route.answer)])
        schema = shapes[0] if len(shapes) == 1 else {"anyOf": shapes}
        found[str(status)] = {"description": ", ".join(names), "content": {"application/json": {"schema": schema}}}
    headers = {name: {"$ref": f"#/components/headers/{name}"} for name in _ANSWERED}
    return {status: {**answer, "headers": headers} for status, answer in found.items()}


def _errors(route: Route) -> set[ErrorCode]:
    """Every code that the route may answer with."""
    codes = {*_COMMON, *route.errors}
    if route.needs is not Access.PUBLIC:
        codes.update(_IDENTIFIED)
    if route.params or route.needs is Role.WORK:  # a worker that the store does not know has to register anew
        codes.add(ErrorCode.NOT_FOUND)
    if route.body is not None:
        codes.update({ErrorCode.PAYLOAD_TOO_LARGE, ErrorCode.UNSUPPORTED_MEDIA_TYPE})
    if route.method not in _SAFE:
        codes.update({ErrorCode.FORBIDDEN, ErrorCode.OUTCOME_UNKNOWN})  # FORBIDDEN: a foreign page may have sent it
    return codes


def _content(route: Route, schemas: Mapping[Any, Any]) -> dict[str, Any]:
    if route.answer is None:
        return {}
    if route.answer in NO_JSON:
        return {"content": {route.media_type: {"schema": {"type": "string"}}}}
    return {"content": {"application/json": {"schema": schemas[_key(route.answer)]}}}


def _fields(query: type[Any]) -> tuple[structs.FieldInfo, ...]:
    return structs.fields(query) if issubclass(query, Struct) else ()


def _key(shape: Any) -> str:
    """Shapes are not always hashable, but each has a text of its own."""
    return repr(shape)
