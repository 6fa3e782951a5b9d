"""Looking at failures over HTTP."""

from __future__ import annotations

import httpx2

from ropewalk import App, Backoff
from tests.http.jobs import add, fail


async def test_a_failure_shows_every_attempt(client: httpx2.AsyncClient, app: App) -> None:
    job = await app.enqueue(fail("no luck"), max_attempts=2, backoff=Backoff.constant(0.01))
    async with app.worker():
        await app.wait(job.id, 30)
    details = (await client.get(f"/v1/jobs/{job.id}/failure?include_all_attempts=true")).json()
    assert (details["final_state"], details["total_attempts"]) == ("DEAD_LETTER", 2)
    assert (details["failure"]["code"], details["failure"]["message"]) == ("ValueError", "no luck")
    assert "no luck" in details["failure"]["stack_trace"]
    assert [(each["attempt"], each["result"]) for each in details["attempts"]] == [(1, "FAILURE"), (2, "FAILURE")]


async def test_failures_are_counted_and_grouped(client: httpx2.AsyncClient, app: App) -> None:
    jobs = await app.enqueue_many([fail(), fail(), fail()])
    done = await app.enqueue(add(1, 2))
    async with app.worker():
        for each in (*jobs, done):
            await app.wait(each.id, 30)
    found = (await client.post("/v1/failures/search", json={"pagination": {"limit": 2}})).json()
    assert (len(found["failures"]), found["total_count"], found["complete"]) == (2, 3, True)
    assert (found["by_type"], found["by_code"]) == ({"fail": 3}, {"ValueError": 3})
    [group] = found["groups"]
    assert (group["type"], group["code"], group["count"]) == ("fail", "ValueError", 3)
    rest = {"pagination": {"limit": 2, "cursor": found["next_cursor"]}}
    assert len((await client.post("/v1/failures/search", json=rest)).json()["failures"]) == 1
    assert (await client.get("/v1/failures?types=add")).json()["failures"] == []
    assert (await client.get(f"/v1/jobs/{done.id}/failure")).status_code == 404
