"""A user's transaction that stays open for longer than a lease: the jobs it refers to keep their leases and go on."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from ropewalk import App, Chain, State
from ropewalk.domain.jobs.record import Progress
from ropewalk.domain.jobs.states import Move
from ropewalk.domain.jobs.transition import Settlement
from ropewalk.domain.time import SECOND
from ropewalk.ports.store.claims import ClaimRequest
from ropewalk.ports.store.leases import Note, Renewal
from ropewalk.testing.contract.bench import holder
from tests.joining.conftest import on
from tests.joining.drivers import Asyncpg, Driver, Psycopg, PsycopgAsync
from tests.joining.hearing import SECONDS_MAX
from tests.joining.jobs import greet

pytestmark = pytest.mark.asyncio
LEASE = 30 * SECOND


async def running(app: App, **options: Any) -> Any:
    """One job, leased to a worker."""
    await app.enqueue(greet("ada"), **options)
    request = ClaimRequest(owner="w", types={"greet": LEASE}, slots=1, limit=1, first_ticket=1, started_upto=1)
    [job] = (await app._app_state.store.claim(request)).jobs
    return job


async def refer(app: App, driver: Driver, job_id: str, how: str) -> str:
    """In the user's transaction. The id of the job that is queued, or found."""
    match how:
        case "job":
            return (await driver.enqueue(app, greet("bob"), depends_on=[job_id])).id
        case "chain":
            return (await driver.enqueue(app, greet("bob"), depends_on=[Chain(job_id)])).id
        case "twice":
            await driver.enqueue(app, greet("bob"), depends_on=[job_id])
            return (await driver.enqueue(app, greet("cyd"), depends_on=[job_id])).id
        case "key":
            return (await driver.enqueue(app, greet("ada"), idempotency_key="k")).id
        case _:
            return (await driver.enqueue(app, greet("ada"), id=job_id)).id


@on(Psycopg, PsycopgAsync, Asyncpg)
@pytest.mark.parametrize("how", ["job", "chain", "twice", "key", "id"])
async def test_a_job_that_an_open_transaction_refers_to_is_renewed_and_writes(
    app: App, driver: Driver, how: str
) -> None:
    """Whoever depends on it, or is found to be a repetition of it, must not cost it its attempt."""
    store = app._app_state.store
    job = await running(app, idempotency_key="k")
    await refer(app, driver, job.id, how)
    for percent in (1.0, 2.0):
        renewal = Renewal(seq=job.seq, fence=job.fence, lease_us=LEASE, progress=Progress(percent, None, 0))
        renewed = await store.renew("w", [renewal])
        assert (renewed.lost, renewed.busy) == ([], [])
    noted = await asyncio.wait_for(store.note(Note(holder=holder(job), checkpoint=b"[1]")), SECONDS_MAX)
    assert noted.lost is None
    await driver.commit()
    after = (await store.get("default", [job.id])).jobs[job.id]
    assert (after.checkpoint, after.progress is not None and after.progress.percent) == (b"[1]", 2.0)


@on(Psycopg, PsycopgAsync, Asyncpg)
@pytest.mark.parametrize("ending", ["commit", "rollback"])
async def test_a_parent_that_completes_meanwhile_releases_its_dependants(app: App, driver: Driver, ending: str) -> None:
    """safe-9: its completion waits until the transaction is over, and sees what came of it."""
    store = app._app_state.store
    job = await running(app)
    waiting = await refer(app, driver, job.id, "job")
    settled = asyncio.ensure_future(
        store.settle("w", [Settlement(seq=job.seq, fence=job.fence, move=Move.COMPLETE, result=b"1", alone=True)])
    )
    await asyncio.wait([settled], timeout=0.2)
    assert not settled.done()
    await (driver.commit() if ending == "commit" else driver.rollback())
    [answer] = (await asyncio.wait_for(settled, SECONDS_MAX)).settled
    assert answer.move is Move.COMPLETE
    if ending == "commit":
        assert (await app.get(waiting)).state is State.SCHEDULED
    else:
        assert await app.count() == 1


@on(Psycopg)
async def test_a_job_that_ends_and_is_referred_to_in_the_same_moment(app: App, driver: Driver) -> None:
    """safe-9: whoever is first, the dependant is released."""
    store = app._app_state.store
    for _ in range(20):
        job = await running(app)
        ending = Settlement(seq=job.seq, fence=job.fence, move=Move.COMPLETE, result=b"1", alone=True)
        settling = asyncio.ensure_future(store.settle("w", [ending]))
        waiting = await refer(app, driver, job.id, "job")
        await driver.commit()
        await asyncio.wait_for(settling, SECONDS_MAX)
        assert (await app.get(waiting)).state is State.SCHEDULED
        await app.cancel(waiting)
