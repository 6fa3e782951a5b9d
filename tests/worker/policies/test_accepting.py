"""R14: a worker may decline a job. It is left for others at once, and keeps its attempt and its place."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from ropewalk import App, Context, job
from ropewalk.errors import InvalidInput
from ropewalk.policies import Offer
from ropewalk.testing.clock import FakeRuntime
from tests.apps import MakeApp

PATIENCE = 20


@job
async def at(ctx: Context, place: str) -> str:
    return place


@job
async def other() -> str:
    return "done"


async def test_the_worker_that_accepts_runs_it(make_app: MakeApp) -> None:
    app = make_app(at)
    asked = Counter[str]()

    def not_here(offer: Offer) -> bool:
        asked[offer.id] += 1
        assert (offer.type, offer.attempt, offer.queue) == ("at", 1, "default")
        return offer.arguments["place"] == "here"

    async with app, app.worker(accept=not_here) as picky:
        there = await app.enqueue(at("there"))
        assert await app.enqueue(at("here")).result(timeout=PATIENCE) == "here"
        async with app.worker() as easy:
            await there.result(timeout=PATIENCE)
            assert (await there.status()).worker == easy.id != picky.id
    info = await there.status()
    assert info.attempt == 1
    assert asked[there.id] <= 2, "it is passed over for a second, and two the next time"


async def test_declining_does_not_spin_nor_hold_up_others() -> None:
    clock, asked = FakeRuntime(), Counter[str]()
    app = App("memory://", jobs=[at, other], runtime=clock)

    def only_others(offer: Offer) -> bool:
        asked[offer.type] += 1
        return offer.type == "other"

    for _ in range(3):
        await app.enqueue(at("there"))
    await app.enqueue(at("last chance"), max_attempts=1, id="last")
    handle = await app.enqueue(other())
    async with app.worker(accept=only_others, concurrency=2):
        await clock.advance(0.5)
        assert (await handle.status()).state == "completed"
        assert asked["at"] == 4
        await clock.advance(29.5)
    assert asked["at"] == 4 * 5, "after 1, 2, 4 and 8 seconds"
    last = await app.get("last")
    assert last is not None
    assert (last.state, last.attempt) == ("scheduled", 0)
    await app.close()


async def test_accept_that_raises_is_reported_and_accepts() -> None:
    reported: list[str] = []
    app = App("memory://", jobs=[other], on_error=lambda error, phase: reported.append(f"{phase}: {error}"))

    def broken(_: Offer) -> bool:
        raise RuntimeError("no idea")

    async with app, app.worker(accept=broken):
        assert await app.enqueue(other()).result(timeout=PATIENCE) == "done"
    assert reported == ["accept: no idea"]


async def test_an_async_accept_is_refused() -> None:
    async def later(_: Offer) -> bool:
        await asyncio.sleep(0)
        return False

    app = App("memory://", jobs=[other])
    with pytest.raises(InvalidInput, match="must be a plain function, not an async one"):
        app.worker(accept=later)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]  what is refused


async def test_an_offer_says_what_the_job_says() -> None:
    seen: list[Offer] = []
    app = App("memory://", jobs=[at])

    def look(offer: Offer) -> bool:
        seen.append(offer)
        return True

    async with app, app.worker(accept=look):
        handle = await app.enqueue(at("x"), priority=3, fairness="ada", tags={"a": "b"}, workflow_id="w")
        await handle.result(timeout=PATIENCE)
        info = await handle.status()
    [offer] = seen
    told = (offer.id, offer.priority, offer.max_attempts, offer.fairness, offer.tags, offer.workflow_id)
    assert told == (handle.id, 3, 3, "ada", {"a": "b"}, "w")
    assert (offer.tenant, offer.correlation_id) == (info.tenant, info.correlation_id)
    assert (offer.created_at, offer.scheduled_for) == (info.created_at, info.created_at)
    assert offer.arguments == {"place": "x"}


@job(fairness="house")
async def labelled() -> None:
    pass


async def test_a_label_is_the_types_unless_the_job_has_its_own() -> None:
    labels: list[str | None] = []

    def accept(offer: Offer) -> bool:
        labels.append(offer.fairness)
        return True

    app = App("memory://", jobs=[labelled])
    async with app:
        await app.enqueue(labelled())
        await app.enqueue(labelled(), fairness="ada")
        await app.enqueue(labelled(), fairness=None)
        async with app.worker(accept=accept) as worker:
            await worker.idle()
    assert labels == ["house", "ada", None]
