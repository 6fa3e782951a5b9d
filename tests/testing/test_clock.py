"""The fake clock that users' tests run on."""

from __future__ import annotations

import asyncio
import threading
from datetime import UTC, datetime

import pytest

from ropewalk.domain.time import HOUR, SECOND, to_instant
from ropewalk.errors import InvalidInput
from ropewalk.testing.clock import FakeRuntime


async def test_time_stands_still_until_it_is_advanced() -> None:
    runtime = FakeRuntime(datetime(2031, 5, 1, tzinfo=UTC))
    start = to_instant(datetime(2031, 5, 1, tzinfo=UTC), "start")
    await runtime.settle()
    assert (runtime.now(), runtime.monotonic()) == (start, 0.0)
    await runtime.advance(0.5, minutes=1, hours=2, days=3)
    assert runtime.now() == start + 74 * HOUR + 60 * SECOND + SECOND // 2
    assert runtime.monotonic() == 74 * 3600 + 60.5


async def test_time_only_goes_forward() -> None:
    with pytest.raises(InvalidInput):
        await FakeRuntime().advance(-1)


async def test_sleepers_wake_at_their_own_instant_in_order() -> None:
    runtime = FakeRuntime()
    woken: list[tuple[str, float]] = []

    async def sleeper(name: str, *seconds: float) -> None:
        for each in seconds:
            await runtime.sleep(each)
            woken.append((name, runtime.monotonic()))

    for name, *seconds in (("late", 5), ("often", 2, 2, 2), ("never", 100)):
        runtime.spawn(sleeper(str(name), *map(float, seconds)), name=str(name))
    await runtime.settle()
    assert woken == []
    await runtime.advance(10)
    assert woken == [("often", 2.0), ("often", 4.0), ("late", 5.0), ("often", 6.0)]
    assert runtime.monotonic() == 10.0


async def test_a_woken_task_can_wake_others_before_time_goes_on() -> None:
    runtime = FakeRuntime()
    seen: list[float] = []
    rung = asyncio.Event()

    async def first() -> None:
        await runtime.sleep(1)
        rung.set()

    async def second() -> None:
        await rung.wait()
        seen.append(runtime.monotonic())

    runtime.spawn(first(), name="first")
    runtime.spawn(second(), name="second")
    await runtime.settle()
    await runtime.advance(60)
    assert seen == [1.0]


async def test_a_cancelled_sleeper_is_forgotten() -> None:
    runtime = FakeRuntime()
    woken: list[str] = []

    async def sleeper() -> None:
        await runtime.sleep(1)
        woken.append("no")

    task = runtime.spawn(sleeper(), name="sleeper")
    await runtime.settle()
    task.cancel()
    await asyncio.wait_for(task.finished(), 5)
    await runtime.advance(5)
    assert woken == []


async def test_sleeping_no_time_lets_others_run() -> None:
    runtime = FakeRuntime()
    ran = asyncio.Event()
    asyncio.get_running_loop().call_soon(ran.set)
    await runtime.sleep(0)
    assert ran.is_set()


async def test_timers() -> None:
    runtime = FakeRuntime()
    rung: list[float] = []
    runtime.after(2, lambda: rung.append(runtime.monotonic()))
    runtime.after(3, lambda: rung.append(-1.0)).cancel()
    await runtime.advance(1.999_999)
    assert rung == []
    await runtime.advance(5)
    assert rung == [2.0]


async def test_a_sleeper_on_another_loop_wakes_on_its_own() -> None:
    runtime = FakeRuntime()
    asleep = asyncio.Event()
    here = asyncio.get_running_loop()

    async def elsewhere() -> float:
        here.call_soon_threadsafe(asleep.set)
        await runtime.sleep(3)
        return runtime.monotonic()

    waiting = asyncio.ensure_future(asyncio.to_thread(asyncio.run, elsewhere()))
    await asyncio.wait_for(asleep.wait(), 5)
    while not waiting.done():
        await runtime.advance(1)
    assert await waiting >= 3.0


def test_chance_and_ids_are_the_same_every_time() -> None:
    def some(seed: int) -> list[object]:
        runtime = FakeRuntime(seed=seed)
        return [runtime.random(), runtime.new_id(), runtime.token(), runtime.random()]

    assert some(1) == some(1)
    assert some(1) != some(2)


async def test_later_ids_sort_later() -> None:
    runtime = FakeRuntime()
    ids = [runtime.new_id() for _ in range(10_000)]
    await runtime.advance(0.001)
    ids += [runtime.new_id() for _ in range(10_000)]
    assert ids == sorted(set(ids))


async def test_tasks_and_threads_stay_on_the_loop() -> None:
    runtime = FakeRuntime()
    loop = asyncio.get_running_loop()
    seen: list[object] = []

    async def main() -> None:
        seen.append(asyncio.get_running_loop())
        raise RuntimeError("ends badly")

    for task in (runtime.spawn(main(), name="task"), runtime.thread(main, name="thread")):
        await asyncio.wait_for(task.finished(), 5)
    assert seen == [loop, loop]


async def test_blocking_calls_leave_the_loop() -> None:
    """A handler in a thread may wait for the loop: inline it would wait for itself."""
    assert await FakeRuntime().in_thread(threading.get_ident) != threading.get_ident()


async def test_a_thread_that_never_returns_does_not_keep_the_program_alive() -> None:
    assert await FakeRuntime().in_thread(lambda: threading.current_thread().daemon)
