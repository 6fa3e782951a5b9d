"""S6, safe-3: with connection= a job exists if and only if that transaction commits, on every driver."""

from __future__ import annotations

import asyncio

import pytest

from ropewalk import App, Conflict, NotFound, State
from tests.joining.conftest import Place, on
from tests.joining.drivers import EVERY, Driver
from tests.joining.hearing import SECONDS_MAX, listening, looked_once
from tests.joining.jobs import JOBS, greet, measure

pytestmark = [pytest.mark.asyncio, on(*EVERY)]

POLL_SECONDS = 60
"""of workers here: longer than a test may take, so that only a wake-up starts a job"""


async def test_it_exists_once_committed_and_is_started_by_the_commit(app: App, driver: Driver, place: Place) -> None:
    elsewhere = App(place.url, jobs=JOBS, allow_weaker_durability=True)  # as another process would
    async with elsewhere, elsewhere.worker(poll=POLL_SECONDS) as worker:
        await worker.idle()
        await looked_once(elsewhere)
        handle = await driver.enqueue(app, greet("ada"))
        with pytest.raises(NotFound):
            await handle.result(timeout=SECONDS_MAX)
        await driver.run("INSERT INTO mine VALUES ('ada')")
        await driver.commit()
        assert await handle.result(timeout=SECONDS_MAX) == "hello ada"
        assert await driver.run("SELECT word FROM mine") == [("ada",)]


async def test_nothing_is_left_of_a_rollback(app: App, driver: Driver) -> None:
    handle = await driver.enqueue(app, greet("ada"))
    await driver.run("INSERT INTO mine VALUES ('ada')")
    await driver.rollback()
    assert await app.states([handle.id]) == {}
    assert await driver.run("SELECT word FROM mine") == []
    await driver.rollback()
    again = await driver.enqueue(app, greet("ada"), id=handle.id)
    await driver.commit()
    assert not again.duplicate
    assert await app.states([handle.id]) == {handle.id: State.SCHEDULED}


async def test_it_is_counted_if_it_is_committed(app: App, driver: Driver) -> None:
    """O4: like every other, in the same transaction."""
    await driver.enqueue(app, greet("ada"))
    assert (await app.stats()).flow.submitted == 0
    await driver.rollback()
    await driver.enqueue(app, greet("bob"))
    await driver.commit()
    told = await app.stats()
    assert (told.flow.submitted, told.states) == (1, {State.SCHEDULED: 1})


async def test_a_savepoint_takes_only_its_own_back(app: App, driver: Driver) -> None:
    before = await driver.enqueue(app, greet("before"))
    await driver.savepoint()
    inside = await driver.enqueue(app, greet("inside"))
    await driver.rollback_to_savepoint()
    await driver.savepoint()
    kept = await driver.enqueue(app, greet("kept"))
    await driver.release_savepoint()
    after = await driver.enqueue(app, greet("after"))
    await driver.commit()
    states = await app.states([before.id, inside.id, kept.id, after.id])
    assert states == dict.fromkeys([before.id, kept.id, after.id], State.SCHEDULED)


async def test_hooks_and_workers_hear_of_commits_only(app: App, driver: Driver) -> None:
    told: list[str] = []
    app._app_state.events.hook_type("greet", lambda event: told.append(event.job_id))
    with listening(app) as heard:
        await looked_once(app)
        await driver.enqueue(app, greet("undone"), queue="undone")
        await driver.savepoint()
        await driver.enqueue(app, greet("undone, too"), queue="undone")
        await driver.release_savepoint()  # is no commit
        await driver.rollback()
        await driver.savepoint()
        await driver.enqueue(app, greet("taken back"), queue="taken-back")
        await driver.rollback_to_savepoint()
        kept = await driver.enqueue(app, greet("kept"), queue="kept")
        again = await driver.enqueue(app, greet("kept, too"), queue="kept")
        assert (await driver.enqueue(app, greet("kept"), id=kept.id, queue="kept")).duplicate  # told once
        assert not heard.queues
        heard.anything.clear()
        await driver.commit()
        # Hints come in order: whatever the rest had caused would have been heard before.
        if driver.store == "postgres" or driver.tells:
            await heard.queue("kept")
            assert heard.queues == {"kept"}
        else:
            await asyncio.wait_for(heard.anything.wait(), SECONDS_MAX)
        assert told == ([kept.id, again.id] if driver.tells else [])


async def test_a_refusal_leaves_the_transaction_as_it_was(app: App, driver: Driver) -> None:
    await app.enqueue(greet("ada"), id="taken")
    await driver.run("INSERT INTO mine VALUES ('before')")
    before = await _settings(driver)
    with pytest.raises(Conflict) as refused:
        await driver.enqueue_many(app, [greet("lost").using(id="lost"), greet("bob").using(id="taken")])
    assert refused.value.__cause__ is None
    assert await _settings(driver) == before
    await driver.run("INSERT INTO mine VALUES ('after')")
    duplicate = await driver.enqueue(app, greet("ada"), id="taken")
    fine = await driver.enqueue(app, greet("fine"))
    assert await _settings(driver) == before
    await driver.commit()
    assert duplicate.duplicate
    assert sorted(await driver.run("SELECT word FROM mine")) == [("after",), ("before",)]
    assert sorted(await app.states(["taken", "lost", fine.id])) == sorted(["taken", fine.id])


async def _settings(driver: Driver) -> list[tuple[object, ...]]:
    if driver.store == "sqlite":
        return []
    return await driver.run("SELECT name, setting FROM pg_settings WHERE name <> 'transaction_timeout' ORDER BY name")


async def test_graphs_and_keys_come_in(app: App, driver: Driver) -> None:
    async with app.worker(poll=POLL_SECONDS):
        await looked_once(app)
        first, second = greet("ada"), measure("four")
        await driver.enqueue_many(app, [first, second.using(depends_on=first)])
        keyed = await driver.enqueue(app, greet("bob"), idempotency_key="once", depends_on=second)
        again = await driver.enqueue(app, greet("bob"), idempotency_key="once")
        await driver.commit()
        assert (again.id, again.duplicate) == (keyed.id, True)
        assert await keyed.result(timeout=SECONDS_MAX) == "hello bob"
        assert (await app.get(first.id)).state is State.COMPLETED


async def test_ten_thousand_at_once(app: App, driver: Driver) -> None:
    jobs = [greet(f'{number} "x" \\ é') for number in range(10_000)]
    ids = await driver.enqueue_many(app, jobs)
    assert await app.count() == 0
    await driver.commit()
    assert ids == [each.id for each in jobs]
    assert await app.count() == 10_000


async def test_what_comes_in_chunks_is_still_all_or_nothing(app: App, driver: Driver) -> None:
    await app.enqueue(greet("ada"), id="taken")
    jobs = [greet(f"{number}") for number in range(2_500)]
    await driver.run("INSERT INTO mine VALUES ('before')")
    with pytest.raises(Conflict):
        await driver.enqueue_many(app, [*jobs, greet("bob").using(id="taken")], atomic=False)
    await driver.run("INSERT INTO mine VALUES ('after')")
    await driver.commit()
    assert sorted(await driver.run("SELECT word FROM mine")) == [("after",), ("before",)]
    assert await app.count() == 1
    await driver.enqueue_many(app, jobs, atomic=False)
    await driver.commit()
    assert await app.count() == 2_501


async def test_skipping_the_queue_is_an_ordinary_enqueue(app: App, driver: Driver) -> None:
    async with app.worker(poll=POLL_SECONDS) as worker:
        await worker.idle()
        await looked_once(app)
        handle = await driver.enqueue(app, greet("ada"), skip_queue=True)
        assert await app.states([handle.id]) == {}
        await driver.commit()
        assert await handle.result(timeout=SECONDS_MAX) == "hello ada"


async def test_another_tenants_job(app: App, driver: Driver) -> None:
    [handle] = await app.tenant("acme").enqueue_many([greet("ada")], connection=driver.connection)
    await driver.commit()
    assert await app.states([handle.id]) == {}
    assert (await handle.status()).tenant == "acme"
