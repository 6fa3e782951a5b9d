"""The OpenAPI document is valid, complete and true, and a change of it is made on purpose."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx2
import msgspec
import pytest
import schemathesis

from ropewalk.http.decoding import from_json
from ropewalk.http.openapi import document
from ropewalk.http.routes import ALL_ROUTES
from ropewalk.http.routing import Access, Route
from tests.http.openapi_copy import WRITTEN, as_text

in_memory = pytest.mark.parametrize("store_kind", ["memory"], indirect=True)
each_route = pytest.mark.parametrize("route", ALL_ROUTES, ids=lambda route: route.name)


def test_the_document_is_the_one_that_was_written_down() -> None:
    assert as_text().splitlines() == WRITTEN.read_text(encoding="utf-8").splitlines(), "make api writes it anew"


def test_the_document_is_valid_openapi() -> None:
    schemathesis.openapi.from_dict(document()).validate()


def test_a_document_that_is_not_valid_is_noticed() -> None:
    with pytest.raises(Exception, match="paths"):
        schemathesis.openapi.from_dict({**document(), "paths": []}).validate()


def test_every_reference_leads_somewhere() -> None:
    whole = document()
    for reference in references(whole):
        target: Any = whole
        for part in reference.removeprefix("#/").split("/"):
            assert part in target, reference
            target = target[part]


def test_every_operation_has_a_name_of_its_own() -> None:
    names = [route.name for route in ALL_ROUTES]
    assert sorted(set(names)) == sorted(names)
    assert len({(route.method, route.path) for route in ALL_ROUTES}) == len(ALL_ROUTES)


@each_route
def test_an_operation_tells_its_role_its_shapes_and_its_errors(route: Route) -> None:
    operation = document()["paths"][route.path][route.method.lower()]
    assert operation["operationId"] == route.name
    assert operation["summary"].endswith(".")
    assert operation.get("x-role") == (None if route.needs is Access.PUBLIC else route.needs.value)
    assert ("security" in operation) == (route.needs is not Access.PUBLIC)
    assert {each["name"] for each in operation["parameters"] if each["in"] == "path"} == set(route.params)
    assert ("requestBody" in operation) == (route.body is not None)
    for status in route.statuses:
        assert ("content" in operation["responses"][str(status)]) == (route.answer is not None)
    for code in route.errors:
        assert code.value in operation["responses"][str(code.status)]["description"]


@each_route
def test_an_example_is_what_the_server_takes(route: Route) -> None:
    if route.body is None:
        assert route.example is None
    else:
        assert route.example is not None, "give the route an example"
        from_json(msgspec.json.encode(route.example), route.body)


@in_memory
async def test_the_server_shows_the_document_to_everybody(server_url: str) -> None:
    async with httpx2.AsyncClient(base_url=server_url, trust_env=False) as nobody:
        assert (await nobody.get("/openapi.json")).json() == json.loads(json.dumps(document()))


@in_memory
async def test_the_page_shows_every_operation_and_shape_and_runs_nothing(server_url: str) -> None:
    async with httpx2.AsyncClient(base_url=server_url, trust_env=False) as nobody:
        answer = await nobody.get("/docs")
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    policy = answer.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert "unsafe" not in policy
    assert "<script" not in answer.text
    assert "http://" not in answer.text.replace("http://json-schema.org", "")
    for route in ALL_ROUTES:
        assert f'<section id="{route.name}">' in answer.text
    for name in document()["components"]["schemas"]:
        assert f'<section id="shape-{name}">' in answer.text


def references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            if key == "$ref":
                yield inner
            else:
                yield from references(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from references(inner)
