"""R12: how many of a type run in one worker. Who may not start stands in nobody's way, and is not kept from others."""

from __future__ import annotations

import asyncio

import pytest

from ropewalk import App, Context, State, batch_job, job
from ropewalk.errors import DefinitionError, InvalidInput
from ropewalk.policies import Age, Balanced, Concurrency, Priority, RateLimited, Unlimited
from ropewalk.worker.policies.worker_policies import FREE_SLOTS
from tests.apps import MakeApp

PATIENCE = 20


class Gate:
    """How many are inside, and how many ever were at once; they stay until it opens."""

    def __init__(self) -> None:
        self.inside: list[str] = []
        self.most = 0
        self.changed = asyncio.Condition()
        self.open = False

    async def enter(self, name: str) -> None:
        async with self.changed:
            self.inside.append(name)
            self.most = max(self.most, len(self.inside))
            self.changed.notify_all()
            await self.changed.wait_for(lambda: self.open)
            self.inside.remove(name)
            self.changed.notify_all()

    async def holds(self, number: int) -> None:
        async with asyncio.timeout(PATIENCE), self.changed:
            await self.changed.wait_for(lambda: len(self.inside) == number)

    async def opens(self) -> None:
        async with self.changed:
            self.open = True
            self.changed.notify_all()


@pytest.fixture
def gate() -> Gate:
    global _gate  # noqa: PLW0603  handlers are module-level functions
    _gate = Gate()
    return _gate


_gate: Gate


@job(concurrency=2)
async def narrow(ctx: Context) -> None:
    await _gate.enter(ctx.id)


@job
async def wide(ctx: Context) -> None:
    await _gate.enter(ctx.id)


@job
async def quick() -> str:
    return "done"


@batch_job(size=3, max_wait=0, concurrency=6)
async def by_three(items: list[int]) -> list[int]:
    await _gate.enter(f"batch of {len(items)}")
    return items


async def test_no_more_of_a_type_run_and_others_go_past_them(make_app: MakeApp, gate: Gate) -> None:
    app = make_app(narrow, quick)
    held = [await app.enqueue(narrow()) for _ in range(30)]
    async with app.worker(concurrency=10) as worker:
        await gate.holds(2)
        for _ in range(3):
            assert await app.enqueue(quick()).result(timeout=PATIENCE) == "done"
        assert gate.most == 2
        states = [(await handle.status()).state for handle in held]
        assert states.count(State.RUNNING) == 2, "the others were not even claimed"
        await gate.opens()
        await worker.idle()
    assert gate.most == 2
    for handle in held:
        info = await handle.status()
        assert (info.state, info.attempt, [each.kind for each in await app.history(info.id)]) == (
            "completed",
            1,
            ["queued", "started", "complete"],
        )


async def test_what_a_worker_has_no_room_for_another_one_runs(make_app: MakeApp, gate: Gate) -> None:
    app = make_app(narrow)
    async with app, app.worker(), app.worker():
        for _ in range(9):
            await app.enqueue(narrow())
        await gate.holds(4)
        await gate.opens()
    assert gate.most == 4


async def test_the_workers_own_bound_counts_too(make_app: MakeApp, gate: Gate) -> None:
    app = make_app(narrow, wide)
    async with app.worker(concurrency=3) as worker:
        for _ in range(5):
            await app.enqueue(narrow())
            await app.enqueue(wide())
        await gate.holds(3)
        await gate.opens()
        await worker.idle()
    assert gate.most == 3


async def test_without_a_bound_as_many_as_there_are(make_app: MakeApp, gate: Gate) -> None:
    app = make_app(wide, narrow)
    await app.enqueue_many(wide() for _ in range(250))
    await app.enqueue_many(narrow() for _ in range(5))
    async with app.worker(concurrency=Unlimited()) as worker:
        await gate.holds(252)
        await gate.opens()
        await worker.idle()
        slots = [task for task in asyncio.all_tasks() if task.get_name().startswith("ropewalk-slot-")]
        assert len(slots) == worker._started.executor.slots == 2 * FREE_SLOTS, "and not what the burst needed"
    assert gate.most == 252


async def test_of_a_batch_every_item_counts(make_app: MakeApp, gate: Gate) -> None:
    """The worker's own slots are calls of handlers: six items are two of them."""
    app = make_app(by_three)
    await app.enqueue_many(by_three(number) for number in range(12))
    async with app.worker(concurrency=10) as worker:
        await gate.holds(2)
        running = (await app.search()).jobs
        assert sum(info.state == "running" for info in running) == 6
        await gate.opens()
        await worker.idle()
    assert gate.most == 2


def test_a_batch_that_could_never_be_full_is_refused() -> None:
    with pytest.raises(DefinitionError, match=r"concurrency=2 counts every item and is less than size=50"):

        @batch_job(size=50, concurrency=2)
        def never(items: list[int]) -> list[int]:
            return items


async def test_one_that_would_skip_the_queue_takes_its_turn(make_app: MakeApp, gate: Gate) -> None:
    app = make_app(narrow)
    async with app.worker() as worker:
        for _ in range(3):
            await app.enqueue(narrow(), skip_queue=True)
        await gate.holds(2)
        await gate.opens()
        await worker.idle()
    assert gate.most == 2


@pytest.mark.parametrize("wrong", [0, -1, 2.5, True, "5", None])
def test_a_concurrency_that_is_none_is_refused(wrong: Concurrency) -> None:
    app = App("memory://", jobs=[quick])
    with pytest.raises(InvalidInput, match=r"concurrency=.* must be a whole number, at least 1, or a policy"):
        app.worker(concurrency=wrong)
    with pytest.raises(DefinitionError, match=r"concurrency=.* must be a whole number, at least 1, or a policy"):

        @job(concurrency=wrong)
        async def never() -> None: ...


@pytest.mark.parametrize("policy", [Priority, Age, Balanced])
def test_an_order_needs_a_bound(policy: type[Priority | Age | Balanced]) -> None:
    for wrong in ({"max": 0}, {"max": 1, "ahead": 0}):
        with pytest.raises(InvalidInput, match=r"must be (at least 1|between 1 and 100,000)"):
            policy(**wrong)


def test_a_policy_is_a_value() -> None:
    assert RateLimited(5, 60) == RateLimited(5, 60)
    assert hash(Balanced(5)) == hash(Balanced(5, ahead=None))
