"""Removing jobs with what belongs to them, and purging queues: what waits and what has ended, never what runs."""

from __future__ import annotations

import asyncio

import pytest

from ropewalk import App, Conflict, Context, Event, Filter, InvalidInput, JobCancelled, Result, State, job
from ropewalk.client.operations import removal
from tests.apps import MakeApp

held: list[asyncio.Event] = []


@pytest.fixture(autouse=True)
def gate() -> asyncio.Event:
    held[:] = [asyncio.Event()]
    return held[0]


@job
async def plain(number: int = 0) -> int:
    return number


@job
async def held_up() -> None:
    await held[0].wait()


@job
async def family(ctx: Context, children: int) -> Result[None, int]:
    return ctx.queue(*(plain(number).using(queue="later", delay=3600) for number in range(children)))


@job
async def grown_up(ctx: Context) -> Result[None, int]:
    return ctx.queue(family(2))


# ── delete(cascade=True)


async def test_what_depends_on_it_goes_with_it(make_app: MakeApp) -> None:
    app = make_app(plain)
    async with app.running():
        done = await app.enqueue(plain(1))
        await done.result(timeout=10)
        ids = [done.id]
        for _ in range(3):
            waiting = await app.enqueue(plain(), depends_on=ids[-1], delay=3600, queue="nobody")
            ids.append(waiting.id)
        other = await app.enqueue(plain(), delay=3600)
        with pytest.raises(Conflict, match=rf"needed by .*{ids[1]} \(plain\).*cascade=True"):
            await app.delete(done.id)
        await app.delete(done.id, cascade=True)
        assert await app.states([*ids, other.id]) == {other.id: State.DELAYED}


async def test_what_was_queued_under_it_goes_with_it(make_app: MakeApp) -> None:
    app = make_app(plain, family, grown_up)
    async with app.running() as worker:
        root = await app.enqueue(grown_up())
        await asyncio.wait_for(worker.idle(), 10)
        members = (await app.search(Filter(group_id=root.id))).jobs
        assert len(members) == 4
        [parent] = [each for each in members if each.type == "family"]
        with pytest.raises(Conflict, match=r"\(plain\)"):
            await app.delete(root.id)
        await app.delete(parent.id, cascade=True)
        assert [each.id for each in (await app.search(Filter(group_id=root.id))).jobs] == [root.id]
        assert await root.group(timeout=10) is None
        await app.delete(root.id)


async def test_a_job_that_waits_goes_with_what_waits_for_it(make_app: MakeApp) -> None:
    app = make_app(plain)
    async with app:
        first = await app.enqueue(plain(), delay=3600)
        second = await app.enqueue(plain(), depends_on=first)
        await app.delete(first.id, cascade=True)
        assert await app.states([first.id, second.id]) == {}


async def test_nothing_is_removed_where_one_runs(make_app: MakeApp, gate: asyncio.Event) -> None:
    app = make_app(plain, held_up)
    async with app.running():
        done = await app.enqueue(plain(1))
        await done.result(timeout=10)
        running = await app.enqueue(held_up(), depends_on=done)
        waiting = await app.enqueue(plain(), depends_on=done, delay=3600)
        await _until(app, running.id, State.RUNNING)
        with pytest.raises(Conflict, match=rf"{running.id} \(held_up\) runs"):
            await app.delete(done.id, cascade=True)
        result = await app.delete_many([done.id], cascade=True)
        assert (result.requested, result.done, result.skipped) == (1, 0, 1)
        assert len(await app.states([done.id, running.id, waiting.id])) == 3
        gate.set()
        assert (await running.status()).cancel_requested is False
        await running.result(timeout=10)


async def test_many_at_once_each_with_its_own(make_app: MakeApp) -> None:
    app = make_app(plain, family)
    async with app.running() as worker:
        roots = [await app.enqueue(family(2)) for _ in range(3)]
        lone = [await app.enqueue(plain()) for _ in range(3)]
        await asyncio.wait_for(worker.idle(), 10)
        after = await app.enqueue(plain(), depends_on=[each.id for each in roots], delay=3600)
        ids = [*(each.id for each in [*roots, *lone]), after.id, "missing"]
        skipped = await app.delete_many(ids)
        assert (skipped.done, skipped.skipped, skipped.missing) == (3, 4, 1)
        result = await app.delete_many(ids, cascade=True)
        assert (result.done, result.skipped, result.missing) == (4, 0, 4)
        assert await app.count() == 0


async def test_more_than_go_in_one_transaction(make_app: MakeApp, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(removal, "BATCH", 3)
    app = make_app(plain, family)
    async with app.running() as worker:
        root = await app.enqueue(family(10))
        await asyncio.wait_for(worker.idle(), 10)
        after = await app.enqueue(plain(), depends_on=root.id, delay=3600)
        last = await app.enqueue(plain(), depends_on=after.id)
        await app.delete(root.id, cascade=True)
        assert await app.states([root.id, after.id, last.id]) == {}
        assert await app.count() == 0


# ── purge


async def test_a_queue_is_emptied_but_for_what_runs(make_app: MakeApp, gate: asyncio.Event) -> None:
    app = make_app(plain, held_up)
    async with app, app.worker(queues=["mail"]):
        running = await app.enqueue(held_up(), queue="mail")
        done = await app.enqueue(plain(), queue="mail")
        await done.result(timeout=10)
        await _until(app, running.id, State.RUNNING)
        await app.enqueue_many([plain(number) for number in range(5)], queue="mail", delay=3600)
        after = await app.enqueue(plain(), queue="other", depends_on=running)
        other = await app.enqueue(plain(), queue="other")
        told = await app.purge(queue="mail", dry_run=True)
        assert (told.requested, told.running, told.deleted, told.cancelled) == (7, 1, 0, 0)
        result = await app.purge(queue="mail")
        assert (result.requested, result.running, result.deleted, result.cancelled) == (7, 1, 6, 5)
        assert (result.needed, result.missing) == (0, 0)
        left = await app.search()
        assert {each.id for each in left.jobs} == {running.id, after.id, other.id}
        gate.set()
        await running.result(timeout=10)
        assert (await running.status()).cancel_requested is False


async def test_parents_go_after_what_is_under_them(make_app: MakeApp, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whole groups, over many transactions."""
    monkeypatch.setattr(removal, "BATCH", 3)
    app = make_app(plain, family, grown_up)
    async with app.running() as worker:
        for _ in range(4):
            await app.enqueue(grown_up())
        await asyncio.wait_for(worker.idle(), 10)
        assert await app.count() == 16
        result = await app.purge(Filter())
        assert (result.requested, result.deleted, result.cancelled, result.needed) == (16, 16, 8, 0)
        assert await app.count() == 0


async def test_what_others_need_is_left_and_counted(make_app: MakeApp) -> None:
    app = make_app(plain)
    async with app.running():
        done = await app.enqueue(plain(), queue="mail")
        await done.result(timeout=10)
        after = await app.enqueue(plain(), depends_on=done, queue="other", delay=3600)
        result = await app.purge(Filter(queues="mail", types=plain))
        assert (result.requested, result.deleted, result.needed) == (1, 0, 1)
        assert len(await app.states([done.id, after.id])) == 2


async def test_what_waits_for_a_purged_job_is_settled(make_app: MakeApp) -> None:
    told: list[Event] = []
    app = make_app(plain, on_event=told.append)
    async with app:
        first = await app.enqueue(plain(), queue="mail")
        second = await app.enqueue(plain(), depends_on=first)
        await app.purge(queue="mail")
        assert (await second.status()).state is State.CANCELLED
        with pytest.raises(JobCancelled, match=first.id):
            await second.result(timeout=10)
    assert [(event.kind, event.job_id) for event in told if event.kind == "cancelled"] == [
        ("cancelled", first.id),
        ("cancelled", second.id),
    ]


async def test_a_tenants_purge_stays_with_the_tenant(make_app: MakeApp) -> None:
    """safe-15"""
    app = make_app(plain)
    async with app:
        mine, theirs = await app.enqueue(plain()), await app.tenant("acme").enqueue(plain())
        assert (await app.tenant("acme").purge(Filter())).deleted == 1
        assert await app.states([mine.id]) == {mine.id: State.SCHEDULED}
        assert await app.tenant("acme").states([theirs.id]) == {}


async def test_everything_is_purged_only_by_name(make_app: MakeApp) -> None:
    app = make_app(plain)
    async with app:
        handle = await app.enqueue(plain())
        with pytest.raises(InvalidInput, match=r"give queue=, or a Filter \(Filter\(\) matches all"):
            await app.purge()
        with pytest.raises(InvalidInput, match="queue='mail' is given together with a filter"):
            await app.purge(Filter(queues="other"), queue="mail")
        with pytest.raises(InvalidInput, match="queue='mail' is given together with a filter"):
            await app.purge(Filter(), queue="mail")
        assert await app.states([handle.id]) == {handle.id: State.SCHEDULED}


async def test_the_blocking_face_purges_too(make_app: MakeApp) -> None:
    app = make_app(plain)
    async with app:
        await app.enqueue(plain(), queue="mail")
        assert (await asyncio.to_thread(app.sync.purge, queue="mail")).deleted == 1


async def _until(app: App, job_id: str, state: State) -> None:
    async with asyncio.timeout(10):
        while (await app.get(job_id)).state is not state:
            await asyncio.sleep(0.01)
