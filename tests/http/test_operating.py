"""Queues, limits, quotas, workers, statistics and workflows over HTTP."""

from __future__ import annotations

import httpx2

from ropewalk import App
from ropewalk.http import Role
from tests.http.jobs import add, spread
from tests.http.server import People, client_of, somebody


async def test_a_queue_is_paused_and_resumed(client: httpx2.AsyncClient, app: App) -> None:
    await app.enqueue(add(1, 2), queue="a/b")
    assert (await client.post("/v1/queues/a%2Fb/pause")).json() == {"name": "a/b", "paused": True}
    [queue] = (await client.get("/v1/queues")).json()["queues"]
    assert (queue["name"], queue["paused"], queue["counts"]) == ("a/b", True, {"SCHEDULED": 1})
    assert (await client.post("/v1/queues/a%2Fb/resume")).json()["paused"] is False


async def test_limits_are_set_shown_and_removed(client: httpx2.AsyncClient, app: App) -> None:
    body = {"concurrency": 5.0, "rate": {"count": 10, "per": "PT1M", "algorithm": "TOKEN"}}
    made = await client.put("/v1/limits/key/stripe", json=body)
    assert made.status_code == 200, made.text
    assert (made.json()["concurrency"], made.json()["rate"]["per"]) == (5, "PT1M")
    assert [each["name"] for each in (await client.get("/v1/limits")).json()["limits"]] == ["stripe"]
    assert (await client.put("/v1/limits/colour/red", json=body)).status_code == 400
    assert (await client.put("/v1/limits/key/stripe", json={})).status_code == 400
    assert (await client.delete("/v1/limits/key/stripe")).status_code == 204
    assert (await client.delete("/v1/limits/key/stripe")).status_code == 404
    assert (await client.get("/v1/limits?every_tenant=true")).status_code == 403


async def test_a_quota_refuses_what_exceeds_it(server_url: str, people: People) -> None:
    people.identities["root"] = somebody(tenant="*")
    people.identities["bob"] = somebody(tenant="bob", roles=frozenset({Role.SUBMIT, Role.READ}))
    async with client_of(server_url, "root") as root, client_of(server_url, "bob") as bob:
        assert (await root.put("/v1/quotas/bob", json={"pending": 1})).status_code == 200
        assert (await root.get("/v1/quotas/bob")).json()["pending"] == 1
        job = {"type": "add", "payload": {"a": 1, "b": 2}}
        assert (await bob.post("/v1/jobs", json=job)).status_code == 201
        refused = await bob.post("/v1/jobs", json=job)
        assert (refused.status_code, refused.json()["code"]) == (429, "QUOTA_EXCEEDED")
        assert (refused.json()["limit"], refused.json()["maximum"]) == ("pending", 1)
        assert int(refused.headers["retry-after"]) >= 1
        use = (await bob.get("/v1/quota")).json()
        assert (use["quota"]["pending"], use["pending"]) == (1, 1)
        assert (await bob.get("/v1/quotas")).status_code == 403
        assert (await root.delete("/v1/quotas/bob")).status_code == 204


async def test_one_tenant_sees_no_machines(server_url: str, people: People, app: App) -> None:
    people.identities["root"] = somebody(tenant="*")
    async with app.worker(), client_of(server_url) as anna, client_of(server_url, "root") as root:
        [shown] = (await anna.get("/v1/workers")).json()["workers"]
        assert (shown["host"], shown["pid"], shown["alive"]) == (None, None, True)
        assert (await anna.post(f"/v1/workers/{shown['worker_id']}/drain")).status_code == 404
        full = (await root.get(f"/v1/workers/{shown['worker_id']}")).json()
        assert full["pid"] is not None
        assert (await root.post(f"/v1/workers/{shown['worker_id']}/drain")).json()["draining"] is True
    async with client_of(server_url, "root") as root:
        found = (await root.get("/v1/doctor")).json()["findings"]
        assert found
        assert {each["level"] for each in found} <= {"OK", "NOTE", "WARN", "BAD"}


async def test_statistics_tell_states_and_flows(client: httpx2.AsyncClient, app: App) -> None:
    done = await app.enqueue(add(1, 2))
    async with app.worker():
        await app.wait(done.id, 30)
    await app.enqueue(add(1, 2), delay=60)
    answer = await client.get("/v1/stats?breakdown_by=TYPE&breakdown_by=STATE&slices=3")
    stats = answer.json()
    assert (stats["completed"], stats["delayed"], stats["scheduled"]) == (1, 1, 0)
    assert stats["by_type"] == {"add": {"pending": 1, "running": 0, "completed": 1, "failed": 0}}
    assert stats["by_state"]["DELAYED"] == 1
    assert "by_queue" not in stats
    assert sum(each["completed"] for each in stats["line"]) == 1
    assert (await client.get("/v1/stats?after=2026-01-02T00:00:00Z&before=2026-01-01T00:00:00Z")).status_code == 400


async def test_a_group_is_shown_waited_for_and_cancelled(client: httpx2.AsyncClient, app: App) -> None:
    root = await app.enqueue(spread(3), workflow_id="w-1")
    assert (await client.get(f"/v1/groups/{root.id}/wait?timeout=0.01")).json()["state"] == "OPEN"
    async with app.worker():
        closed = (await client.get(f"/v1/groups/{root.id}/wait?timeout=30")).json()
    assert (closed["state"], closed["completed"]) == ("CLOSED", 4)
    group = (await client.get(f"/v1/groups/{root.id}")).json()
    assert [node["type"] for node in group["nodes"]] == ["spread", "add", "add", "add"]
    assert (await client.get("/v1/workflows/w-1")).json()["nodes"][0]["job_id"] == root.id
    assert (await client.get("/v1/workflows/nothing")).status_code == 404
    chain = (await client.get(f"/v1/chains/{root.id}")).json()
    assert [each["job_id"] for each in chain["jobs"]] == [root.id]
    other = await app.enqueue(spread(3))
    cancelled = (await client.post(f"/v1/groups/{other.id}/cancel")).json()
    assert (cancelled["requested"], cancelled["cancelled"]) == (1, 1)
    assert (await client.delete(f"/v1/chains/{other.id}")).status_code == 204
