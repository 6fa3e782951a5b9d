"""R14: a hook says how long to wait before the next poll; an alarm tells when a worker cannot keep up."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from ropewalk import App, Event, job
from ropewalk.policies import AdaptiveDelay, BacklogAlarm, Load
from ropewalk.testing.clock import FakeRuntime

CLOCK = FakeRuntime()
starts: list[float] = []
events: list[Event] = []
reported: list[str] = []


@job
async def note() -> None:
    starts.append(CLOCK.monotonic())


@job(max_attempts=1)
async def fail() -> None:
    starts.append(CLOCK.monotonic())
    raise ValueError("as always")


@job
async def take(seconds: float) -> None:
    await CLOCK.sleep(seconds)


@pytest.fixture
async def app() -> AsyncIterator[App]:
    for each in (starts, events, reported):
        each.clear()
    app = App(
        "memory://",
        jobs=[note, fail, take],
        runtime=CLOCK,
        on_event=events.append,
        on_error=lambda error, phase: reported.append(f"{phase}: {error}"),
    )
    yield app
    await app.close()


async def test_it_is_asked_before_every_poll_and_waited_for(app: App) -> None:
    loads: list[Load] = []

    async def slowly(load: Load) -> float:
        await asyncio.sleep(0)
        loads.append(load)
        return 5

    began = CLOCK.monotonic()
    await app.enqueue_many(note() for _ in range(3))
    async with app.worker(concurrency=2, poll=1, backpressure=slowly, grace=0) as worker:
        await CLOCK.advance(4)
        assert starts == []
        assert worker.ready is False, "it has not polled at all yet"
        await CLOCK.advance(8)
        assert worker.ready, "it holds off"
    assert [at - began for at in starts] == [5, 5, 10]
    first, second = loads[:2]
    assert (first.slots, first.running, first.buffered, first.settled, first.last_claim) == (2, 0, 0, 0, 0)
    assert (second.settled, second.failed, second.last_claim) == (2, 0, 2)
    assert (first.settle_seconds, second.settle_seconds, second.handler_seconds) == (None, 0.0, 0.0)


async def test_a_worker_that_holds_off_stops_at_once(app: App) -> None:
    async with asyncio.timeout(20):
        async with app.worker(backpressure=lambda _: 3600):
            await CLOCK.advance(1)


@pytest.mark.parametrize("answer", [ValueError("broken"), "soon", -1])
async def test_a_hook_that_fails_is_reported_and_ignored(app: App, answer: object) -> None:
    def broken(_: Load) -> float:
        if isinstance(answer, Exception):
            raise answer
        return answer  # type: ignore[return-value]  # pyright: ignore[reportReturnType]  what is refused

    await app.enqueue(note())
    async with app.worker(backpressure=broken) as worker:
        await worker.idle()
    assert len(starts) == 1
    assert {each.split(":")[0] for each in reported} == {"backpressure"}


async def test_none_and_a_timedelta_are_answers_too(app: App) -> None:
    await app.enqueue(note())
    async with app.worker(backpressure=lambda _: None) as worker:
        await worker.idle()
    assert (len(starts), reported) == (1, [])


async def test_an_adaptive_delay_slows_down_a_worker_whose_jobs_fail(app: App) -> None:
    began = CLOCK.monotonic()
    policy = AdaptiveDelay(failures=0.5, first=1, step=1, max=30)
    await app.enqueue_many(fail() for _ in range(5))
    async with app.worker(concurrency=1, backpressure=policy):
        await CLOCK.advance(60)
    assert [at - began for at in starts] == [0, 1, 3, 7, 15], "each time for twice as long"
    async with app.worker(concurrency=1, backpressure=policy) as worker:
        await app.enqueue(note())
        await worker.idle()
    assert starts[-1] - began == 60, "another worker has a delay of its own"


async def test_the_alarm_goes_off_once_and_is_called_off(app: App) -> None:
    await app.enqueue(take(1), id="first")
    await CLOCK.advance(61)
    await app.enqueue_many(take(1) for _ in range(3))
    async with app.worker(concurrency=2, backlog_alarm=BacklogAlarm(older_than=60)):
        await CLOCK.advance(10)
    alarms = [event for event in events if event.kind.startswith("backlog")]
    assert [event.kind for event in alarms] == ["backlog", "backlog_over"]
    assert (alarms[0].job_id, alarms[0].message) == ("first", "waited 61.0 s")


async def test_no_alarm_while_there_are_free_slots(app: App) -> None:
    await app.enqueue(take(1))
    await CLOCK.advance(61)
    async with app.worker(concurrency=2, backlog_alarm=BacklogAlarm(older_than=60)):
        await CLOCK.advance(10)
    assert [event for event in events if event.kind.startswith("backlog")] == []
