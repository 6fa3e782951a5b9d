"""Schedules, types and revs over HTTP."""

from __future__ import annotations

import httpx2

from ropewalk import App
from tests.http.jobs import add

NIGHTLY = {"name": "nightly", "cron": "30 3 * * *", "job": {"type": "add", "payload": {"a": 1, "b": 2}, "queue": "q"}}


async def test_a_schedule_lives_from_its_making_to_its_removal(client: httpx2.AsyncClient, app: App) -> None:
    made = await client.post("/v1/schedules", json=NIGHTLY)
    assert made.status_code == 201, made.text
    assert (made.json()["payload"], made.json()["queue"], made.json()["timezone"]) == ({"a": 1, "b": 2}, "q", "UTC")
    assert (await client.post("/v1/schedules", json=NIGHTLY)).status_code == 409
    edited = await client.patch("/v1/schedules/nightly", json={"payload": {"b": 5}, "cron": "0 4 * * *"})
    assert (edited.json()["payload"], edited.json()["cron"]) == ({"a": 1, "b": 5}, "0 4 * * *")
    assert (await client.post("/v1/schedules/nightly/pause")).json()["paused"] is True
    assert (await client.post("/v1/schedules/nightly/resume")).json()["paused"] is False
    shown = (await client.get("/v1/schedules/nightly?upcoming=3")).json()
    assert len(shown["upcoming"]) == 3
    assert [each["name"] for each in (await client.get("/v1/schedules")).json()["schedules"]] == ["nightly"]
    assert (await client.delete("/v1/schedules/nightly")).status_code == 204
    assert (await client.get("/v1/schedules/nightly")).status_code == 404


async def test_a_dry_run_stores_no_schedule(client: httpx2.AsyncClient) -> None:
    tried = await client.post("/v1/schedules?dry_run=true", json=NIGHTLY)
    assert (tried.status_code, len(tried.json()["upcoming"])) == (200, 5)
    assert (await client.get("/v1/schedules")).json()["schedules"] == []
    wrong = await client.post("/v1/schedules?dry_run=true", json={**NIGHTLY, "cron": "61 * * * *"})
    assert (wrong.status_code, wrong.json()["details"][0]["field"]) == (400, "cron")


async def test_a_repeated_trigger_answers_the_first_job(client: httpx2.AsyncClient, app: App) -> None:
    await client.post("/v1/schedules", json=NIGHTLY)
    headers = {"Idempotency-Key": "by-hand"}
    ids = {(await client.post("/v1/schedules/nightly/trigger", headers=headers)).json()["job_id"] for _ in range(2)}
    assert len(ids) == 1
    assert await app.count() == 1


async def test_if_match_changes_only_what_was_read(client: httpx2.AsyncClient, app: App) -> None:
    job = await app.enqueue(add(1, 2))
    read = (await client.get(f"/v1/jobs/{job.id}")).headers["etag"]
    changed = await client.patch(f"/v1/jobs/{job.id}", json={"priority": 5}, headers={"If-Match": read})
    assert changed.status_code == 200
    again = await client.patch(f"/v1/jobs/{job.id}", json={"priority": 6}, headers={"If-Match": read})
    assert (again.status_code, again.json()["code"]) == (412, "PRECONDITION_FAILED")
    assert again.headers["etag"] == changed.headers["etag"]
    assert (await app.get(job.id)).priority == 5
    junk = await client.patch(f"/v1/jobs/{job.id}", json={"priority": 6}, headers={"If-Match": "junk"})
    assert (junk.status_code, junk.json()["details"][0]["field"]) == (400, "If-Match")
    made = await client.post("/v1/schedules", json=NIGHTLY)
    stale = {"If-Match": made.headers["etag"]}
    assert (await client.patch("/v1/schedules/nightly", json={"missed": "ALL"}, headers=stale)).status_code == 200
    assert (await client.patch("/v1/schedules/nightly", json={"missed": "SKIP"}, headers=stale)).status_code == 412


async def test_types_are_listed_with_their_arguments(client: httpx2.AsyncClient) -> None:
    types = {each["type"]: each for each in (await client.get("/v1/types")).json()["types"]}
    assert set(types) == {"add", "fail", "stay", "spread"}
    assert (types["fail"]["arguments"], types["fail"]["required"]) == (["message"], [])
    assert types["fail"]["max_attempts"] == 1
