"""Remote workers claim, run and settle jobs through HTTP, on every store."""

from __future__ import annotations

import asyncio
import base64

import httpx2
import pytest

from ropewalk import App
from tests.http.remote_workers.jobs import add, bounded, copy, doomed, hurried
from tests.http.remote_workers.worker import RemoteWorker, held, registration
from tests.http.server import People, client_of, somebody

ERROR = {"message": "no luck", "code": "bad_luck"}


async def test_a_job_completes(app: App, worker: RemoteWorker) -> None:
    handle = await app.enqueue(add(1, 2), tags={"of": "test"}, correlation_id="c")
    lease = await worker.claim_one()
    assert (lease["job_id"], lease["type"], lease["attempt"], lease["run"]) == (handle.id, "add", 1, 1)
    assert (lease["payload"], lease["tags"], lease["correlation_id"]) == ({"a": 1, "b": 2}, {"of": "test"}, "c")
    assert (lease["lease"], lease["timeout"], lease["last_checkpoint"], lease["steps"]) == ("PT30S", None, None, [])
    settled = await worker.settle(lease, "COMPLETED", output=3, duration_ms=5)
    assert settled == {**held(lease), "accepted": True, "state": "COMPLETED"}
    assert await handle.result() == 3


async def test_a_repeated_settle_is_not_accepted_again(app: App, worker: RemoteWorker) -> None:
    await app.enqueue(add(1, 2))
    lease = await worker.claim_one()
    outcome = {**held(lease), "status": "COMPLETED", "output": 3}
    [first, second] = (await worker.expect("settle", outcomes=[outcome, outcome]))["outcomes"]
    assert (first["accepted"], second["accepted"], second["reason"]) == (True, False, "ALREADY_COMPLETED")
    assert (await worker.settle(lease, "COMPLETED", output=3))["reason"] == "ALREADY_COMPLETED"


async def test_a_failed_attempt_is_retried_by_the_backoff_of_its_type(app: App, worker: RemoteWorker) -> None:
    handle = await app.enqueue(add(1, 2))
    settled = await worker.settle(await worker.claim_one(), "RETRY", error=ERROR)
    assert (settled["accepted"], settled["state"] in ("RETRYING", "SCHEDULED")) == (True, True)
    again = await worker.claim_one()
    assert (again["job_id"], again["attempt"]) == (handle.id, 2)
    await worker.settle(again, "RETRY", error=ERROR, after="PT0S")
    last = await worker.claim_one()
    assert (await worker.settle(last, "TIMED_OUT"))["state"] == "DEAD_LETTER"
    job = await app.get(handle.id)
    assert job.error is not None
    assert (job.error.category, job.error.code) == ("timeout", "timeout")


async def test_a_permanent_failure_starts_the_compensation(app: App, worker: RemoteWorker) -> None:
    handle = await app.enqueue(doomed(7))
    settled = await worker.settle(await worker.claim_one(), "FAILED", error={**ERROR, "stack_trace": "here"})
    assert settled["state"] == "FAILED"
    undone = await worker.claim_one()
    assert (undone["type"], undone["payload"]) == ("undo", {"a": 7})
    compensated = undone["compensates"]
    assert (compensated["job_id"], compensated["error"]["stack_trace"]) == (handle.id, "here")


async def test_progress_log_lines_and_checkpoints_are_stored(app: App, worker: RemoteWorker) -> None:
    handle = await app.enqueue(add(1, 2))
    lease = await worker.claim_one()
    line = {"position": 1, "level": "WARNING", "message": "slow", "fields": {"row": 5}, "ago": "PT1S"}
    beat = await worker.beat(lease, progress={"percent": 40, "message": "rows"}, log=[line])
    assert beat == {"lost": [], "cancel": [], "busy": [], "drain": False}
    assert await worker.expect("checkpoint", **held(lease), state={"row": 5}) == {}
    info = await app.get(handle.id)
    assert info.progress is not None
    assert (info.progress.percent, info.progress.message) == (40, "rows")
    [kept] = await app.logs(handle.id)
    assert (kept.level, kept.message, kept.fields) == ("WARNING", "slow", {"row": 5})
    await worker.settle(lease, "RETRY", error=ERROR, after=0)
    assert (await worker.claim_one())["last_checkpoint"] == {"row": 5}


async def test_a_running_job_is_cancelled(app: App, worker: RemoteWorker) -> None:
    handle = await app.enqueue(add(1, 2))
    lease = await worker.claim_one()
    await app.cancel(handle.id, reason="enough", force=True)
    [notice] = (await worker.beat(lease))["cancel"]
    assert notice == {**held(lease), "reason": "enough", "force": True}
    assert (await worker.expect("checkpoint", **held(lease), state=1))["cancel"] == {"reason": "enough", "force": True}
    assert (await worker.settle(lease, "CANCELLED"))["state"] == "CANCELLED"


async def test_the_lease_of_a_lost_answer_is_given_back_with_its_attempt(app: App, fleet: httpx2.AsyncClient) -> None:
    worker = await RemoteWorker.register(fleet)
    assert worker.registered["heartbeat_every"] == "PT0.333333S"
    handle = await app.enqueue(hurried())
    dropped = await worker.claim_one()
    await worker.beat()
    assert (await app.get(handle.id)).state == "running", "the lease is younger than one heartbeat"
    await asyncio.sleep(0.4)
    await worker.beat()
    again = await worker.claim_one()
    assert (again["job_id"], again["attempt"]) == (handle.id, 1), "the only attempt is not used up"
    assert again["fence"] != dropped["fence"]


async def test_a_stale_fence_changes_nothing(app: App, worker: RemoteWorker) -> None:
    handle = await app.enqueue(add(1, 2))
    old = await worker.claim_one()
    await worker.settle(old, "RELEASED")
    new = await worker.claim_one()
    assert (await worker.settle(old, "COMPLETED", output=9))["reason"] == "TAKEN_BY_ANOTHER_WORKER"
    assert (await worker.beat(old, new))["lost"] == [{**held(old), "reason": "TAKEN_BY_ANOTHER_WORKER"}]
    calls: dict[str, dict[str, object]] = {
        "checkpoint": {"state": 1},
        "steps": {"position": 0, "name": "one"},
        "signals": {"position": 0, "name": "wait", "signal": "go"},
        "spawn": {"jobs": [{"type": "add", "payload": {"a": 1, "b": 1}, "spawn_key": "k"}]},
        "once": {"key": "k", "ttl": 60},
    }
    for path, fields in calls.items():
        refused = await worker.call(path, **held(old), **fields)
        assert (refused.status_code, refused.json()["code"]) == (409, "LEASE_LOST"), path
        assert refused.json()["reason"] == "TAKEN_BY_ANOTHER_WORKER"
    assert await app.count() == 1
    await worker.settle(new, "COMPLETED", output=3)
    assert await handle.result() == 3


async def test_a_worker_of_another_token_is_not_found(app: App, worker: RemoteWorker, server_url: str) -> None:
    await app.enqueue(add(1, 2))
    lease = await worker.claim_one()
    async with client_of(server_url, "other") as client:
        stranger = RemoteWorker(client, worker.id, {})
        calls: dict[str, dict[str, object]] = {
            "claim": {"slots": 1},
            "heartbeat": {"leases": []},
            "settle": {"outcomes": [{**held(lease), "status": "COMPLETED", "output": 3}]},
            "checkpoint": {**held(lease), "state": 1},
            "deregister": {},
        }
        for path, fields in calls.items():
            assert (await stranger.call(path, **fields)).status_code == 404, path
    assert (await worker.settle(lease, "COMPLETED", output=3))["accepted"]
    assert (await worker.call("deregister")).status_code == 204
    assert (await worker.call("claim", slots=1)).status_code == 404


async def test_the_server_ends_an_attempt_that_runs_a_whole_lease_too_long(app: App, worker: RemoteWorker) -> None:
    handle = await app.enqueue(bounded())
    lease = await worker.claim_one()
    assert lease["timeout"] == "PT0.2S"
    assert (await worker.beat(lease))["lost"] == []
    await asyncio.sleep(1.3)
    assert (await worker.beat(lease))["lost"] == [{**held(lease), "reason": "TIMEOUT"}]
    info = await app.get(handle.id)
    assert info.error is not None and info.error.code == "timeout"


async def test_a_refused_completion_keeps_its_lease(app: App, worker: RemoteWorker) -> None:
    handle = await app.enqueue(add(1, 2))
    lease = await worker.claim_one()
    wrong = await worker.settle(lease, "COMPLETED", output="three")
    assert (wrong["accepted"], wrong["error"]["details"][0]["field"]) == (False, "output")
    orphan = {"type": "add", "payload": {"a": 1, "b": 1}, "depends_on": ["nobody"]}
    refused = await worker.settle(lease, "COMPLETED", output=3, children=[orphan])
    assert (refused["accepted"], refused["error"]["code"]) == (False, "INVALID_REQUEST")
    assert (await worker.settle(lease, "COMPLETED", output=3))["accepted"]
    assert await handle.result() == 3


async def test_values_pass_as_the_library_stores_them(app: App, worker: RemoteWorker) -> None:
    handle = await app.enqueue(copy(b"\x00\xff"))
    lease = await worker.claim_one()
    assert lease["payload"]["data"] == base64.b64encode(b"\x00\xff").decode()
    await worker.settle(lease, "COMPLETED", output=lease["payload"]["data"])
    assert await handle.result() == b"\x00\xff"


@pytest.mark.parametrize(
    ("change", "status", "field"),
    [
        ({"protocol": 2}, 400, "protocol"),
        ({"types": ["nothing"]}, 400, "types[0]"),
        ({"types": []}, 400, "types"),
        ({"concurrency": 0}, 400, "concurrency"),
    ],
)
async def test_a_registration_that_does_not_fit_is_refused(
    fleet: httpx2.AsyncClient, app: App, change: dict[str, object], status: int, field: str
) -> None:
    answer = await fleet.post("/v1/worker/register", json=registration(**change))
    assert (answer.status_code, answer.json()["details"][0]["field"]) == (status, field)
    assert await app.workers() == []


async def test_a_bounded_token_takes_and_spawns_only_what_it_reaches(app: App, server_url: str, people: People) -> None:
    people.identities["adder"] = somebody(token_id="adder", types=frozenset({"add"}), queues=frozenset({"fast"}))
    await app.enqueue(add(1, 1))
    await app.enqueue(doomed(1), queue="fast")
    mine = await app.enqueue(add(2, 2), queue="fast")
    async with client_of(server_url, "adder") as client:
        for change in ({}, {"types": ["add"], "queues": ["default"]}):
            assert (await client.post("/v1/worker/register", json=registration(**change))).status_code == 403
        worker = await RemoteWorker.register(client, types=["add"])
        [lease] = await worker.claim(4)
        assert lease["job_id"] == mine.id
        child = {"type": "add", "payload": {"a": 1, "b": 1}}
        refused = await worker.settle(lease, "COMPLETED", output=4, children=[child])
        assert refused["error"]["code"] == "FORBIDDEN"
        spawn = await worker.call("spawn", **held(lease), jobs=[{**child, "spawn_key": "k"}])
        assert spawn.status_code == 403
        allowed = {**child, "queue": "fast"}
        assert (await worker.settle(lease, "COMPLETED", output=4, children=[allowed]))["accepted"]
    assert await app.count() == 4
