"""`app.sync.events()`: an iterator for code without a loop, which ends when it is closed."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Iterator

import pytest

from ropewalk import App, BeyondTenant, Event, job
from ropewalk.client.portal import SyncEvents
from tests.apps import MakeApp


@job
async def plus_one(number: int) -> int:
    return number + 1


@pytest.fixture
def app(new_app: MakeApp) -> Iterator[App]:
    app = new_app(plus_one)
    yield app
    asyncio.run(app.close())


def test_it_listens_from_when_it_is_made(app: App) -> None:
    with app.sync.events() as events:
        handle = app.sync.enqueue(plus_one(1))
        handle.cancel()
        told = [next(events), next(events)]
    assert [(event.kind, event.job_id) for event in told] == [("queued", handle.id), ("cancelled", handle.id)]
    assert next(events, None) is None


def test_another_thread_ends_an_iteration_that_waits(app: App) -> None:
    events = app.sync.events()
    told, thread = _reader(events)
    app.sync.enqueue(plus_one(1))
    assert told.wait(10)
    events.close()
    events.close()
    thread.join(10)
    assert not thread.is_alive()
    _nobody_listens(app)


def test_closing_the_app_ends_it(app: App) -> None:
    events = app.sync.events()
    told, thread = _reader(events)
    app.sync.enqueue(plus_one(1))
    assert told.wait(10)
    asyncio.run(app.close())
    thread.join(10)
    assert not thread.is_alive()
    assert app.sync.count() in {0, 1}, "the app can be used again"


def test_one_that_nobody_holds_listens_no_more(app: App) -> None:
    for event in _after_enqueuing(app, app.sync.events()):
        assert event.kind == "queued"
        break
    gc.collect()
    _nobody_listens(app)


def test_events_of_one_job(app: App) -> None:
    mine = app.sync.enqueue(plus_one(1))
    with mine.events() as events:
        app.sync.enqueue(plus_one(2)).cancel()
        mine.cancel()
        assert [(event.kind, event.job_id) for event in [next(events)]] == [("cancelled", mine.id)]


def test_a_tenants_events_are_its_own(app: App) -> None:
    """safe-15"""
    acme = app.sync.tenant("acme")
    with acme.events() as events, app.sync.events(every_tenant=True) as every:
        other = app.sync.enqueue(plus_one(1))
        mine = acme.enqueue(plus_one(2))
        assert next(events).job_id == mine.id
        assert [next(every).job_id, next(every).job_id] == [other.id, mine.id]
    with pytest.raises(BeyondTenant):
        acme.events(every_tenant=True)  # type: ignore[arg-type]


async def test_waiting_on_the_workers_own_loop_is_refused(app: App) -> None:
    async with app.running():
        with app.sync.events() as events, pytest.raises(RuntimeError, match="await the async method"):
            next(events)


def _reader(events: SyncEvents) -> tuple[threading.Event, threading.Thread]:
    """A thread that reads to the end, and a flag that is set at the first event."""
    told = threading.Event()

    def read() -> None:
        for _ in events:
            told.set()

    thread = threading.Thread(target=read)
    thread.start()
    return told, thread


def _after_enqueuing(app: App, events: SyncEvents) -> Iterator[Event]:
    app.sync.enqueue(plus_one(1))
    yield from events


def _nobody_listens(app: App) -> None:
    """What was cancelled in the loop of the blocking face has ended once it answers twice."""
    for _ in range(3):
        app.sync.count()
    assert not app._app_state.events.has_listeners
