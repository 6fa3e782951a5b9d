"""A supervised loop goes on after every error; when it gives up, and from when the time until then counts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from itertools import cycle

import pytest

from ropewalk import StoreUnavailable, UnexpectedExit
from ropewalk.errors import SchemaMismatch
from ropewalk.runtime.supervisor import Backing, Supervisor
from ropewalk.testing.clock import FakeRuntime

HEALTHY_SECONDS = 120.0
BACKING = Backing(first_seconds=0.05, max_seconds=5.0, give_up_seconds=60.0)


class Watched:
    """A supervisor, the errors that it reported, and those that it gave up on."""

    def __init__(self) -> None:
        self.runtime = FakeRuntime()
        self.reported: list[BaseException] = []
        self.gave_up: list[str] = []
        self.successes = 0
        self.runs = 0
        self.supervisor = Supervisor(
            self.runtime, on_error=lambda error, _: self.reported.append(error), backing=BACKING
        )
        self.supervisor.on_give_up = lambda error, phase: self.gave_up.append(f"{phase}: {error}")

    def start(self, fails_with: Callable[[], BaseException | None]) -> None:
        """A loop that does something every second, and then fails with what `fails_with` answers."""

        async def loop() -> None:
            self.runs += 1
            while True:
                error = fails_with()
                if error is not None:
                    raise error
                self.successes += 1
                await self.runtime.sleep(1.0)

        self.supervisor.start("claimer", loop, lambda: self.successes)


@pytest.fixture
async def watched() -> AsyncIterator[Watched]:
    made = Watched()
    yield made
    await made.supervisor.stop()


async def test_the_first_error_of_a_loop_that_was_healthy_for_long_is_no_reason_to_give_up(watched: Watched) -> None:
    errors: Iterator[Exception | None] = iter([*[None] * int(HEALTHY_SECONDS), RuntimeError("once")])
    watched.start(lambda: next(errors, None))
    await watched.runtime.advance(2 * HEALTHY_SECONDS)
    assert [str(error) for error in watched.reported] == ["once"]
    assert watched.gave_up == []
    assert watched.runs == 2


@pytest.mark.parametrize("outage_seconds", [1, 10, 40, 90, 3600])
async def test_an_absent_store_is_waited_for_however_long_it_takes(watched: Watched, outage_seconds: float) -> None:
    begins, ends = HEALTHY_SECONDS, HEALTHY_SECONDS + outage_seconds
    away = StoreUnavailable("away")
    watched.start(lambda: away if begins <= watched.runtime.monotonic() < ends else None)
    await watched.runtime.advance(ends)
    assert watched.gave_up == []
    successes = watched.successes
    await watched.runtime.advance(BACKING.max_seconds + 1)
    assert watched.successes > successes, "it goes on within the longest wait"


async def test_a_loop_that_keeps_failing_for_another_reason_gives_up(watched: Watched) -> None:
    watched.start(lambda: SchemaMismatch("newer") if watched.runtime.monotonic() >= HEALTHY_SECONDS else None)
    await watched.runtime.advance(HEALTHY_SECONDS + BACKING.give_up_seconds)
    assert watched.gave_up == []
    await watched.runtime.advance(2 * BACKING.max_seconds)
    assert watched.gave_up == ["claimer: newer"]


async def test_a_success_in_between_begins_anew(watched: Watched) -> None:
    """Also one within a run that was shorter than the longest wait."""
    outcomes = cycle([None, RuntimeError("often")])
    watched.start(lambda: next(outcomes))
    await watched.runtime.advance(10 * BACKING.give_up_seconds)
    assert len(watched.reported) > 10
    assert watched.gave_up == []


async def test_time_during_which_the_store_was_away_does_not_count_against_a_loop(watched: Watched) -> None:
    def fails_with() -> Exception | None:
        now = watched.runtime.monotonic()
        return StoreUnavailable("away") if now < 2 * BACKING.give_up_seconds else RuntimeError("broken")

    watched.start(fails_with)
    await watched.runtime.advance(3 * BACKING.give_up_seconds - 1)
    assert watched.gave_up == []
    await watched.runtime.advance(3 * BACKING.max_seconds)
    assert watched.gave_up == ["claimer: broken"]


async def test_a_call_that_hangs_is_not_a_success() -> None:
    """A loop without a success of its own to show: only the waits between its errors grow."""
    runtime = FakeRuntime()
    gave_up: list[str] = []
    supervisor = Supervisor(runtime, on_error=lambda *_: None, backing=BACKING)
    supervisor.on_give_up = lambda error, phase: gave_up.append(phase)

    async def hangs() -> None:
        await runtime.sleep(15.0)
        raise RuntimeError("no answer")

    supervisor.start("settler", hangs, lambda: 0)
    await runtime.advance(3 * BACKING.give_up_seconds)
    assert gave_up == ["settler"]
    await supervisor.stop()


async def test_a_loop_in_which_something_raised_cancelled_error_goes_on(watched: Watched) -> None:
    """live-4: nobody cancelled it, so it failed like any other."""
    errors: Iterator[BaseException | None] = iter([None, asyncio.CancelledError()])
    watched.start(lambda: next(errors, None))
    await watched.runtime.advance(10)
    assert [type(error) for error in watched.reported] == [UnexpectedExit]
    assert watched.runs == 2 and watched.successes > 5


async def test_a_loop_whose_task_somebody_cancelled_is_started_again(watched: Watched) -> None:
    """live-4: only the supervisor stops its loops."""

    def cancel_once() -> None:
        if watched.successes == 1:
            watched.successes += 1
            task = asyncio.current_task()
            assert task is not None
            task.cancel()

    watched.start(cancel_once)
    await watched.runtime.advance(10)
    assert ["cancelled" in str(error) for error in watched.reported] == [True]
    assert watched.runs == 2 and watched.successes > 5
    await watched.supervisor.stop()
    await watched.runtime.advance(10)
    assert watched.runs == 2
