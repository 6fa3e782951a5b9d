"""One Job object that several handlers queue, or one handler several times: each of them gets a child of its own."""

from __future__ import annotations

from typing import Any

import pytest

from ropewalk import App, Backoff, Conflict, Context, Filter, Result, job
from tests.apps import MakeApp


@job
async def cleanup(what: str) -> str:
    return what


@job
async def report(ctx: Context) -> str:
    return f"after {ctx.dependencies[0].result}"


AT_ONCE = Backoff.constant(0)
CLEAN = cleanup("const")
REPORT = report().using(depends_on=CLEAN)


@job
async def spawns(ctx: Context) -> None:
    await ctx.spawn(CLEAN)


@job
async def queues(ctx: Context) -> Result[None, str]:
    return ctx.queue(CLEAN)


@job
async def queues_next(ctx: Context) -> Result[None, str]:
    return ctx.queue().next(CLEAN.using(priority=3))


@pytest.mark.parametrize("kind", [spawns, queues, queues_next])
async def test_each_parent_has_a_child_of_its_own(make_app: MakeApp, kind: Any) -> None:
    app = make_app(kind, cleanup)
    async with app.running():
        for _ in range(3):
            handle = await app.enqueue(kind())
            await handle.group(timeout=30)
            assert await app.count(Filter(parent_id=handle.id)) == 1


@job
async def spawns_three_times(ctx: Context) -> list[str]:
    clean = cleanup("own")
    ids = [await ctx.spawn(clean) for _ in range(3)]
    assert ids[0] == clean.id
    return ids


@job
async def spawns_many(ctx: Context) -> list[str]:
    clean = cleanup("own")
    return await ctx.spawn_many([clean, clean, CLEAN])


@job(max_attempts=2, backoff=AT_ONCE)
async def spawns_in_two_attempts(ctx: Context) -> list[str]:
    ids = [await ctx.spawn(CLEAN) for _ in range(3)]
    if ctx.attempt == 1:
        raise ConnectionError
    return ids


@pytest.mark.parametrize("kind", [spawns_three_times, spawns_many, spawns_in_two_attempts])
async def test_each_repetition_in_an_attempt_is_another_child(make_app: MakeApp, kind: Any) -> None:
    app = make_app(kind, cleanup)
    async with app.running():
        handle = await app.enqueue(kind())
        ids = await handle.result(timeout=30)
        assert len(set(ids)) == 3
        assert await app.count(Filter(parent_id=handle.id)) == 3


@job
async def queues_twice(ctx: Context) -> Result[None, str]:
    clean = cleanup("own")
    return ctx.queue(clean, clean).next(clean)


async def test_a_result_may_queue_a_job_several_times(make_app: MakeApp) -> None:
    app = make_app(queues_twice, cleanup)
    async with app.running():
        handle = await app.enqueue(queues_twice())
        await handle.group(timeout=30)
        assert await app.count(Filter(parent_id=handle.id)) == 3


@job
async def queues_both(ctx: Context, first: str) -> Result[None, str]:
    return ctx.queue(REPORT, CLEAN) if first == "dependant" else ctx.queue(CLEAN, REPORT)


@job
async def spawns_both(ctx: Context, first: str) -> None:
    await ctx.spawn_many([CLEAN, REPORT])


@pytest.mark.parametrize(("kind", "first"), [(queues_both, "parent"), (queues_both, "dependant"), (spawns_both, "")])
async def test_a_dependency_on_a_shared_job_is_on_the_child_of_this_parent(
    make_app: MakeApp, kind: Any, first: str
) -> None:
    app = make_app(kind, cleanup, report)
    async with app.running():
        for _ in range(2):
            handle = await app.enqueue(kind(first))
            await handle.group(timeout=30)
            [found] = (await app.search(Filter(parent_id=handle.id, types="report"))).jobs
            assert (await app.get(found.id)).result == "after const"


@job
async def chooses_the_id(ctx: Context) -> str:
    return await ctx.spawn(CLEAN.using(id="chosen"))


async def test_a_chosen_id_stays(make_app: MakeApp) -> None:
    app = make_app(chooses_the_id, cleanup)
    async with app.running():
        assert await app.enqueue(chooses_the_id()).result(timeout=30) == "chosen"


async def test_enqueueing_a_job_twice_is_a_duplicate(make_app: MakeApp) -> None:
    app: App = make_app(cleanup)
    async with app:
        twice = cleanup("own")
        assert (await app.enqueue(twice)).id == (await app.enqueue(twice)).id == twice.id
        assert await app.count() == 1
        with pytest.raises(Conflict):
            await app.enqueue(cleanup("other"), id=twice.id)
