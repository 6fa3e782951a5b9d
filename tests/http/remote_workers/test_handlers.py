"""What handlers of remote workers do while they run: steps, signals, spawned jobs, keys, and waits."""

from __future__ import annotations

from ropewalk import App
from tests.http.remote_workers.jobs import add
from tests.http.remote_workers.worker import RemoteWorker, held


async def test_a_stored_step_comes_with_the_next_lease(app: App, worker: RemoteWorker) -> None:
    await app.enqueue(add(1, 2))
    lease = await worker.claim_one()
    await worker.expect("steps", **held(lease), position=0, name="charge", value={"receipt": 7})
    other = await worker.call("steps", **held(lease), position=0, name="refund")
    assert (other.status_code, other.json()["code"], other.json()["reason"]) == (409, "CONFLICT", "nondeterministic")
    await worker.settle(lease, "RETRY", error={"message": "later"}, after=0)
    [step] = (await worker.claim_one())["steps"]
    assert step == {
        "position": 0,
        "name": "charge",
        "kind": "STEP",
        "finished": True,
        "value": {"receipt": 7},
        "timed_out": False,
    }


async def test_a_sleeping_job_runs_again_when_its_time_is_over(app: App, worker: RemoteWorker) -> None:
    await app.enqueue(add(1, 2))
    lease = await worker.claim_one()
    nap = {"position": 0, "name": "sleep-1", "kind": "SLEEP", "for": 0.3}
    assert (await worker.settle(lease, "SUSPENDED", **nap))["state"] == "DELAYED"
    again = await worker.claim_one()
    assert again["attempt"] == 1, "the suspended attempt does not count"
    [step] = again["steps"]
    assert (step["kind"], step["finished"], step["remaining"]) == ("SLEEP", False, "PT0S")
    await worker.settle(again, "SUSPENDED", **{**nap, "for": "PT1H"})
    assert (await worker.claim_one())["steps"] == [step], "the stored end of a sleep stays"


async def test_a_signal_is_taken_once(app: App, worker: RemoteWorker) -> None:
    handle = await app.enqueue(add(1, 2))
    lease = await worker.claim_one()
    wait = {"position": 0, "name": "wait_for-go-1", "signal": "go"}
    assert await worker.expect("signals", **held(lease), **wait) == {"signal": None}
    assert (await worker.settle(lease, "SUSPENDED", kind="SIGNAL", **wait))["state"] == "PENDING"
    await app.signal(handle.id, "go", {"by": "anna"})
    again = await worker.claim_one()
    for _ in range(2):
        taken = await worker.expect("signals", **held(again), **wait)
        assert taken["signal"] == {"value": {"by": "anna"}}
    after = await worker.expect("signals", **held(again), position=1, name="wait_for-go-2", signal="go")
    assert after["signal"] is None


async def test_a_wait_that_timed_out_stays_timed_out(app: App, worker: RemoteWorker) -> None:
    await app.enqueue(add(1, 2))
    wait = {"position": 0, "name": "wait_for-go-1", "signal": "go"}
    await worker.settle(await worker.claim_one(), "SUSPENDED", kind="SIGNAL", **wait, **{"for": 0.2})
    lease = await worker.claim_one()
    assert lease["steps"][0]["remaining"] == "PT0S"
    await worker.expect("steps", **held(lease), position=0, name="wait_for-go-1")
    await worker.settle(lease, "RELEASED")
    [step] = (await worker.claim_one())["steps"]
    assert (step["kind"], step["finished"], step["timed_out"]) == ("SIGNAL", True, True)


async def test_spawned_jobs_are_found_again_by_their_keys(app: App, worker: RemoteWorker) -> None:
    root = await app.enqueue(add(1, 2))
    lease = await worker.claim_one()
    jobs = [{"type": "add", "payload": {"a": n, "b": 1}, "spawn_key": str(n)} for n in range(2)]
    first = await worker.expect("spawn", **held(lease), jobs=jobs)
    second = await worker.expect("spawn", **held(lease), jobs=jobs)
    assert [each["status"] for each in first["jobs"]] == ["ACCEPTED", "ACCEPTED"]
    assert [each["status"] for each in second["jobs"]] == ["DUPLICATE", "DUPLICATE"]
    assert [each["job_id"] for each in second["jobs"]] == [each["job_id"] for each in first["jobs"]]
    other = await worker.call("spawn", **held(lease), jobs=[{**jobs[1], "spawn_key": "0"}])
    assert (other.status_code, other.json()["code"]) == (409, "SPAWN_MISMATCH")
    for child in await worker.claim(3):
        assert (child["parent_id"], child["group_id"]) == (root.id, root.id)
        await worker.settle(child, "COMPLETED", output=1)
    await worker.settle(lease, "COMPLETED", output=3)
    assert await app.count() == 3


async def test_children_and_contributions_make_the_value_of_a_group(app: App, worker: RemoteWorker) -> None:
    root = await app.enqueue(add(1, 2))
    child = {"type": "add", "payload": {"a": 1, "b": 1}}
    summed = {"contribution": {"reducer": "SUM"}}
    await worker.settle(await worker.claim_one(), "COMPLETED", output=3, children=[child, child], **summed)
    for lease in await worker.claim(2, wait=5):
        assert (await worker.settle(lease, "COMPLETED", output=2, **summed))["accepted"]
    assert await root.group(10) == 7


async def test_a_continuation_has_the_result_of_its_chain(app: App, worker: RemoteWorker) -> None:
    first = await app.enqueue(add(1, 2))
    go_on = {"type": "add", "payload": {"a": 3, "b": 4}}
    await worker.settle(await worker.claim_one(), "COMPLETED", continuation=go_on)
    last = await worker.claim_one()
    assert last["payload"] == {"a": 3, "b": 4}
    await worker.settle(last, "COMPLETED", output=7)
    assert [job.id for job in await app.chain(first.id)] == [first.id, last["job_id"]]


async def test_dependencies_come_with_the_lease(app: App, worker: RemoteWorker) -> None:
    parent = await app.enqueue(add(1, 2))
    await app.enqueue(add(3, 4), depends_on=[parent.id])
    await worker.settle(await worker.claim_one(), "COMPLETED", output=3)
    [dependency] = (await worker.claim_one())["dependencies"]
    assert (dependency["job_id"], dependency["state"], dependency["output"]) == (parent.id, "COMPLETED", 3)


async def test_a_key_is_used_once(app: App, worker: RemoteWorker) -> None:
    await app.enqueue_many([add(1, 1), add(2, 2)])
    one, two = await worker.claim(2)
    for lease, first in ((one, True), (one, True), (two, False)):
        assert (await worker.expect("once", **held(lease), key="mail", ttl="PT1H"))["first"] is first


async def test_a_deferred_attempt_does_not_count(app: App, worker: RemoteWorker) -> None:
    await app.enqueue(add(1, 2))
    lease = await worker.claim_one()
    both = await worker.settle(lease, "DEFERRED")
    assert both["error"]["details"][0]["field"] == "delay"
    assert (await worker.settle(lease, "DEFERRED", delay=0.1))["state"] == "DELAYED"
    assert (await worker.claim_one())["attempt"] == 1


async def test_a_crash_counts_and_the_job_runs_alone_among_suspects(app: App, worker: RemoteWorker) -> None:
    await app.enqueue_many([add(1, 1), add(2, 2)])
    for lease in await worker.claim(2):
        await worker.settle(lease, "CRASHED", error={"message": "killed"})
    [suspect] = await worker.claim(2)
    assert await worker.claim(2) == [], "a worker holds at most one suspect"
    await worker.settle(suspect, "COMPLETED", output=2)
    assert len(await worker.claim(2)) == 1
