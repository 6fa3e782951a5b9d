"""A function of a schedule that takes long, or never ends, holds up neither the worker nor another schedule."""

from __future__ import annotations

import asyncio
import threading
from datetime import datetime, timedelta

from ropewalk import Event, schedule
from ropewalk.testing import FakeRuntime
from tests.apps import MakeApp, embedded_store_kind
from tests.client.schedules import Clock, letter, report

store_kind = embedded_store_kind


async def never(fire: datetime) -> None:
    await asyncio.Event().wait()


async def test_a_function_that_never_ends_holds_up_no_other_schedule(make_app: MakeApp) -> None:
    """It is given up after 30 seconds, reported, and tried again half a minute later, like one that raises."""
    clock = Clock(
        make_app,
        schedules=[schedule("a-hangs", every=10, run=never), schedule("b-good", every=10, job=report())],
    )
    async with clock.app.running():
        await clock.pass_by(seconds=35)
        assert clock.told == []
        await clock.pass_by(seconds=10)
        [(phase, message)] = clock.told
        assert (phase, "30 s" in message, "never" in message) == ("schedule a-hangs", True, True)
        await clock.pass_by(seconds=65.5)
        assert len(clock.told) == 2
        assert len((await clock.app.search()).jobs) == 11


async def test_a_slow_function_still_makes_its_job(make_app: MakeApp) -> None:
    runtime: FakeRuntime

    async def slow(fire: datetime) -> object:
        await runtime.sleep(5)
        return letter("slow")

    clock = Clock(make_app, schedules=[schedule("slow", every=10, run=slow)])  # type: ignore[arg-type]
    runtime = clock.runtime
    async with clock.app.running():
        await clock.pass_by(seconds=16)
        assert [job.result for job in (await clock.app.search()).jobs] == ["slow"]
        assert clock.told == []


async def test_a_function_that_blocks_holds_up_no_other_schedule(make_app: MakeApp) -> None:
    """It runs in a thread: neither the worker's event loop nor another schedule waits for it."""
    released = threading.Event()
    fired: asyncio.Queue[Event] = asyncio.Queue()

    def blocks(fire: datetime) -> None:
        released.wait(60)

    def soon(after: datetime) -> datetime:
        return after + timedelta(seconds=0.2)

    app = make_app(
        report,
        schedules=[schedule("a-blocks", next=soon, run=blocks), schedule("b-good", every=0.5, job=report())],
        on_event=lambda event: fired.put_nowait(event) if event.kind == "schedule_fired" else None,
    )
    try:
        async with app.running(), asyncio.timeout(30):
            assert [(await fired.get()).schedule for _ in range(3)] == ["b-good"] * 3
    finally:
        released.set()


async def test_fires_a_function_puts_too_close_together_are_refused(make_app: MakeApp) -> None:
    """At least 0.1 s, as for every=: a function that is wrong must not fill the store."""

    def micro(after: datetime) -> datetime:
        return after + timedelta(microseconds=1)

    clock = Clock(
        make_app, schedules=[schedule("micro", next=micro, job=report()), schedule("good", every=10, job=report())]
    )
    async with clock.app.running():
        await clock.pass_by(seconds=25)
        [(phase, message)] = clock.told
        assert (phase, "micro" in message, "0.1 s" in message) == ("schedule micro", True, True)
        assert len((await clock.app.search()).jobs) == 2
