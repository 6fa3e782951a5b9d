"""When a worker may judge others: after three seconds of unbroken contact with the store, and never in a late call."""

from __future__ import annotations

import pytest

from ropewalk.domain.time import SECOND
from ropewalk.testing.clock import FakeRuntime
from ropewalk.worker.contact import (
    BEAT_SECONDS_MAX,
    SILENT_SECONDS_MAX,
    SLOW_SECONDS,
    STEADY_SECONDS,
    StoreContact,
)

STEP_SECONDS = 0.5


@pytest.fixture
def runtime() -> FakeRuntime:
    return FakeRuntime()


async def pass_time(
    contact: StoreContact, runtime: FakeRuntime, seconds: float, *, calls: bool = True, beats: bool = True
) -> None:
    for _ in range(round(seconds / STEP_SECONDS)):
        await runtime.advance(STEP_SECONDS)
        if beats:
            contact.beat()
        if calls:
            contact.answered("claim", runtime.monotonic(), runtime.now())


async def steady(runtime: FakeRuntime) -> StoreContact:
    contact = StoreContact(runtime)
    await pass_time(contact, runtime, STEADY_SECONDS)
    assert contact.steady
    return contact


async def test_a_worker_that_has_just_started_judges_nobody(runtime: FakeRuntime) -> None:
    contact = StoreContact(runtime)
    await pass_time(contact, runtime, STEADY_SECONDS - STEP_SECONDS)
    assert (contact.steady, contact.take_back_until()) == (False, 0)
    await pass_time(contact, runtime, STEP_SECONDS)
    assert contact.steady
    assert contact.take_back_until() == runtime.now() + SLOW_SECONDS * SECOND


async def test_a_store_in_the_same_process_was_never_away(runtime: FakeRuntime) -> None:
    contact = StoreContact(runtime, in_process=True)
    contact.answered("clock", runtime.monotonic(), runtime.now())
    assert contact.take_back_until() > runtime.now()


async def test_after_an_outage_the_time_counts_from_the_first_answer(runtime: FakeRuntime) -> None:
    contact = await steady(runtime)
    contact.failed()
    assert not contact.steady
    await pass_time(contact, runtime, 10, calls=False)
    contact.answered("claim", runtime.monotonic(), runtime.now())
    await pass_time(contact, runtime, STEADY_SECONDS - STEP_SECONDS)
    assert contact.take_back_until() == 0
    await pass_time(contact, runtime, STEP_SECONDS)
    assert contact.steady


async def test_it_tells_how_long_the_store_was_away(runtime: FakeRuntime) -> None:
    told: list[float] = []
    contact = StoreContact(runtime, on_back=told.append)
    for _ in range(3):
        contact.failed()
        await pass_time(contact, runtime, 2, calls=False)
    contact.answered("renew", runtime.monotonic())
    contact.answered("renew", runtime.monotonic())
    assert told == [6]


async def test_a_call_that_took_long_may_have_waited_for_the_end_of_an_outage(runtime: FakeRuntime) -> None:
    contact = await steady(runtime)
    asked_at = runtime.monotonic()
    await pass_time(contact, runtime, 1.5, calls=False)
    contact.answered("claim", asked_at, runtime.now())
    assert not contact.steady
    await pass_time(contact, runtime, STEADY_SECONDS)
    assert contact.steady


async def test_a_store_that_always_takes_long_is_no_outage(runtime: FakeRuntime) -> None:
    """live-2: where every call waits for locks, jobs of dead workers still come back."""
    contact = await steady(runtime)
    for _ in range(4):
        asked_at = runtime.monotonic()
        await pass_time(contact, runtime, 1.5, calls=False)
        contact.answered("claim", asked_at, runtime.now())
    assert contact.steady
    assert contact.take_back_until() >= runtime.now() + 1.5 * SECOND, "its next call may take as long, too"


async def test_nobody_knows_what_happened_while_nothing_was_asked(runtime: FakeRuntime) -> None:
    contact = await steady(runtime)
    await pass_time(contact, runtime, SILENT_SECONDS_MAX + STEP_SECONDS, calls=False)
    assert not contact.steady
    contact.answered("claim", runtime.monotonic(), runtime.now())
    assert not contact.steady
    await pass_time(contact, runtime, STEADY_SECONDS)
    assert contact.steady


async def test_a_process_that_was_frozen_judges_nobody_when_it_thaws(runtime: FakeRuntime) -> None:
    """Whichever of its threads runs first: its own leases may have run out, and it has to ask for them first."""
    contact = await steady(runtime)
    await runtime.advance(BEAT_SECONDS_MAX + STEP_SECONDS)
    assert not contact.steady
    contact.beat()
    contact.answered("claim", runtime.monotonic(), runtime.now())
    assert not contact.steady
    await pass_time(contact, runtime, STEADY_SECONDS)
    assert contact.steady


async def test_a_heartbeat_without_an_answer_keeps_it_from_judging(runtime: FakeRuntime) -> None:
    """Claims are answered on another connection than renewals: others may hang there, too."""
    contact = await steady(runtime)
    await pass_time(contact, runtime, BEAT_SECONDS_MAX + STEP_SECONDS, beats=False)
    assert not contact.steady
