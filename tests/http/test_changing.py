"""Changing one job over HTTP."""

from __future__ import annotations

import httpx2

from ropewalk import App
from tests.http.jobs import add, fail


async def test_a_job_that_waits_is_cancelled_at_once(client: httpx2.AsyncClient, app: App) -> None:
    job = await app.enqueue(add(1, 2))
    answer = (await client.post(f"/v1/jobs/{job.id}/cancel", json={"reason": "no"})).json()
    assert (answer["status"], answer["previous_state"]) == ("CANCELLED", "SCHEDULED")
    again = await client.post(f"/v1/jobs/{job.id}/cancel")
    assert (again.status_code, again.json()["status"]) == (200, "ALREADY_COMPLETE")
    missing = await client.post("/v1/jobs/nobody/cancel")
    assert missing.status_code == 404
    assert (missing.json()["status"], missing.json()["code"]) == ("NOT_FOUND", "NOT_FOUND")
    assert missing.json()["request_id"] == missing.headers["x-request-id"]


async def test_a_failed_job_is_retried(client: httpx2.AsyncClient, app: App) -> None:
    job = await app.enqueue(fail())
    async with app.worker():
        await app.wait(job.id, 30)
    answer = (await client.post(f"/v1/jobs/{job.id}/retry", json={"delay": "PT1H", "priority": "HIGH"})).json()
    assert (answer["status"], answer["new_state"]) == ("QUEUED", "DELAYED")
    assert (await app.get(job.id)).priority == 100
    again = await client.post(f"/v1/jobs/{job.id}/retry")
    assert (again.status_code, again.json()["status"]) == (200, "NOT_RETRIABLE")
    assert (await client.post("/v1/jobs/nobody/retry")).status_code == 404


async def test_a_job_is_ended_from_outside(client: httpx2.AsyncClient, app: App) -> None:
    done, failed = await app.enqueue(add(1, 2)), await app.enqueue(add(1, 2))
    answer = await client.post(f"/v1/jobs/{done.id}/complete", json={"output": 5})
    assert answer.json()["state"] == "COMPLETED"
    assert await done.result() == 5
    assert (await client.post(f"/v1/jobs/{done.id}/complete", json={"output": 5})).status_code == 409
    wrong = await client.post(f"/v1/jobs/{failed.id}/complete", json={"output": "five"})
    assert wrong.status_code == 400
    answer = await client.post(f"/v1/jobs/{failed.id}/fail", json={"message": "rejected"})
    assert (answer.json()["state"], answer.json()["error"]["message"]) == ("FAILED", "rejected")


async def test_a_job_that_waits_is_updated_and_triggered(client: httpx2.AsyncClient, app: App) -> None:
    job = await app.enqueue(add(1, 2), delay=3600)
    answer = await client.patch(f"/v1/jobs/{job.id}", json={"payload": {"a": 5, "b": 6}, "priority": 3})
    assert (answer.json()["payload"], answer.json()["priority"]) == ({"a": 5, "b": 6}, 3)
    assert (await client.patch(f"/v1/jobs/{job.id}", json={"payload": {"a": "x"}})).status_code == 400
    assert (await client.patch(f"/v1/jobs/{job.id}", json={})).status_code == 400
    assert (await client.post(f"/v1/jobs/{job.id}/trigger")).json()["state"] == "SCHEDULED"
    await app.cancel(job.id)
    assert (await client.patch(f"/v1/jobs/{job.id}", json={"priority": 4})).status_code == 409


async def test_a_signal_with_an_id_counts_once(client: httpx2.AsyncClient, app: App) -> None:
    job = await app.enqueue(add(1, 2))
    body = {"name": "paid", "value": 12.5, "id": "payment-1"}
    first = await client.post(f"/v1/jobs/{job.id}/signals", json=body)
    again = await client.post(f"/v1/jobs/{job.id}/signals", json=body)
    assert [first.json()["status"], again.json()["status"]] == ["KEPT", "DUPLICATE"]


async def test_a_job_is_deleted_when_it_has_ended(client: httpx2.AsyncClient, app: App) -> None:
    job = await app.enqueue(add(1, 2))
    assert (await client.delete(f"/v1/jobs/{job.id}")).status_code == 409
    await app.cancel(job.id)
    assert (await client.delete(f"/v1/jobs/{job.id}")).status_code == 204
    assert (await client.get(f"/v1/jobs/{job.id}")).status_code == 404
