"""A job is enqueued and its handler runs: values, context, options."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from ropewalk import App, Backoff, Context, Event, Filter, JobFailed, Priority, Result, State, current, job
from ropewalk.errors import InvalidInput, NeverEnqueued, NotFound, UnknownJobType, WaitTimeout
from tests.apps import MakeApp

ran: list[object] = []


@pytest.fixture(autouse=True)
def _forget() -> None:
    ran.clear()


@job
async def add(a: int, b: int = 2) -> int:
    return a + b


@job
def shout(text: str) -> str:
    ran.append(threading.current_thread().name)
    return text.upper()


@job
async def note(name: str) -> None:
    ran.append(name)


@job
async def introspect(ctx: Context, when: datetime) -> dict[str, object]:
    assert current() is ctx
    return {
        "id": ctx.id,
        "attempt": ctx.attempt,
        "tags": dict(ctx.tags),
        "tenant": ctx.tenant,
        "queue": ctx.queue_name,
        "when": when.isoformat(),
    }


@job
async def wrapped(ctx: Context) -> Result[int, int]:
    return ctx.result(7)


@job
async def careless(ctx: Context) -> int:
    ctx.result(7)
    return 1


@job
async def parent(ctx: Context, children: int) -> list[str]:
    if ctx.attempt == 1:
        await ctx.spawn(note(name="child-0"))
        raise RuntimeError("first attempt dies after its first spawn")
    return [await ctx.spawn(note(name=f"child-{number}")) for number in range(children)]


@job(max_attempts=3, backoff=Backoff.constant(0))
async def resumes(ctx: Context) -> int:
    done = ctx.last_checkpoint
    done = done if isinstance(done, int) else 0
    ran.append(done)
    await ctx.checkpoint(done + 1)
    if done < 2:
        raise RuntimeError("again")
    return done


async def test_a_job_runs_and_its_result_is_typed(make_app: MakeApp) -> None:
    app = make_app(add)
    async with app.running():
        assert await app.enqueue(add(1, b=2)).result(timeout=5) == 3
        assert await app.enqueue(add(1)).result(timeout=5) == 3


async def test_sync_handlers_run_in_threads(make_app: MakeApp) -> None:
    app = make_app(shout)
    async with app.running():
        assert await app.enqueue(shout(text="hey")).result(timeout=5) == "HEY"
    assert ran != [threading.current_thread().name]


async def test_by_name(make_app: MakeApp) -> None:
    app = make_app(add)
    async with app.running():
        assert await app.enqueue("add", {"a": 20, "b": 22}).result(timeout=5) == 42
        with pytest.raises(UnknownJobType):
            await app.enqueue("ad", {"a": 1})
        with pytest.raises(InvalidInput):
            await app.enqueue("add", {"a": "one"})


async def test_context_tells_about_the_job(make_app: MakeApp) -> None:
    app = make_app(introspect)
    async with app.running():
        when = datetime(2026, 1, 2, tzinfo=UTC)
        handle = await app.enqueue(introspect(when=when), tags={"k": "v"}, queue="other")
        told = await handle.result(timeout=5)
    assert told == {
        "id": handle.id,
        "attempt": 1,
        "tags": {"k": "v"},
        "tenant": "default",
        "queue": "other",
        "when": when.isoformat(),
    }


async def test_results_by_context_and_strict_return(make_app: MakeApp) -> None:
    app = make_app(wrapped, careless)
    async with app.running():
        assert await app.enqueue(wrapped()).result(timeout=5) == 7
        with pytest.raises(JobFailed, match="not returned"):
            await app.enqueue(careless(), max_attempts=1).result(timeout=5)


async def test_many_in_order(make_app: MakeApp) -> None:
    app = make_app(add)
    async with app.running():
        handles = await app.enqueue_many(add(number) for number in range(50))
        assert [await handle.result(timeout=5) for handle in handles] == [number + 2 for number in range(50)]


async def test_priority_orders_what_waits(make_app: MakeApp) -> None:
    app = make_app(note)
    async with app:
        for name, priority in (("low", Priority.LOW), ("normal", 0), ("high", Priority.HIGH)):
            await app.enqueue(note(name=name), priority=priority)
        async with app.worker(concurrency=1) as worker:
            await asyncio.wait_for(worker.idle(), 10)
    assert ran == ["high", "normal", "low"]


async def test_a_delayed_job_waits(make_app: MakeApp) -> None:
    app = make_app(note)
    async with app.running():
        began = asyncio.get_running_loop().time()
        handle = await app.enqueue(note(name="later"), delay=0.3)
        assert (await handle.status()).state is State.DELAYED
        await handle.result(timeout=5)
        assert asyncio.get_running_loop().time() - began >= 0.25


async def test_skip_queue_runs_at_once_and_is_recorded(make_app: MakeApp) -> None:
    app = make_app(add)
    async with app.running():
        handle = await app.enqueue(add(1), skip_queue=True)
        assert await handle.result(timeout=5) == 3
        kinds = [entry.kind for entry in await app.history(handle.id)]
    assert kinds == ["queued", "started", "complete"]


async def test_skip_queue_respects_what_the_worker_serves(make_app: MakeApp) -> None:
    app = make_app(add)
    async with app, app.worker(tenants=["acme"], queues=["default"]):
        other_tenant = await app.enqueue(add(1), skip_queue=True)
        other_queue = await app.tenant("acme").enqueue(add(1), skip_queue=True, queue="elsewhere")
        mine = await app.tenant("acme").enqueue(add(1), skip_queue=True)
        assert await mine.result(timeout=5) == 3
        assert (await other_tenant.status()).state is State.SCHEDULED
        assert (await other_queue.status()).state is State.SCHEDULED


async def test_handles_belong_to_the_tenant_of_the_job(make_app: MakeApp) -> None:
    app = make_app(add)
    async with app.running():
        one = await app.enqueue(add(1), tenant="acme")
        (two,) = await app.enqueue_many([add(1)], tenant="acme")
        assert [await one.result(timeout=5), await two.result(timeout=5)] == [3, 3]


async def test_spawned_children_are_never_doubled(make_app: MakeApp) -> None:
    app = make_app(parent, note)
    async with app.running():
        handle = await app.enqueue(parent(children=3), backoff=Backoff.constant(0))
        children = await handle.result(timeout=5)
        assert len(set(children)) == 3
        for child in children:
            info = await app.wait(child, timeout=5)
            assert (info.parent_id, info.group_id) == (handle.id, handle.group_id)
        assert await app.count(Filter(parent_id=handle.id)) == 3
    assert sorted(map(str, ran)) == ["child-0", "child-1", "child-2"]


async def test_checkpoints_survive_attempts(make_app: MakeApp) -> None:
    app = make_app(resumes)
    async with app.running():
        assert await app.enqueue(resumes()).result(timeout=5) == 2
    assert ran == [0, 1, 2]


class Pool:
    opened = 0


@job
async def uses_pool(ctx: Context) -> int:
    return ctx.resource(Pool).opened


async def test_lifespan_resources(make_app: MakeApp) -> None:
    @asynccontextmanager
    async def lifespan(_: App) -> AsyncIterator[Pool]:
        pool = Pool()
        pool.opened = 1
        yield pool
        ran.append("closed")

    app = make_app(uses_pool, lifespan=lifespan)
    async with app.running():
        assert await app.enqueue(uses_pool()).result(timeout=5) == 1
        assert ran == []
    assert ran == ["closed"]


async def test_events_tell_the_story(make_app: MakeApp) -> None:
    heard: list[Event] = []
    app = make_app(add, on_event=heard.append)
    async with app.running():
        await app.enqueue(add(1)).result(timeout=5)
    assert [event.kind for event in heard] == ["queued", "started", "succeeded"]


async def test_a_raising_hook_disturbs_nothing(make_app: MakeApp) -> None:
    reported: list[str] = []

    def hook(_: Event) -> None:
        raise RuntimeError("broken hook")

    app = make_app(add, on_event=hook, on_error=lambda error, phase: reported.append(f"{phase}: {error}"))
    async with app.running():
        assert await app.enqueue(add(1)).result(timeout=5) == 3
    assert set(reported) == {"on_event: broken hook"}


async def test_waiting_times_out_and_misses(make_app: MakeApp) -> None:
    app = make_app(add)
    async with app:
        handle = await app.enqueue(add(1))
        with pytest.raises(WaitTimeout):
            await handle.result(timeout=0.05)
        with pytest.raises(NotFound):
            await app.handle("no-such-id", add).result(timeout=5)


@pytest.mark.allow_never_enqueued
async def test_a_dropped_enqueue_warns(make_app: MakeApp) -> None:
    app = make_app(add)
    with pytest.warns(NeverEnqueued, match=r"enqueue\(add\) at .*test_running.py"):
        app.enqueue(add(1))
    async with app:
        assert await app.count() == 0


async def test_enqueuing_works_as_a_task_and_twice(make_app: MakeApp) -> None:
    app = make_app(add)
    async with app:
        enqueuing = app.enqueue(add(1))
        first = await asyncio.wait_for(enqueuing, 5)
        assert await enqueuing is first
        one, two = await asyncio.gather(app.enqueue(add(1)), app.enqueue(add(2)))
        assert one.id != two.id
        async with asyncio.TaskGroup() as group:
            group.create_task(app.enqueue(add(3)))
        assert await app.count() == 4


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"concurrency": 0}, "concurrency=0"),
        ({"concurrency": 2.5}, "whole number"),
        ({"queues": []}, "queues is empty"),
        ({"tenants": []}, "tenants is empty"),
        ({"lease": 0.1}, "lease=0.1"),
    ],
)
async def test_a_worker_that_cannot_work_is_refused(make_app: MakeApp, options: dict[str, Any], told: str) -> None:
    with pytest.raises(InvalidInput, match=told):
        make_app(add).worker(**options)


async def test_a_far_future_and_a_past_time(make_app: MakeApp) -> None:
    app = make_app(add)
    async with app:
        far = await app.enqueue(add(1), run_at=datetime.now(UTC) + timedelta(days=3650))
        past = await app.enqueue(add(1), run_at=datetime.now(UTC) - timedelta(days=1), delay=100)
        assert (await far.status()).state is State.DELAYED
        assert (await past.status()).state is State.SCHEDULED
