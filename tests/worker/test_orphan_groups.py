"""Groups that close with nobody waiting are told, at least once, under an id that stays the same."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

import pytest

from ropewalk import App, Context, Result, State, job
from ropewalk.client.awaited_groups import AwaitedGroups
from ropewalk.domain.time import SECOND
from ropewalk.ports.store.capabilities import WORKFLOWS
from ropewalk.worker.services import orphan_groups
from ropewalk.worker.services.orphan_groups import OrphanGroup, OrphansConfig
from tests.apps import MakeApp, on_shared_stores
from tests.torture.harness import until


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
    monkeypatch.setattr(orphan_groups, "OrphansConfig", lambda: quick)
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
        # A group that closed before the store heard of the wait is taken by this worker, which knows better.
        await until(lambda: _nothing_left(app), "the worker has taken them all")
    assert told == []


async def test_the_store_knows_who_waits_even_before_anything_was_queued_under_the_root(
    make_app: MakeApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if the one who waits were in another process than the worker."""
    monkeypatch.setattr(AwaitedGroups, "waited_here", lambda *_: False)
    told: list[OrphanGroup] = []
    app = make_app(leaf, late_tree, on_orphan_group=told.append)
    async with app.running():
        handle = await app.enqueue(late_tree())
        waiting = asyncio.create_task(handle.group(timeout=10))
        async with asyncio.timeout(10):
            while not app._app_state.awaited.store_knows("default", handle.id):
                await asyncio.sleep(0.01)
        gates[0].set()
        assert await waiting == 7
    assert await _left(app) == []
    assert told == []


@dataclass
class Part:
    number: int


@job(max_attempts=1)
async def part(ctx: Context, number: int) -> Result[Part, list[Part]]:
    if number == 0:
        raise ValueError("zero")
    return ctx.result(Part(number), append="list")


@job
async def parts(ctx: Context, numbers: list[int]) -> Result[None, list[Part]]:
    return ctx.queue(*(part(number) for number in numbers))


@job(name="part")
async def part_as_a_number(number: int) -> int:
    return number


@on_shared_stores
async def test_a_worker_with_the_hook_hears_of_groups_of_clients_without_it(new_app: MakeApp) -> None:
    """The groups of other programs, too: with the value and the states of their jobs."""
    told: asyncio.Queue[OrphanGroup] = asyncio.Queue()
    serving, other = new_app(part, parts, on_orphan_group=told.put), new_app(part, parts)
    async with serving, other, serving.worker():
        await _taken(serving)
        handle = await other.enqueue(parts([1, 2, 0, 3]))
        group = await asyncio.wait_for(told.get(), 10)
    assert (group.group_id, group.value_missing) == (handle.id, None)
    assert isinstance(group.value, list)
    assert sorted(each.number for each in group.value) == [1, 2, 3]
    assert group.states == {State.COMPLETED: 4, State.DEAD_LETTER: 1}


@on_shared_stores
async def test_a_group_that_a_client_without_the_hook_waits_for_is_not_told(new_app: MakeApp) -> None:
    told: list[OrphanGroup] = []
    async with (
        new_app(leaf, late_tree, on_orphan_group=told.append) as serving,
        new_app(late_tree) as web,
    ):
        async with serving.worker():
            await _taken(serving)
            handle = await web.enqueue(late_tree())
            waiting = asyncio.create_task(handle.group(timeout=10))
            async with asyncio.timeout(10):
                while not web._app_state.awaited.store_knows("default", handle.id):
                    await asyncio.sleep(0.01)
            gates[0].set()
            assert await waiting == 7
        assert await _left(serving) == []
    assert told == []


@pytest.mark.parametrize(
    ("worker_knows", "value", "missing"),
    [(leaf, [{"number": 1}], None), (part_as_a_number, None, "int")],
    ids=["an unknown type is decoded untyped", "another type of that name cannot decode it"],
)
@on_shared_stores
async def test_the_value_is_decoded_as_far_as_it_can_be(
    new_app: MakeApp, worker_knows: Any, value: object, missing: str | None
) -> None:
    told: asyncio.Queue[OrphanGroup] = asyncio.Queue()
    async with new_app(worker_knows, on_orphan_group=told.put) as one, new_app(part, parts) as other:
        await WORKFLOWS.of(one._app_state.store).take_orphans(1, 0)
        async with other.worker():
            handle = await other.enqueue(parts([1]))
            async with asyncio.timeout(10):
                while (await other.group(handle.id)).state == "open":
                    await asyncio.sleep(0.01)
        async with one.worker():
            group = await asyncio.wait_for(told.get(), 10)
    assert group.value == value
    assert (group.value_missing is None) == (missing is None)
    assert missing is None or missing in str(group.value_missing)


@on_shared_stores
async def test_of_a_group_that_is_gone_neither_value_nor_states_are_told(new_app: MakeApp) -> None:
    told: asyncio.Queue[OrphanGroup] = asyncio.Queue()
    async with new_app(part, parts, on_orphan_group=told.put) as app, new_app(part, parts) as other:
        await WORKFLOWS.of(app._app_state.store).take_orphans(1, 0)
        async with other.worker():
            handle = await other.enqueue(parts([1]))
            async with asyncio.timeout(10):
                while (await other.group(handle.id)).state == "open":
                    await asyncio.sleep(0.01)
            await other.delete_many([each.id for each in (await other.group(handle.id)).nodes])
        async with app.worker():
            group = await asyncio.wait_for(told.get(), 10)
    assert (group.group_id, group.value, group.states) == (handle.id, None, {})
    assert "gone" in str(group.value_missing)


async def _taken(app: App) -> None:
    """The worker has asked for orphan groups once."""
    async with asyncio.timeout(10):
        while not await WORKFLOWS.of(app._app_state.store).orphans_are_taken():
            await asyncio.sleep(0.01)


async def test_a_hook_that_raises_is_told_again(make_app: MakeApp, monkeypatch: pytest.MonkeyPatch) -> None:
    quick = OrphansConfig(every_seconds=0.05, hide_us=SECOND // 10)
    monkeypatch.setattr(orphan_groups, "OrphansConfig", lambda: quick)
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


async def _nothing_left(app: App) -> bool:
    return await WORKFLOWS.of(app._app_state.store).take_orphans(10, 0) == []


async def _left(app: App) -> list[str]:
    async with app:
        return [each.group_id for each in await WORKFLOWS.of(app._app_state.store).take_orphans(10, 0)]
