"""R12: workers that start jobs in another order than the store gives them. One slot, so that the order is exact."""

from __future__ import annotations

import asyncio

from ropewalk import App, job
from ropewalk.policies import Age, Balanced, Priority
from ropewalk.testing.clock import FakeRuntime
from tests.apps import MakeApp

started: list[str] = []


@job
async def noted(name: str) -> None:
    started.append(name)


@job(concurrency=Balanced(1, ahead=9))
async def fair(name: str) -> None:
    started.append(name)


@job
async def plain(name: str) -> None:
    started.append(name)


waits = asyncio.Event()


@job
async def slow(seconds: float) -> None:
    started.append("slow")
    await waits.wait()


async def order_of(app: App, policy: Priority | Age | Balanced | int) -> list[str]:
    """Everything is queued before the first claim: it starts one, and chooses among the others from then on."""
    started.clear()
    async with app.worker(concurrency=policy) as worker:
        await worker.idle()
    return list(started)


async def test_priority_without_ageing(make_app: MakeApp) -> None:
    """The store would start old ones first: a point of priority is worth 36 seconds there."""
    clock = FakeRuntime()
    app = App("memory://", jobs=[noted], runtime=clock)
    for name, priority in (("first", 0), ("low", -1), ("normal", 0), ("old", 0)):
        await app.enqueue(noted(name), priority=priority)
    await clock.advance(hours=2)
    await app.enqueue(noted("high"), priority=1)
    await app.enqueue(noted("higher"), priority=2)
    assert await order_of(app, Priority(1, ahead=9)) == ["first", "higher", "high", "normal", "old", "low"]
    await app.close()


async def test_age_whatever_the_priority() -> None:
    clock = FakeRuntime()
    app = App("memory://", jobs=[noted], runtime=clock)
    for name, priority in (("first", 900), ("low", -1), ("normal", 0), ("high", 1)):
        await app.enqueue(noted(name), priority=priority)
        await clock.advance(1)
    assert await order_of(app, 1) == ["first", "high", "normal", "low"]
    for name, priority in (("first", 900), ("low", -1), ("normal", 0), ("high", 1)):
        await app.enqueue(noted(name), priority=priority)
        await clock.advance(1)
    assert await order_of(app, Age(1, ahead=9)) == ["first", "low", "normal", "high"]
    await app.close()


async def test_labels_take_turns(make_app: MakeApp) -> None:
    app = make_app(noted)
    for number in range(4):
        await app.enqueue(noted(f"flood {number}"), fairness="flood")
    for name in ("ada", "ada again", "bob"):
        await app.enqueue(noted(name), fairness=name.split()[0])
    await app.enqueue(noted("nobody"))
    assert await order_of(app, Balanced(1, ahead=9)) == [
        *("flood 0", "ada", "bob", "nobody"),
        *("flood 1", "ada again", "flood 2", "flood 3"),
    ]


async def test_a_type_may_have_an_order_of_its_own(make_app: MakeApp) -> None:
    app = make_app(fair, plain)
    for number in range(3):
        await app.enqueue(fair(f"flood {number}"), fairness="flood")
        await app.enqueue(plain(f"plain {number}"))
    await app.enqueue(fair("ada"), fairness="ada")
    names = await order_of(app, 1)
    assert [name for name in names if "plain" not in name] == ["flood 0", "ada", "flood 1", "flood 2"]
    assert [name for name in names if "plain" in name] == ["plain 0", "plain 1", "plain 2"], "as the store gave them"


async def test_what_is_kept_at_hand_is_given_back_when_it_takes_too_long() -> None:
    """rule 9: and once only, without losing an attempt. Another worker runs it meanwhile."""
    clock = FakeRuntime()
    app = App("memory://", jobs=[slow, noted], runtime=clock)
    waits.clear()
    started.clear()
    await app.enqueue(slow(1.0))
    for number in range(4):
        await app.enqueue(noted(f"kept {number}"), id=str(number))
    async with app.worker(concurrency=Priority(1, ahead=9)) as worker:
        await clock.advance(0.5)
        assert {info.worker for info in (await app.search()).jobs} == {worker.id}, "all of them are at hand"
        await clock.advance(10)
        assert [(info.state, info.attempt) for info in (await app.search()).jobs if info.type == "noted"] == [
            ("scheduled", 0)
        ] * 4
        async with app.worker(concurrency=1):
            await clock.advance(0.5)
        assert started == ["slow", *(f"kept {number}" for number in range(4))]
        waits.set()
        await worker.idle()
    kinds = [entry.kind for entry in await app.history("0")]
    assert kinds == ["queued", "started", "release", "started", "complete"]
    await app.close()
