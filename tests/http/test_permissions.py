"""Who may call what: each identity that could be wrong for a route, with each route of the table."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Final

import httpx2
import pytest

from ropewalk import App
from ropewalk.http import Role
from ropewalk.http.routes import ALL_ROUTES
from ropewalk.http.routing import Access, Route
from tests.http.jobs import add, fail
from tests.http.server import People, client_of, somebody
from tests.http.table import OWN_PAGE, call

BODIES: Final = {"create_token": {"name": "x", "roles": ["ADMIN"]}}
"""Bodies that an identity with the one role of the route may send, where its example asks for more."""

FILTERED: Final = frozenset(
    {
        *("enqueue", "enqueue_batch", "list_jobs", "search_jobs", "list_failures", "search_failures", "get_states"),
        *("list_workers", "get_worker", "stream_events", "list_types"),
    }
)
"""Routes that show or take only what a bounded identity reaches."""
NOT_ABOUT_JOBS: Final = frozenset(
    {
        *("create_token", "list_tokens", "get_token", "revoke_token", "who_am_i", "log_in", "log_out", "read_audit"),
        *("live", "ready", "health", "openapi", "docs"),
        *("list_quotas", "get_quota_of_tenant", "set_quota", "remove_quota", "examine", "metrics"),  # for `*` only
    }
)
"""Routes that show and change no job, type or queue of the tenant."""


@pytest.fixture
def store_kind() -> str:
    """Permissions are decided before a store is asked; that stores keep tenants apart is in their contract."""
    return "memory"


@pytest.fixture
def people() -> People:
    found = {"anna": somebody(tenant="*"), "bob": somebody(tenant="bob"), "one_tenant": somebody()}
    for role in Role:
        found[f"only_{role.value}"] = somebody(tenant="*", roles=frozenset({role}))
        found[f"all_but_{role.value}"] = somebody(tenant="*", roles=frozenset(Role) - {role})
    return People(
        **found,
        types=somebody(types=frozenset({"add"})),
        queues=somebody(queues=frozenset({"own"})),
        nothing=somebody(roles=frozenset()),
    )


async def test_nobody_is_told_to_prove_an_identity(server_url: str) -> None:
    wrong = []
    async with httpx2.AsyncClient(base_url=server_url, trust_env=False) as nobody:
        for route in ALL_ROUTES:
            status = (await call(nobody, route, headers=OWN_PAGE)).status_code
            open_to_all = route.needs is Access.PUBLIC and route.name != "log_in"
            if (status == 401) == open_to_all:
                wrong.append((route.name, status))
    assert not wrong


async def test_each_role_opens_its_own_routes_and_no_others(server_url: str) -> None:
    wrong = []
    for role in Role:
        async with (
            client_of(server_url, f"only_{role.value}") as one,
            client_of(server_url, f"all_but_{role.value}") as others,
        ):
            for route in ALL_ROUTES:
                if not isinstance(route.needs, Role):
                    continue
                allowed, refused = (one, others) if route.needs is role else (others, one)
                body = BODIES.get(route.name)
                if (await call(refused, route, body=body)).status_code != 403:
                    wrong.append((route.name, role, "was let in"))
                if (await call(allowed, route, body=body)).status_code in (401, 403):
                    wrong.append((route.name, role, "was kept out"))
    assert not wrong


async def test_an_identity_without_roles_opens_nothing_that_needs_one(server_url: str) -> None:
    async with client_of(server_url, "nothing") as nothing:
        for route in ALL_ROUTES:
            status = (await call(nothing, route)).status_code
            assert (status == 403) == isinstance(route.needs, Role) or route.name == "log_in", route.name


async def test_what_concerns_all_tenants_is_closed_to_one(server_url: str) -> None:
    routes = [route for route in ALL_ROUTES if route.every_tenant]
    assert len(routes) >= 6
    async with client_of(server_url, "one_tenant") as one, client_of(server_url, "anna") as anna:
        for route in routes:
            assert (await call(one, route)).status_code == 403, route.name
            assert (await call(anna, route)).status_code != 403, route.name


THINGS: Final = {
    "jobs": "a-failed-job",
    "groups": "a-failed-job",
    "chains": "a-failed-job",
    "workflows": "a-workflow",
    "queues": "a-queue",
    "limits": "a-queue",
    "workers": "a-worker",
    "tokens": "a-token",
    "schedules": "a-schedule",
}
"""What another tenant has, by the family of a path."""


async def test_what_another_tenant_has_is_answered_like_what_nobody_has(
    server_url: str, app: App, client: httpx2.AsyncClient
) -> None:
    things = dict(THINGS)
    await client.put("/v1/limits/queue/a-queue", json={"concurrency": 5})
    made = await client.post("/v1/tokens", json={"name": "x", "roles": ["READ"], "tenant": "default"})
    things["tokens"] = made.json()["token_id"]
    await app.enqueue(fail(), id="a-failed-job", workflow_id="a-workflow", queue="a-queue")
    async with app.worker(queues=["a-queue"], tenants=["default"]):
        await app.wait("a-failed-job", 30)
        things["workers"] = (await client.get("/v1/workers")).json()["workers"][0]["worker_id"]
        before = await shown(client)
        async with client_of(server_url, "bob") as bob:
            for route in with_a_name(ALL_ROUTES):
                family = route.path.split("/")[2]
                assert family in things, f"say in THINGS what there is behind {route.path}"
                thing, nothing = things[family], "n" * len(things[family])
                foreign, absent = await call(bob, route, thing), await call(bob, route, nothing)
                assert foreign.status_code == absent.status_code, route.name
                assert foreign.content.replace(thing.encode(), b"") == absent.content.replace(nothing.encode(), b"")
                assert {**foreign.headers, "date": ""} == {**absent.headers, "date": ""}, route.name
        assert await shown(client) == before


async def test_another_tenant_finds_nothing_in_lists(server_url: str, app: App, client: httpx2.AsyncClient) -> None:
    await client.put("/v1/limits/queue/a-queue", json={"concurrency": 5})
    await app.enqueue(fail(), id="a-failed-job", queue="a-queue")
    async with app.worker(queues=["a-queue"]):
        await app.wait("a-failed-job", 30)
    await app.enqueue(add(1, 2), id="a-job", queue="a-queue", correlation_id="a-b-c")
    bodies: dict[str, object] = {
        "get_states": {"job_ids": ["a-job", "a-failed-job"]},
        "search_jobs": {},
        "search_failures": {},
    }
    async with client_of(server_url, "bob") as bob:
        for route in ALL_ROUTES:
            listed = route.method == "GET" or route.name in bodies
            if not listed or route.params or route.name in ("openapi", "docs"):
                continue
            said = (await call(bob, route, body=bodies.get(route.name))).text
            assert "a-job" not in said, route.name
            assert "a-failed-job" not in said, route.name
            assert "a-queue" not in said, route.name


async def test_a_parent_of_another_tenant_is_a_parent_that_does_not_exist(server_url: str, app: App) -> None:
    await app.enqueue(add(1, 2), id="a-job")
    async with client_of(server_url, "bob") as bob:
        job = {"type": "add", "payload": {"a": 1, "b": 2}}
        foreign = await bob.post("/v1/jobs", json={**job, "depends_on": ["a-job"]}, headers={"x-request-id": "r"})
        absent = await bob.post("/v1/jobs", json={**job, "depends_on": ["n-job"]}, headers={"x-request-id": "r"})
    assert foreign.status_code == absent.status_code == 400
    assert foreign.text.replace("a-job", "") == absent.text.replace("n-job", "")


@pytest.mark.parametrize("who", ["types", "queues"])
async def test_a_bounded_identity_reaches_no_job_beyond_its_bounds(
    server_url: str, app: App, client: httpx2.AsyncClient, who: str
) -> None:
    await app.enqueue(fail(), id="beyond", workflow_id="beyond", delay=3600)
    before = await shown(client)
    async with client_of(server_url, who) as bounded:
        for route in ALL_ROUTES:
            if route.name in FILTERED | NOT_ABOUT_JOBS or route.path.startswith("/v1/worker/"):
                continue  # a worker reaches only what it claimed, which the tests of remote workers cover
            answer = await call(bounded, route, "beyond")
            if route.path.startswith("/v1/jobs/{id}"):
                absent = await call(bounded, route, "absent")
                assert answer.status_code == absent.status_code == 404, route.name
                assert answer.content.replace(b"beyond", b"") == absent.content.replace(b"absent", b""), route.name
            elif who == "queues" and route.path.startswith("/v1/queues"):
                assert answer.status_code == 404 or answer.json() == {"queues": []}, route.name
            else:
                assert answer.status_code == 403, f"{route.name} must refuse a bounded identity or be named as filtered"
    assert await shown(client) == before


@pytest.mark.parametrize("who", ["types", "queues"])
async def test_routes_that_filter_show_a_bounded_identity_nothing_else(server_url: str, app: App, who: str) -> None:
    await app.enqueue(fail(), id="beyond")
    async with app.worker():
        await app.wait("beyond", 30)
        bodies: dict[str, object] = {
            "get_states": {"job_ids": ["beyond"]},
            "search_jobs": {},
            "search_failures": {},
            "enqueue": {"type": "fail", "payload": {}},
            "enqueue_batch": {"jobs": [{"type": "fail", "payload": {}}], "atomic": True},
        }
        async with client_of(server_url, who) as bounded:
            for route in ALL_ROUTES:
                if route.name in FILTERED:
                    answer = await call(bounded, route, body=bodies.get(route.name))
                    assert "beyond" not in answer.text, route.name
                    assert route.method == "GET" or '"fail"' not in answer.text or answer.status_code == 403
    assert await app.count() == 1


def with_a_name(routes: tuple[Route, ...]) -> Iterator[Route]:
    """The routes of a tenant's own things, those that destroy last."""
    named = [route for route in routes if route.params and not route.every_tenant]
    yield from sorted(named, key=lambda route: route.method == "DELETE")


async def shown(client: httpx2.AsyncClient) -> list[object]:
    """What there is, as its owner sees it."""
    paths = ("/v1/jobs?with_total=true", "/v1/queues", "/v1/limits", "/v1/tokens")
    answers = await asyncio.gather(*(client.get(path) for path in paths))
    return [answer.json() for answer in answers]
