"""Process handlers in a running worker: their worst costs one job its attempts, and nobody else anything."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from ropewalk import App, Backoff, Event, Registry, State
from ropewalk.domain.failure import Category
from tests.runners import deadly, handlers
from tests.runners.conftest import assert_no_children, open_descriptors

TYPES = Registry(handlers.add, handlers.asks, handlers.child, deadly.kills_itself, handlers.pid, deadly.spins)


class Watched:
    """An app, and what it said about its jobs."""

    def __init__(self) -> None:
        self.progressed = asyncio.Event()
        self.app = App("memory://", jobs=[TYPES], on_event=self._hear)

    def _hear(self, event: Event) -> None:
        if event.kind == "progress":
            self.progressed.set()


@pytest.fixture
async def watched() -> AsyncIterator[Watched]:
    before = open_descriptors()
    watched = Watched()
    async with watched.app:
        yield watched
    assert_no_children()
    assert open_descriptors() == before


async def test_a_handler_asks_the_engine_itself(watched: Watched) -> None:
    app = watched.app
    async with app.running():
        handle = await app.enqueue(handlers.asks())
        answers = await handle.result(timeout=20)
        spawned = await app.get(str(answers[2]))
    assert (spawned.parent_id, spawned.arguments) == (handle.id, {"number": 1})
    assert answers[-1] is True


async def test_a_runaway_loop_dies_at_its_timeout_until_its_attempts_are_used_up(watched: Watched) -> None:
    app = watched.app
    async with app.running(concurrency=2):
        await app.enqueue(handlers.pid()).result(timeout=20)  # a warm process
        handle = await app.enqueue(deadly.spins(), timeout=0.5, max_attempts=2, backoff=Backoff.constant(0.01))
        info = await app.wait(handle.id, timeout=20)
        assert (info.state, info.attempt, info.crashes) == (State.DEAD_LETTER, 2, 0)
        failure = await app.failure(handle.id, all_attempts=True)
        assert [each.error.category for each in failure.attempts if each.error] == [Category.TIMEOUT] * 2
        assert await app.enqueue(handlers.add(1, 2)).result(timeout=20) == 3


async def test_a_killer_is_buried_and_its_neighbours_complete(watched: Watched) -> None:
    app = watched.app
    async with app.running(concurrency=4):
        before = await app.enqueue_many(handlers.add(number, 1) for number in range(25))
        killer = await app.enqueue(deadly.kills_itself(), max_attempts=10, max_crashes=3)
        after = await app.enqueue_many(handlers.add(number, 1) for number in range(25, 50))
        totals = [await handle.result(timeout=60) for handle in [*before, *after]]
        info = await app.wait(killer.id, timeout=60)
    assert totals == list(range(1, 51))
    assert (info.state, info.crashes, info.attempt) == (State.DEAD_LETTER, 3, 3)
    assert info.error is not None
    assert info.error.code == "process_died"
    assert "SIGKILL" in info.error.message


async def test_a_forced_cancel_kills(watched: Watched) -> None:
    app = watched.app
    async with app.running():
        handle = await app.enqueue(deadly.spins())
        await asyncio.wait_for(watched.progressed.wait(), 20)
        await handle.cancel(force=True)
        assert (await app.wait(handle.id, timeout=10)).state is State.CANCELLED


async def test_a_stop_gives_the_attempt_back(watched: Watched) -> None:
    app = watched.app
    async with app.worker(grace=0.1):
        handle = await app.enqueue(deadly.spins())
        await asyncio.wait_for(watched.progressed.wait(), 20)
    info = await handle.status()
    assert (info.state, info.attempt, info.crashes) == (State.SCHEDULED, 0, 0)
