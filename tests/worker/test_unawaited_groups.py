"""Groups that close with nobody waiting are told, at least once, under an id that stays the same."""

from __future__ import annotations

import asyncio

import pytest

from ropewalk import App, Context, Result, job
from ropewalk.client.completion_checks import Awaited
from ropewalk.domain.time import SECOND
from ropewalk.worker.services import unawaited_groups
from ropewalk.worker.services.unawaited_groups import OrphanGroup, OrphansConfig
from tests.apps import MakeApp


@job
async def leaf(number: int) -> int:
    return number


@job
async def tree(ctx: Context, number: int) -> Result[None, int]:
    return ctx.queue(leaf(number))


gates: list[asyncio.Event] = []


@pytest.fixture(autouse=True)
def _closed_gate() -> None:
    gates[:] = [asyncio.Event()]


@job
async def late_tree(ctx: Context) -> Result[None, int]:
    await gates[0].wait()
    return ctx.queue(leaf(7))


async def test_a_group_nobody_waits_for_is_told_once(make_app: MakeApp, monkeypatch: pytest.MonkeyPatch) -> None:
    quick = OrphansConfig(every_seconds=0.02, hide_us=SECOND // 100)
    monkeypatch.setattr(unawaited_groups, "OrphansConfig", lambda: quick)
    told: asyncio.Queue[OrphanGroup] = asyncio.Queue()
    app = make_app(leaf, tree, on_orphan_group=told.put)
    async with app.running():
        handle = await app.tenant("acme").enqueue(tree(1))
        group = await asyncio.wait_for(told.get(), 10)
        assert (group.group_id, group.tenant) == (handle.id, "acme")
        other = await app.enqueue(tree(2), delay=0.3)
        assert (await asyncio.wait_for(told.get(), 10)).group_id == other.id, "the first is not told again"


async def test_a_group_somebody_waits_for_is_not(make_app: MakeApp) -> None:
    told: list[OrphanGroup] = []
    app = make_app(leaf, tree, on_orphan_group=told.append)
    async with app.running():
        values = await asyncio.gather(*(app.enqueue(tree(number)).group(timeout=10) for number in range(5)))
        assert values == list(range(5))
    async with app:
        assert await _left(app) == []
    assert told == []


async def test_the_store_knows_who_waits_even_before_anything_was_queued_under_the_root(
    make_app: MakeApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if the one who waits were in another process than the worker."""
    monkeypatch.setattr(Awaited, "here", lambda *_: False)
    told: list[OrphanGroup] = []
    app = make_app(leaf, late_tree, on_orphan_group=told.append)
    async with app.running():
        handle = await app.enqueue(late_tree())
        waiting = asyncio.create_task(handle.group(timeout=10))
        async with asyncio.timeout(10):
            while not app._core.awaited._told:
                await asyncio.sleep(0.01)
        gates[0].set()
        assert await waiting == 7
    assert await _left(app) == []
    assert told == []


async def test_a_hook_that_raises_is_told_again(make_app: MakeApp, monkeypatch: pytest.MonkeyPatch) -> None:
    quick = OrphansConfig(every_seconds=0.05, hide_us=SECOND // 10)
    monkeypatch.setattr(unawaited_groups, "OrphansConfig", lambda: quick)
    ids: list[str] = []
    reported: list[str] = []
    done = asyncio.Event()

    def hook(group: OrphanGroup) -> None:
        ids.append(group.id)
        if len(ids) < 3:
            raise ValueError("not now")
        done.set()

    app = make_app(leaf, tree, on_orphan_group=hook, on_error=lambda error, phase: reported.append(phase))
    async with app.running():
        await app.enqueue(tree(1))
        await asyncio.wait_for(done.wait(), 10)
    assert len(set(ids)) == 1
    assert reported == ["on_orphan_group"] * 2


async def test_without_a_hook_nothing_is_recorded(make_app: MakeApp) -> None:
    app = make_app(leaf, tree)
    async with app.running():
        handle = await app.enqueue(tree(1))
        async with asyncio.timeout(10):
            while (await app.group(handle.id)).state == "open":
                await asyncio.sleep(0.01)
    async with app:
        assert await _left(app) == []


async def _left(app: App) -> list[str]:
    async with app:
        return [each.group_id for each in await app._core.store.take_orphans(10, 0)]
