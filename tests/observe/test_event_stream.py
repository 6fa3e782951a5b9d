"""O1: `app.events()` hears what this process does, in order, whatever thread it is told in."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator

from ropewalk import App, Event, job
from ropewalk.domain.time import to_datetime
from ropewalk.observe.events import EventHub, event_of
from ropewalk.runtime.system import SystemRuntime
from tests.domain.records import NOW, a_job

KEPT = 10_000


@job
async def fine() -> None: ...


def numbered(number: int) -> Event:
    return event_of(a_job(id=str(number)), "started", NOW)


def tell(hub: EventHub, numbers: range) -> None:
    for number in numbers:
        hub.emit(numbered(number))


async def told_of(events: AsyncGenerator[Event], count: int) -> list[str]:
    async with asyncio.timeout(10):
        return [(await anext(events)).job_id for _ in range(count)]


async def listening(hub: EventHub) -> AsyncGenerator[Event]:
    """From now on: a generator begins only when it is asked for something."""
    events = hub.stream()
    first = asyncio.ensure_future(anext(events))
    while not hub.has_listeners:
        await asyncio.sleep(0)
    hub.emit(numbered(-1))
    assert (await first).job_id == "-1"
    return events


def test_an_event_says_when() -> None:
    """O1: made when asked for, yet a part of it like any other."""
    event = event_of(a_job(), "started", NOW)
    assert event.at == to_datetime(NOW) and f"at={event.at!r}" in repr(event)
    assert event == event_of(a_job(), "started", NOW) != event_of(a_job(), "started", NOW + 1)


async def test_what_a_worker_does_is_heard_in_order() -> None:
    app = App("memory://", jobs=[fine])
    heard: list[str] = []
    all_of_it = asyncio.Event()

    async def listen() -> None:
        async for event in app.events():
            heard.append(event.kind)
            if event.kind == "succeeded":
                all_of_it.set()

    async with app.running(), asyncio.timeout(10):
        listener = asyncio.ensure_future(listen())
        while not app._app_state.events.has_listeners:
            await asyncio.sleep(0)
        await app.enqueue(fine())
        await all_of_it.wait()
        listener.cancel()
    assert heard == ["queued", "started", "succeeded"]


async def test_a_reader_that_falls_behind_loses_the_oldest() -> None:
    hub = EventHub(SystemRuntime(), on_event=None, on_error=None)
    events = await listening(hub)
    tell(hub, range(KEPT + 5))
    assert await told_of(events, 2) == ["5", "6"]


async def test_it_is_told_in_other_threads_too() -> None:
    """Each of them wakes the reader, though one call is made for all that comes until it looks."""
    hub = EventHub(SystemRuntime(), on_event=None, on_error=None)
    events = await listening(hub)
    for numbers in (range(100), range(100, 200)):
        thread = threading.Thread(target=tell, args=(hub, numbers))
        thread.start()
        assert await told_of(events, len(numbers)) == [str(number) for number in numbers]
        thread.join()
    await events.aclose()
    assert not hub.has_listeners
