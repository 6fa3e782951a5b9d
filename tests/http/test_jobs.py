"""Submitting jobs and looking at them over HTTP."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import httpx2

from ropewalk import App


async def test_a_submitted_job_runs_and_shows_its_result(client: httpx2.AsyncClient, app: App) -> None:
    answer = await client.post("/v1/jobs", json={"type": "add", "payload": {"a": 1, "b": 2}, "priority": "HIGH"})

    assert answer.status_code == 201
    submitted = answer.json()
    assert (submitted["status"], submitted["state"]) == ("ACCEPTED", "SCHEDULED")
    async with app.worker():
        await app.wait(submitted["job_id"], 30)
    shown = (await client.get(f"/v1/jobs/{submitted['job_id']}?include_result=true&include_history=true")).json()
    assert shown["state"] == "COMPLETED"
    assert shown["priority"] == "HIGH"
    assert shown["payload"] == {"a": 1, "b": 2}
    assert shown["result"] == {
        "status": "SUCCESS",
        "output": 3,
        "error": None,
        "duration_ms": shown["result"]["duration_ms"],
        "attempt": 1,
    }
    assert [each["to_state"] for each in shown["history"]] == ["SCHEDULED", "RUNNING", "COMPLETED"]
    assert [each["rev"] for each in shown["history"]] == [1, 2, 3]


async def test_options_are_those_of_the_library(client: httpx2.AsyncClient, app: App) -> None:
    at = datetime.now(UTC) + timedelta(hours=1)
    body = {
        "type": "add",
        "payload": {"a": 1, "b": 2},
        "id": "my-job",
        "delay": "PT5M",
        "scheduled_at": at.isoformat(),
        "priority": 7.0,
        "max_attempts": 8.0,
        "tags": {"team": "red"},
        "queue": "slow",
        "correlation_id": "c-1",
        "workflow_id": "w-1",
    }
    answer = await client.post("/v1/jobs", json=body)

    assert answer.status_code == 201, answer.text
    info = await app.get("my-job")
    assert abs(info.scheduled_for - at) < timedelta(milliseconds=1)
    assert (info.priority, info.max_attempts, info.queue) == (7, 8, "slow")
    assert (info.tags, info.correlation_id, info.workflow_id) == ({"team": "red"}, "c-1", "w-1")


async def test_a_dry_run_checks_and_writes_nothing(client: httpx2.AsyncClient, app: App) -> None:
    body = {"type": "add", "payload": {"a": 1, "b": 2}, "delay": 60}
    answer = await client.post("/v1/jobs?dry_run=true", json=body)

    assert answer.status_code == 200
    assert answer.json()["state"] == "DELAYED"
    assert await app.count() == 0
    refused = await client.post("/v1/jobs?dry_run=true", json={**body, "payload": {"a": "x"}})
    assert refused.status_code == 400


async def test_a_request_that_is_repeated_with_its_key_finds_its_job(client: httpx2.AsyncClient, app: App) -> None:
    headers = {"Idempotency-Key": "order-7"}
    body = {"type": "add", "payload": {"a": 1, "b": 2}}
    first = await client.post("/v1/jobs", json=body, headers=headers)
    again = await client.post("/v1/jobs", json=body, headers=headers)

    assert (first.status_code, again.status_code) == (201, 200)
    assert again.json()["status"] == "DUPLICATE"
    assert again.json()["job_id"] == again.json()["existing_job_id"] == first.json()["job_id"]
    assert await app.count() == 1
    other = await client.post("/v1/jobs", json={**body, "payload": {"a": 2, "b": 2}}, headers=headers)
    assert other.status_code == 409


async def test_nobody_without_identity_gets_in(server_url: str) -> None:
    async with httpx2.AsyncClient(base_url=server_url, trust_env=False) as nobody:
        answer = await nobody.get("/v1/jobs/x")
        assert answer.status_code == 401
        assert answer.json()["code"] == "UNAUTHORIZED"
        assert (await nobody.get("/health/ready")).json() == {"ready": True, "reason": None}


async def test_failures_name_the_field_and_the_request(client: httpx2.AsyncClient) -> None:
    answer = await client.post("/v1/jobs", json={"type": "add", "payloat": {}}, headers={"X-Request-ID": "mine-1"})

    assert answer.status_code == 400
    assert answer.headers["x-request-id"] == "mine-1"
    assert answer.json()["request_id"] == "mine-1"
    assert answer.json()["details"] == [
        {"field": "payloat", "code": "UNKNOWN_FIELD", "message": "is not known here"},
    ]


async def test_an_encoded_slash_stays_inside_its_part_of_the_path(client: httpx2.AsyncClient) -> None:
    body = {"type": "add", "payload": {"a": 1, "b": 2}, "id": "a/cancel"}
    assert (await client.post("/v1/jobs", json=body)).status_code == 201
    assert (await client.get("/v1/jobs/a%2Fcancel")).json()["job_id"] == "a/cancel"
    assert (await client.get("/v1/jobs/a/cancel")).status_code == 405


async def test_a_wrong_method_is_told_which_ones_there_are(client: httpx2.AsyncClient) -> None:
    answer = await client.put("/v1/jobs", json={})
    assert answer.status_code == 405
    assert answer.headers["allow"] == "GET, HEAD, POST"
