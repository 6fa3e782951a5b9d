"""Searching jobs and looking at one over HTTP."""

from __future__ import annotations

import asyncio

import httpx2
import pytest

from ropewalk import App
from ropewalk.http import Payloads
from tests.http.jobs import add, fail, stay
from tests.http.server import People, client_of, somebody


async def test_a_wait_ends_when_the_job_has_ended(client: httpx2.AsyncClient, app: App) -> None:
    handle = await app.enqueue(add(1, 2))
    waiting = asyncio.create_task(client.get(f"/v1/jobs/{handle.id}/wait?timeout=20&include_result=true"))
    async with app.worker():
        answer = await waiting
    assert answer.json()["state"] == "COMPLETED"
    assert answer.json()["result"]["output"] == 3


async def test_a_wait_that_is_over_tells_the_state(client: httpx2.AsyncClient, app: App) -> None:
    handle = await app.enqueue(add(1, 2))
    answer = await client.get(f"/v1/jobs/{handle.id}/wait?timeout=0.05")
    assert answer.status_code == 200
    assert answer.json()["state"] == "SCHEDULED"


async def test_pages_of_a_search_show_each_job_once(client: httpx2.AsyncClient, app: App) -> None:
    await app.enqueue_many([add(number, 0) for number in range(7)], tags={"n": "1"})
    await app.enqueue(add(9, 9))
    body = {"types": ["add"], "tags": {"n": "1"}, "limit": 3, "order": "CREATED_ASC"}
    found: list[int] = []
    cursor = None
    while True:
        page = (await client.post("/v1/jobs/search", json={**body, "cursor": cursor})).json()
        assert (page["total_count"], page["total_is_exact"]) == (7, True)
        found += [each["payload"]["a"] for each in page["jobs"]]
        cursor = page["next_cursor"]
        assert page["has_more"] == (cursor is not None)
        if cursor is None:
            break
    assert found == list(range(7))


async def test_a_cursor_is_bound_to_its_filter(client: httpx2.AsyncClient, app: App) -> None:
    await app.enqueue_many([add(number, 0) for number in range(3)])
    page = (await client.get("/v1/jobs?types=add&limit=1")).json()
    other = await client.get(f"/v1/jobs?types=fail&limit=1&cursor={page['next_cursor']}")
    assert other.status_code == 400
    assert other.json()["details"][0]["code"] == "BAD_CURSOR"
    assert (await client.get("/v1/jobs?cursor=junk")).json()["details"][0]["code"] == "BAD_CURSOR"


@pytest.mark.parametrize(
    ("query", "field", "code"),
    [
        ("limit=0", "limit", "OUT_OF_RANGE"),
        ("limit=x", "limit", "WRONG_TYPE"),
        ("colour=red", "colour", "UNKNOWN_FIELD"),
        ("limit=1&limit=2", "limit", "BAD_INPUT"),
        ("states=running", "states[0]", "OUT_OF_RANGE"),
        ("created_after=2026-01-01T00:00:00", "created_after", "WRONG_TYPE"),
    ],
)
async def test_a_wrong_parameter_is_named(client: httpx2.AsyncClient, query: str, field: str, code: str) -> None:
    answer = await client.get(f"/v1/jobs?{query}")
    assert answer.status_code == 400
    [detail] = answer.json()["details"]
    assert (detail["field"], detail["code"]) == (field, code)


async def test_what_is_recorded_about_a_job(client: httpx2.AsyncClient, app: App) -> None:
    parent = await app.enqueue(add(1, 2))
    child = await app.enqueue(stay(60), depends_on=parent)
    why = (await client.get(f"/v1/jobs/{child.id}/why")).json()
    assert (why["state"], why["cause"]) == ("PENDING", "DEPENDENCIES")
    [dependency] = (await client.get(f"/v1/jobs/{child.id}/dependencies")).json()["dependencies"]
    assert dependency == {"job_id": parent.id, "kind": "JOB", "ending": None, "state": "SCHEDULED"}
    states = (await client.post("/v1/jobs/states", json={"job_ids": [parent.id, child.id, "nobody"]})).json()
    assert states == {"states": {parent.id: "SCHEDULED", child.id: "PENDING"}}
    async with app.worker():
        while (await client.get(f"/v1/jobs/{child.id}")).json()["state"] != "DELAYED":
            await asyncio.sleep(0.05)
    [step] = (await client.get(f"/v1/jobs/{child.id}/steps")).json()["steps"]
    assert (step["kind"], step["finished"]) == ("SLEEP", False)
    assert (await client.get(f"/v1/jobs/{child.id}/logs")).json() == {"lines": []}


async def test_payload_rights_hold_for_every_part_of_a_job(app: App, server_url: str, people: People) -> None:
    people.identities["none"] = somebody(payloads=Payloads.NONE)
    handle = await app.enqueue(fail("the message quotes the payload"))
    async with app.worker():
        await app.wait(handle.id, 30)
    async with client_of(server_url, "none") as client:
        shown = (await client.get(f"/v1/jobs/{handle.id}?include_result=true&include_history=true")).text
    assert "quotes the payload" not in shown
    async with client_of(server_url) as client:
        shown = (await client.get(f"/v1/jobs/{handle.id}")).text
    assert "quotes the payload" in shown


async def test_an_identity_bounded_to_types_does_not_see_others(app: App, server_url: str, people: People) -> None:
    people.identities["adder"] = somebody(types=frozenset({"add"}))
    mine, other = await app.enqueue(add(1, 2)), await app.enqueue(stay(1))
    async with client_of(server_url, "adder") as client:
        assert (await client.get(f"/v1/jobs/{mine.id}")).status_code == 200
        hidden = await client.get(f"/v1/jobs/{other.id}", headers={"x-request-id": "r"})
        missing = await client.get("/v1/jobs/nobody", headers={"x-request-id": "r"})
        assert (hidden.status_code, hidden.content) == (404, missing.content)
        assert [each["job_id"] for each in (await client.get("/v1/jobs")).json()["jobs"]] == [mine.id]
        assert (await client.get("/v1/jobs?types=stay")).json()["jobs"] == []
        states = await client.post("/v1/jobs/states", json={"job_ids": [mine.id, other.id]})
        assert list(states.json()["states"]) == [mine.id]
        for call in ("cancel", "retry"):
            assert (await client.post(f"/v1/jobs/{other.id}/{call}")).status_code == 404
        assert (await client.delete(f"/v1/jobs/{other.id}?cascade=true")).status_code == 404
    assert (await app.get(other.id)).state == "scheduled"


async def test_a_tenant_sees_nothing_of_another(app: App, server_url: str, people: People) -> None:
    people.identities["bob"] = somebody(tenant="bob")
    people.identities["root"] = somebody(tenant="*")
    job = await app.enqueue(add(1, 2))
    async with client_of(server_url, "bob") as client:
        assert (await client.get(f"/v1/jobs/{job.id}")).status_code == 404
        assert (await client.get("/v1/jobs", headers={"Ropewalk-Tenant": "default"})).status_code == 403
        assert (await client.get("/v1/jobs")).json()["total_count"] == 0
    async with client_of(server_url, "root") as client:
        assert (await client.get("/v1/jobs", headers={"Ropewalk-Tenant": "bob"})).json()["total_count"] == 0
        assert (await client.get("/v1/jobs")).json()["total_count"] == 1
