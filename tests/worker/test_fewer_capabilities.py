"""A worker on a store that can do less: what it can do works, what needs more fails for good and says so."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from ropewalk import App, Context, JobFailed, Limit, Logs, Result, Unsupported, job, schedule
from ropewalk.ports.store.capabilities import LIMITS, LOGS, WORKFLOWS, Capability
from ropewalk.runtime.system import SystemRuntime
from tests.backends.fewer import FewerStore


def app_on(*declared: Capability[Any], **settings: Any) -> tuple[App, FewerStore]:
    store = FewerStore(SystemRuntime(), declared)
    return App(store=store, **settings), store


@job
async def add(a: int, b: int) -> int:
    return a + b


@job
async def talk(ctx: Context) -> None:
    ctx.log.info("hello")


@job
async def flaky(ctx: Context) -> int:
    if ctx.attempt == 1:
        raise RuntimeError("not yet")
    return ctx.attempt


ran: list[str] = []


@job
async def spawns(ctx: Context) -> None:
    await ctx.spawn(add(1, 2))


@job
async def steps(ctx: Context) -> None:
    async def charge() -> None:
        ran.append("charge")

    await ctx.step("charge", charge)


@job
async def sleeps(ctx: Context) -> None:
    await ctx.sleep(3600)


@job
async def waits(ctx: Context) -> None:
    await ctx.wait_for("go")


@job
async def queues(ctx: Context) -> Result[None, int]:
    return ctx.queue(add(1, 2))


@job
async def continues(ctx: Context) -> Result[int, int]:
    return ctx.continue_with(add(1, 2))


@job
async def contributes(ctx: Context) -> Result[int, int]:
    return ctx.result(1, append="sum")


@job
def spawns_in_a_thread(ctx: Context) -> None:
    ctx.sync.spawn(add(1, 2))


@job(executor="process")
def spawns_in_a_process(ctx: Context) -> None:
    ctx.sync.spawn(add(1, 2))


@job
async def returns(ctx: Context) -> Result[int, int]:
    return ctx.result(7)


WORKFLOW_JOBS = (
    spawns,
    steps,
    sleeps,
    waits,
    queues,
    continues,
    contributes,
    spawns_in_a_thread,
    spawns_in_a_process,
)


async def test_plain_jobs_run_are_retried_and_heard_of() -> None:
    app, _ = app_on(jobs=[add, flaky, returns])
    async with app.running():
        assert await app.enqueue(add(1, 2)).result(timeout=10) == 3
        assert await app.enqueue(flaky()).result(timeout=30) == 2
        assert await app.enqueue(returns()).result(timeout=10) == 7


@pytest.mark.parametrize("job_type", WORKFLOW_JOBS, ids=lambda each: each.name)
async def test_what_needs_workflows_fails_for_good_at_the_first_attempt(job_type: Callable[[], Any]) -> None:
    """Another attempt would meet the same store. No step of it runs, and nothing is queued."""
    app, _ = app_on(jobs=[*WORKFLOW_JOBS, add])
    ran.clear()
    async with app.running():
        handle = await app.enqueue(job_type())
        with pytest.raises(JobFailed, match="the small store has no workflows"):
            await handle.result(timeout=10)
        info = await app.get(handle.id)
        assert info.error is not None
        assert (info.state.value, info.attempt, info.error.code, info.error.category.value) == (
            "failed",
            1,
            "unsupported",
            "permanent",
        )
        assert await app.count() == 1
    assert ran == []


async def test_lines_are_not_sent_to_a_store_that_keeps_none() -> None:
    """FewerStore fails the test where a line reaches it."""
    app, _ = app_on(jobs=[talk], logs=Logs(keep="DEBUG"))
    async with app.running():
        await app.enqueue(talk()).result(timeout=10)


async def test_a_declared_capability_is_used() -> None:
    app, _ = app_on(LOGS, WORKFLOWS, jobs=[talk, spawns, add])
    async with app.running():
        handle = await app.enqueue(talk())
        await handle.result(timeout=10)
        assert [line.message for line in await app.logs(handle.id)] == ["hello"]
        await app.enqueue(spawns()).group(timeout=10)


async def test_a_worker_with_a_declared_limit_does_not_start_where_it_would_not_hold() -> None:
    @job(limit=Limit(key="stripe", concurrency=1))
    async def charge() -> None: ...

    app, store = app_on(jobs=[charge])
    with pytest.raises(Unsupported, match="the small store has no fleet-wide limits"):
        await app.worker().__aenter__()
    assert await store.workers() == []
    app, _ = app_on(LIMITS, jobs=[charge])
    async with app.running():
        await app.enqueue(charge()).result(timeout=10)


def test_an_app_with_schedules_is_not_made_on_a_store_without() -> None:
    with pytest.raises(Unsupported, match="the small store has no schedules"):
        app_on(jobs=[add], schedules=[schedule("s", every=60, job=add(1, 2))])


async def test_an_app_that_wants_to_hear_of_groups_does_not_work_where_there_are_none() -> None:
    app, store = app_on(jobs=[add], on_orphan_group=lambda _: None)
    with pytest.raises(Unsupported, match="no workflows"):
        await app.worker().__aenter__()
    assert await store.workers() == []


async def test_looking_at_jobs_leaves_out_what_the_store_does_not_tell() -> None:
    app, _ = app_on(jobs=[add])
    async with app:
        handle = await app.enqueue(add(1, 2))
        await app.enqueue(add(1, 2), delay=60)
        async with app.worker(types=[add], queues=["other"]):
            assert (await app.why(handle.id)).cause == "no_worker"
        assert "ropewalk_jobs_enqueued_total" in await app.metrics.text()
        assert len(await app.history(handle.id)) == 1


async def test_an_idle_worker_is_idle() -> None:
    app, _ = app_on(jobs=[add])
    async with app, app.worker() as worker:
        await app.enqueue(add(1, 2))
        await asyncio.wait_for(worker.idle(), 10)
        assert worker.settled == 1
