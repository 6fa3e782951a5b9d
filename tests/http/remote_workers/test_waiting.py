"""How claims of remote workers wait, on every store."""

from __future__ import annotations

import asyncio
from time import monotonic

import httpx2

from ropewalk import App
from ropewalk.http import Serve
from tests.http.remote_workers.jobs import add, bounded
from tests.http.remote_workers.worker import RemoteWorker
from tests.http.server import People, client_of, serving, somebody


async def test_a_waiting_claim_gets_a_new_job_at_once(app: App, worker: RemoteWorker) -> None:
    waiting = asyncio.create_task(worker.expect("claim", slots=1, wait="PT20S"))
    await asyncio.sleep(0.5)
    assert not waiting.done()
    handle = await app.enqueue(add(1, 2))
    began = monotonic()
    answer = await waiting
    assert monotonic() - began < 5
    assert [each["job_id"] for each in answer["jobs"]] == [handle.id]
    assert answer["waited"] != "PT0S"


async def test_claims_that_wait_together_each_get_a_job(
    app: App, worker: RemoteWorker, fleet: httpx2.AsyncClient
) -> None:
    workers = [worker, *[await RemoteWorker.register(fleet) for _ in range(2)]]
    waiting = [asyncio.create_task(each.claim(1, wait=20)) for each in workers]
    await asyncio.sleep(0.3)
    await app.enqueue_many([add(n, n) for n in range(3)])
    leases = [lease for jobs in await asyncio.gather(*waiting) for lease in jobs]
    assert len({each["job_id"] for each in leases}) == 3


async def test_a_claim_is_answered_when_its_wait_is_over(app: App, worker: RemoteWorker) -> None:
    began = monotonic()
    assert await worker.claim(1, wait=0.5) == []
    assert 0.4 < monotonic() - began < 5


async def test_a_worker_claims_no_more_than_its_concurrency(app: App, worker: RemoteWorker) -> None:
    await app.enqueue_many([add(n, n) for n in range(6)])
    assert len(await worker.claim(10)) == 4
    assert await worker.claim(10) == []


async def test_the_room_of_a_type_bounds_a_claim(app: App, worker: RemoteWorker) -> None:
    await app.enqueue_many([add(n, n) for n in range(3)])
    assert len(await worker.claim(4, room={"add": 2})) == 2


async def test_a_worker_without_a_free_slot_does_not_hold_up_others(
    app: App, worker: RemoteWorker, fleet: httpx2.AsyncClient
) -> None:
    await app.enqueue_many([add(n, n) for n in range(4)])
    assert len(await worker.claim(4)) == 4
    full = asyncio.create_task(worker.claim(1, wait=20))
    await asyncio.sleep(0.3)
    await app.enqueue(add(5, 5))
    assert len(await (await RemoteWorker.register(fleet)).claim(1, wait=5)) == 1
    assert not full.done()
    full.cancel()


async def test_tenants_do_not_wait_for_one_another(app: App, worker: RemoteWorker, people: People) -> None:
    people.identities["acme"] = somebody(tenant="acme", token_id="acme")
    async with client_of(str(worker.client.base_url), "acme") as client:
        other = await RemoteWorker.register(client)
        waiting = asyncio.create_task(worker.claim(1, wait=20))
        await asyncio.sleep(0.3)
        await app.enqueue(add(1, 2), tenant="acme")
        [lease] = await other.claim(1, wait=5)
        assert lease["tenant"] == "acme"
        assert not waiting.done()
        waiting.cancel()


async def test_what_a_caller_that_has_gone_claimed_is_given_back(app: App, worker: RemoteWorker) -> None:
    waiting = asyncio.create_task(worker.claim(1, wait=20))
    await asyncio.sleep(0.3)
    waiting.cancel()
    await asyncio.wait([waiting])
    await asyncio.sleep(0.2)
    handle = await app.enqueue(add(1, 2))
    assert (await worker.claim_one())["job_id"] == handle.id


async def test_a_draining_worker_gets_nothing(app: App, worker: RemoteWorker) -> None:
    waiting = asyncio.create_task(worker.expect("claim", slots=1, wait="PT20S"))
    await asyncio.sleep(0.2)
    await app.drain_worker(worker.id)
    assert await waiting == {"jobs": [], "waited": (await waiting)["waited"], "drain": True}
    await app.enqueue(add(1, 2))
    assert (await worker.expect("claim", slots=1))["drain"]
    assert (await worker.beat())["drain"]


async def test_a_draining_server_answers_waiting_claims(app: App, people: People) -> None:
    server = Serve(app, authenticate=people)
    async with serving(server) as url, client_of(url, "fleet") as client:
        worker = await RemoteWorker.register(client)
        waiting = asyncio.create_task(worker.expect("claim", slots=1, wait="PT20S"))
        await asyncio.sleep(0.2)
        began = monotonic()
        server.drain()
        answer = await waiting
        assert monotonic() - began < 5
        assert (answer["jobs"], answer["drain"]) == ([], False)


async def test_a_lease_that_expired_is_taken_back_by_a_waiting_claim(app: App, worker: RemoteWorker) -> None:
    """No local worker is there to sweep, so the claims of remote workers recover what a dead one held."""
    handle = await app.enqueue(bounded())
    lease = await worker.claim_one()
    assert lease["lease"] == "PT1S"
    again = await worker.claim(1, wait=15)
    assert [(each["job_id"], each["attempt"]) for each in again] == [(handle.id, 2)]
