"""Submitting many jobs at once over HTTP."""

from __future__ import annotations

import httpx2

from ropewalk import App
from tests.http.server import People, client_of, somebody

GOOD = {"type": "add", "payload": {"a": 1, "b": 2}}
BAD = {"type": "add", "payload": {"a": "one", "b": 2}}


async def test_each_job_is_stored_or_rejected_on_its_own(client: httpx2.AsyncClient, app: App) -> None:
    jobs = [GOOD, BAD, {"type": "nothing", "payload": {}}, {**GOOD, "id": "x"}, {**GOOD, "id": "x"}]
    answer = await client.post("/v1/jobs/batch", json={"jobs": jobs})
    assert answer.status_code == 200
    batch = answer.json()
    assert (batch["total"], batch["accepted"], batch["rejected"]) == (5, 3, 2)
    assert [each["status"] for each in batch["results"]] == [
        "ACCEPTED",
        "REJECTED",
        "REJECTED",
        "ACCEPTED",
        "DUPLICATE",
    ]
    assert batch["results"][1]["error"]["details"][0]["field"] == "payload.a"
    assert batch["results"][2]["error"]["details"][0]["code"] == "UNKNOWN_TYPE"
    assert await app.count() == 2


async def test_an_atomic_batch_is_stored_whole_or_not_at_all(client: httpx2.AsyncClient, app: App) -> None:
    refused = await client.post("/v1/jobs/batch", json={"jobs": [GOOD, BAD], "atomic": True})
    assert refused.status_code == 400
    assert refused.json()["details"][0]["field"] == "jobs[1].payload.a"
    taken = [{**GOOD, "id": "x"}, {**GOOD, "payload": {"a": 2, "b": 2}, "id": "x"}]
    conflict = await client.post("/v1/jobs/batch", json={"jobs": taken, "atomic": True})
    assert (conflict.status_code, conflict.json()["code"]) == (409, "DUPLICATE")
    assert await app.count() == 0
    stored = await client.post("/v1/jobs/batch", json={"jobs": [GOOD] * 1000, "atomic": True})
    assert stored.json()["accepted"] == 1000
    assert await app.count() == 1000
    assert (await client.post("/v1/jobs/batch", json={"jobs": [GOOD] * 1001})).status_code == 400
    assert (await client.post("/v1/jobs/batch", json={"jobs": []})).status_code == 400


async def test_a_repeated_batch_finds_its_jobs(client: httpx2.AsyncClient, app: App) -> None:
    headers = {"Idempotency-Key": "import-1"}
    for status in ("ACCEPTED", "DUPLICATE"):
        answer = await client.post("/v1/jobs/batch", json={"jobs": [GOOD, GOOD]}, headers=headers)
        assert [each["status"] for each in answer.json()["results"]] == [status, status]
    assert await app.count() == 2


async def test_a_bounded_token_submits_only_what_it_reaches(app: App, server_url: str, people: People) -> None:
    people.identities["adder"] = somebody(types=frozenset({"add"}), queues=frozenset({"default"}))
    async with client_of(server_url, "adder") as client:
        assert (await client.post("/v1/jobs", json=GOOD)).status_code == 201
        assert (await client.post("/v1/jobs", json={**GOOD, "queue": "other"})).status_code == 403
        assert (await client.post("/v1/jobs", json={**GOOD, "on_failure": "fail"})).status_code == 403
        other = {"type": "fail", "payload": {}}
        assert (await client.post("/v1/jobs", json=other)).status_code == 403
        batch = (await client.post("/v1/jobs/batch", json={"jobs": [GOOD, other]})).json()
        assert (batch["accepted"], batch["results"][1]["error"]["code"]) == (1, "FORBIDDEN")
    assert await app.count() == 2
