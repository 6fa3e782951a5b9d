"""The store is away for a while, by a fake clock: running jobs of healthy workers go on, and nobody is judged by it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from ropewalk import App, Context, State, StoreUnavailable, job
from ropewalk.domain.time import SECOND
from ropewalk.ports.store.claims import ClaimRequest
from ropewalk.testing import FakeRuntime
from ropewalk.worker.worker import Worker

LEASE_SECONDS = 3.0
AGE_SECONDS = 61.0
"""more than the minute for which a loop may fail for another reason"""
RESUME_SECONDS_MAX = 30
"""live-4"""
VERBS = (
    *("claim", "renew", "settle", "note", "sweep", "cascade", "prune", "fold_counters", "clock"),
    *("due_schedules", "steps", "record_step", "submit", "dependencies"),
)

runtime = FakeRuntime()
started: list[str] = []
heard: list[str] = []


@job
async def work(ctx: Context, seconds: float) -> int:
    started.append(ctx.id)
    try:
        await runtime.sleep(seconds)
    except asyncio.CancelledError:
        heard.append(str(ctx.cancellation.reason if ctx.cancellation else None))
        raise
    return ctx.attempt


class Outage:
    """While it lasts, no call of a worker is answered: of all of them, or of one."""

    def __init__(self, app: App) -> None:
        self._store: Any = app._app_state.store
        self.away = False
        self.cut_off: str | None = None
        """the worker that alone is cut off"""
        for verb in VERBS:
            self._wrap(verb)

    def _wrap(self, verb: str) -> None:
        real = getattr(self._store, verb)

        async def maybe(*args: Any, **kwargs: Any) -> Any:
            if self.away or (self.cut_off is not None and self._asks(args) == self.cut_off):
                raise StoreUnavailable("the server does not answer")
            return await real(*args, **kwargs)

        setattr(self._store, verb, maybe)

    def _asks(self, args: tuple[Any, ...]) -> object:
        return getattr(args[0], "owner", args[0]) if args else None

    async def last(self, seconds: float) -> None:
        self.away = True
        await runtime.advance(seconds)
        self.away = False


@pytest.fixture(autouse=True)
def _anew() -> Iterator[None]:
    global runtime  # noqa: PLW0603 # the handler sleeps by the clock of its test
    runtime = FakeRuntime()
    started.clear()
    heard.clear()
    yield


@pytest.fixture(params=["memory", "sqlite"])
async def app(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[App]:
    url = "memory://" if request.param == "memory" else f"sqlite:///{tmp_path}/jobs.db"
    async with App(url, jobs=[work], runtime=runtime) as made:
        yield made


def worker_of(app: App, *, concurrency: int = 6) -> Worker:
    return app.worker(concurrency=concurrency, lease=LEASE_SECONDS, grace=0, poll=1.0)


@pytest.mark.parametrize(
    ("app", "outage_seconds"),
    [("memory", 1), ("memory", 10), ("memory", 40), ("memory", 90), ("sqlite", 10)],
    indirect=["app"],
)
async def test_running_jobs_of_healthy_workers_go_on(
    app: App, outage_seconds: float, caplog: pytest.LogCaptureFixture
) -> None:
    """live-4, safe-7: no attempt and no crash is charged to them, those that end meanwhile are settled afterwards, and
    nobody gives up."""
    outage = Outage(app)
    gave_up: list[str] = []
    async with worker_of(app) as first, worker_of(app) as second:
        for worker in (first, second):
            worker._started.loops.on_give_up = lambda _, phase: gave_up.append(phase)
        await runtime.advance(AGE_SECONDS)
        handles = await app.enqueue_many(work(seconds=seconds) for seconds in (2, 15, 45, 100) for _ in range(3))
        await runtime.advance(1)
        assert len(started) == 12
        with caplog.at_level(logging.DEBUG, "ropewalk"):
            await outage.last(outage_seconds)
        later = await app.enqueue(work(seconds=0))
        await runtime.advance(RESUME_SECONDS_MAX)
        assert (await later.status()).state is State.COMPLETED
        assert first.ready
        await runtime.advance(max(0, 110 - outage_seconds - RESUME_SECONDS_MAX))
        for handle in handles:
            assert [entry.kind for entry in await app.history(handle.id)] == ["queued", "started", "complete"]
            assert (await handle.status()).state is State.COMPLETED
        assert (gave_up, heard, first.refused, second.refused) == ([], [], 0, 0)
    told = [record for record in caplog.records if record.name == "ropewalk"]
    assert len(told) <= 2 * (1 + outage_seconds // 30), "a line now and then, for each worker of the process"
    assert not any(record.exc_info for record in told)


async def test_a_holder_has_time_to_come_back_before_others_judge_it(app: App) -> None:
    """The others reached the store two seconds earlier, and saw that its lease had run out."""
    outage = Outage(app)
    async with worker_of(app) as first:
        handle = await app.enqueue(work(seconds=40))
        await runtime.advance(1)
        async with worker_of(app) as second:
            await runtime.advance(10)
            await outage.last(10)
            outage.cut_off = first.id
            await runtime.advance(2)
            outage.cut_off = None
            await runtime.advance(40)
            assert await handle.result() == 1
            assert (first.settled, second.settled, heard) == (1, 0, [])


async def test_a_worker_that_alone_is_cut_off_loses_its_jobs(app: App) -> None:
    """live-2 for the others, who were in contact all the time; its handler hears the true reason when it may ask."""
    outage = Outage(app)
    async with worker_of(app) as first:
        handle = await app.enqueue(work(seconds=40))
        await runtime.advance(1)
        async with worker_of(app) as second:
            await runtime.advance(10)
            outage.cut_off = first.id
            await runtime.advance(LEASE_SECONDS + 5)
            assert (started, heard) == ([handle.id] * 2, []), "the second runs it, and the first does not know"
            outage.cut_off = None
            await runtime.advance(1)
            assert heard == ["taken_by_another_worker"]
            await runtime.advance(40)
            assert await handle.result() == 2
            assert (first.settled, second.settled) == (0, 1)


async def test_a_worker_that_starts_when_everybody_else_is_dead_takes_their_jobs(app: App) -> None:
    """live-2."""
    handle = await app.enqueue(work(seconds=0))
    request = ClaimRequest(
        owner="dead",
        types={"work": round(LEASE_SECONDS * SECOND)},
        slots=1,
        limit=1,
        first_ticket=1,
        started_upto=1,
    )
    assert len((await app._app_state.store.claim(request)).jobs) == 1
    await runtime.advance(LEASE_SECONDS)
    async with worker_of(app):
        await runtime.advance(5)
        assert (await handle.status()).state is State.COMPLETED


async def test_renewals_that_are_refused_for_another_reason_end_the_handler_when_its_lease_is_over(app: App) -> None:
    async with worker_of(app):
        await app.enqueue(work(seconds=60))
        await runtime.advance(1)
        store: Any = app._app_state.store

        async def broken(*_: Any) -> Any:
            raise RuntimeError("a defect")

        store.renew = broken
        await runtime.advance(LEASE_SECONDS + 1)
        assert heard == ["store_error"]
        del store.renew


async def test_the_wait_for_a_store_is_told_once(app: App, caplog: pytest.LogCaptureFixture) -> None:
    outage = Outage(app)
    async with worker_of(app):
        await runtime.advance(10)
        with caplog.at_level(logging.INFO, "ropewalk"):
            await outage.last(20)
            await runtime.advance(10)
        lines = [record.getMessage() for record in caplog.records if record.name == "ropewalk"]
    assert len(lines) == 2
    assert "tries again: the server does not answer" in lines[0]
    assert "the store answers again" in lines[1]


async def test_an_error_without_a_message_is_named(app: App, caplog: pytest.LogCaptureFixture) -> None:
    app._app_state.events.loop_failed(TimeoutError(), "heartbeat")
    assert caplog.messages == ["error in heartbeat: TimeoutError"]
