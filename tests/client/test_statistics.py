"""O4: statistics through an app and its worker."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from ropewalk import Abort, App, Context, InvalidInput, Retention, State, job
from ropewalk.domain.time import DAY, MINUTE, Span
from ropewalk.ports.store.capabilities import STATISTICS
from ropewalk.testing import FakeRuntime
from ropewalk.worker.services import maintenance
from ropewalk.worker.services.maintenance import CounterFolderConfig
from tests.apps import MakeApp, on_embedded_stores


@job
async def add(a: int, b: int) -> int:
    return a + b


@job(queue="mail")
async def send(to: str) -> None:
    raise Abort(f"{to!r} is no address")


@job
async def nap(ctx: Context) -> None:
    await ctx.resource(FakeRuntime).sleep(0.02)


async def test_what_a_worker_did_is_told(make_app: MakeApp) -> None:
    """O4: by type and queue, of one tenant, from code that awaits and code that blocks."""
    app = make_app(add, send)
    async with app.running() as worker:
        await app.enqueue_many([add(n, b=1) for n in range(5)])
        await app.enqueue(send("bob"))
        await app.tenant("acme").enqueue(add(1, b=1))
        await asyncio.wait_for(worker.idle(), 20)
        told = await app.stats()
        of_type, of_queue = await app.stats(type=add), await app.stats(queue="mail", by="queue")
        of_acme = await app.tenant("acme").stats()
        blocking = await asyncio.to_thread(app.sync.stats, last=timedelta(minutes=5), slices=5)
    assert (told.flow.submitted, told.flow.completed, told.flow.failed) == (6, 5, 1)
    assert [(share.type, share.queue, share.flow.finished) for share in told.shares] == [
        ("add", None, 5),
        ("send", None, 1),
    ]
    assert told.states == {State.COMPLETED: 5, State.FAILED: 1}
    assert (of_type.flow.completed, of_queue.flow.failed, of_acme.flow.completed) == (5, 1, 1)
    assert (blocking.flow.finished, blocking.slice_us) == (6, MINUTE)


@on_embedded_stores
async def test_a_handler_runs_from_where_it_begins(make_app: MakeApp) -> None:
    """O4: what a worker has at hand for a free slot waits; how long its results take to be accepted is neither."""
    runtime = FakeRuntime()

    @asynccontextmanager
    async def lifespan(_: App) -> AsyncGenerator[FakeRuntime]:
        yield runtime

    app = make_app(nap, runtime=runtime, lifespan=lifespan)
    async with app:
        await app.enqueue_many([nap() for _ in range(20)])
        async with app.worker(concurrency=1):
            while (await app.stats()).flow.completed < 20:
                await runtime.advance(seconds=0.01)
            flow = (await app.stats()).flow
    assert (flow.run.count, round(flow.run.mean_us, -1), round(flow.run.max_us, -1)) == (20, 20_000, 20_000)
    assert flow.wait.max_us >= 19 * 20_000


async def test_a_stretch_of_the_past(make_app: MakeApp) -> None:
    """O4: before anything happened, nothing did."""
    app = make_app(add)
    await app.enqueue(add(1, b=2))
    before = await app.stats(last=60, until=datetime.now(UTC) - timedelta(hours=3))
    assert (before.flow.submitted, before.states) == (0, {State.SCHEDULED: 1})


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"last": 0}, "last=0 must be more than 0 seconds"),
        ({"last": -1}, "last=-1 is negative"),
        ({"until": datetime(2026, 1, 1)}, "has no time zone"),  # noqa: DTZ001  this is what is refused
        ({"by": "colour"}, "by='colour' must be 'type', 'queue' or 'both'"),
        ({"slices": 0}, "slices=0 must be between 1 and 1,000"),
        ({"slices": 1001}, "slices=1001 must be"),
    ],
)
async def test_what_cannot_be_told_is_refused(make_app: MakeApp, asked: dict[str, Any], message: str) -> None:
    """O4: naming the field, the value and what to do."""
    with pytest.raises(InvalidInput, match=message):
        await make_app(add).stats(**asked)


async def test_a_worker_folds_what_was_counted(make_app: MakeApp, monkeypatch: pytest.MonkeyPatch) -> None:
    """O4: in batches, until nothing is left, and for as long as the app keeps statistics."""
    monkeypatch.setattr(maintenance, "CounterFolderConfig", lambda: CounterFolderConfig(every_seconds=0.01, batch=2))
    app = make_app(add, retention=Retention.of(statistics=timedelta(days=3)))
    for number in range(5):
        await app.enqueue(add(number, b=1))
    store, fold = app._app_state.store, STATISTICS.of(app._app_state.store).fold_counters
    nothing_left, kept = asyncio.Event(), set[Span | None]()

    async def watched(keep_us: Span | None, limit: int) -> int:
        folded = await fold(keep_us, limit)
        kept.add(keep_us)
        if folded == 0:
            nothing_left.set()
        return folded

    monkeypatch.setattr(store, "fold_counters", watched)
    async with app.running() as worker:
        await asyncio.wait_for(worker.idle(), 20)
        nothing_left.clear()
        await asyncio.wait_for(nothing_left.wait(), 20)
    assert await fold(None, 100) == 0
    assert kept == {3 * DAY}
    assert (await app.stats()).flow.completed == 5
