"""R12: how many start in a span of time in one worker: measured where handlers start, on a clock that is exact."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from ropewalk import App, batch_job, job
from ropewalk.domain.limits.rate import ALGORITHMS, Algorithm, Rate
from ropewalk.domain.time import SECOND
from ropewalk.policies import RateLimited
from ropewalk.testing.clock import FakeRuntime
from tests.worker.policies.oracles import exceeded

algorithms = pytest.mark.parametrize("algorithm", ALGORITHMS)

CLOCK = FakeRuntime()
starts: list[tuple[str, int]] = []
"""(whose, when in µs)"""


def began(name: str) -> None:
    starts.append((name, round(CLOCK.monotonic() * SECOND)))


def times(name: str | None = None) -> list[int]:
    return [at for whose, at in starts if name is None or whose == name]


@job
async def note(name: str) -> None:
    began(name)


@job(concurrency=RateLimited(3, 10))
async def slow_going(name: str) -> None:
    began(name)


@job(concurrency=RateLimited(1, 10, per=lambda offer: str(offer.arguments["name"]), total=Rate(3, per=10)))
async def for_each(name: str) -> None:
    began(name)


@batch_job(size=4, max_wait=0.5, concurrency=RateLimited(4, 10))
async def batched(names: list[str]) -> list[None]:
    for name in names:
        began(name)
    return [None] * len(names)


@job(concurrency=RateLimited(1, 10, per=lambda offer: offer.tags["no such tag"]))
async def broken(name: str) -> None:
    began(name)


reported: list[str] = []


@pytest.fixture
async def app() -> AsyncIterator[App]:
    starts.clear()
    reported.clear()
    jobs = (note, slow_going, for_each, batched, broken)
    app = App(
        "memory://", jobs=jobs, runtime=CLOCK, on_error=lambda error, phase: reported.append(f"{phase}: {error!r}")
    )
    yield app
    await app.close()


@algorithms
async def test_a_worker_never_starts_more(app: App, algorithm: Algorithm) -> None:
    """And starts all there is room for, the moment there is."""
    policy = RateLimited(3, 10, algorithm, max=5)
    await app.enqueue_many(note(str(number)) for number in range(20))
    async with app.worker(concurrency=policy):
        for _ in range(14):
            await CLOCK.advance(7)
            await app.enqueue(note("late"))
    assert exceeded(policy.rate, times()) == []
    assert len(times()) >= 28, "98 s at 3 in 10 s"
    assert {info.attempt for info in (await app.search(limit=100)).jobs if info.terminal} == {1}


async def test_each_start_comes_the_moment_there_is_room(app: App) -> None:
    await CLOCK.advance(-CLOCK.monotonic() % 10)
    began_at = round(CLOCK.monotonic() * SECOND)
    await app.enqueue_many(note(str(number)) for number in range(7))
    async with app.worker(concurrency=RateLimited(3, 10)):
        await CLOCK.advance(25)
    assert [(at - began_at) // SECOND for at in times()] == [0, 0, 0, 10, 10, 10, 20]
    for info in (await app.search()).jobs:
        assert [entry.kind for entry in await app.history(info.id)] == ["queued", "started", "complete"], "no detours"


async def test_a_type_with_a_rate_stands_in_nobodys_way(app: App) -> None:
    await app.enqueue_many(slow_going(str(number)) for number in range(9))
    await app.enqueue_many(note("other") for _ in range(9))
    async with app.worker():
        await CLOCK.advance(5)
        assert len(times("other")) == 9
        assert len(times()) == 12
        waiting = [info for info in (await app.search()).jobs if info.state == "scheduled"]
        assert len(waiting) == 6, "and is not claimed at all"
        await CLOCK.advance(30)
    assert exceeded(Rate(3, per=10), [at for name, at in starts if name != "other"]) == []
    assert {info.attempt for info in (await app.search()).jobs} == {1}


async def test_a_rate_for_each_key_and_one_for_all(app: App) -> None:
    """What has no room is given back with its attempt until its turn; other keys start at once."""
    for number in range(4):
        await app.enqueue(for_each("flood"), id=f"flood {number}")
    await app.enqueue_many(for_each(name) for name in ("ada", "bob", "cy"))
    async with app.worker():
        await CLOCK.advance(1)
        assert [name for name, _ in starts] == ["flood", "ada", "bob"], "the third of all, though cy has room"
        await CLOCK.advance(100)
    assert sorted(name for name, _ in starts) == ["ada", "bob", "cy", *["flood"] * 4]
    assert exceeded(Rate(3, per=10), times()) == []
    assert exceeded(Rate(1, per=10), times("flood")) == []
    assert {info.attempt for info in (await app.search()).jobs} == {1}
    assert [entry.kind for entry in await app.history("flood 3")].count("release") <= 4, "back at its turn, not always"


async def test_a_rate_for_each_key_is_kept_to_the_moment(app: App) -> None:
    await app.enqueue_many(for_each("ada") for _ in range(3))
    async with app.worker():
        await CLOCK.advance(25)
    first = times()[0]
    assert [at - first for at in times()] == [0, 10 * SECOND, 20 * SECOND]


async def test_items_of_a_batch_are_starts(app: App) -> None:
    await app.enqueue_many(batched(str(number)) for number in range(9))
    async with app.worker():
        await CLOCK.advance(25)
    assert exceeded(Rate(4, per=10), times()) == []
    assert len(times()) == 9


async def test_a_worker_with_a_rate_is_ready_and_idle_while_it_waits(app: App) -> None:
    await app.enqueue_many(note(str(number)) for number in range(3))
    async with app.worker(concurrency=RateLimited(1, 3600)) as worker:
        await worker.idle()
        assert len(starts) == 1
        await CLOCK.advance(minutes=10)
        assert worker.ready


async def test_a_key_that_cannot_be_told_is_reported_and_counts_as_none(app: App) -> None:
    await app.enqueue_many(broken(str(number)) for number in range(3))
    async with app.worker() as worker:
        await worker.idle()
    assert len(starts) == 3
    assert reported == ["per: KeyError('no such tag')"] * 3


async def test_both_the_workers_rate_and_the_types_hold(app: App) -> None:
    await app.enqueue_many(slow_going(str(number)) for number in range(9))
    await app.enqueue_many(note("other") for _ in range(9))
    async with app.worker(concurrency=RateLimited(5, 10, "token")):
        await CLOCK.advance(60)
    assert exceeded(Rate(5, per=10, algorithm="token"), times()) == []
    assert exceeded(Rate(3, per=10), [at for name, at in starts if name != "other"]) == []
    assert len(times()) == 18


async def test_it_does_not_matter_how_the_worker_asks(app: App) -> None:
    """A job that would skip the queue takes its turn."""
    async with app.worker(concurrency=RateLimited(2, 10)):
        for _ in range(4):
            await app.enqueue(note("me"), skip_queue=True)
        await CLOCK.advance(9)
        assert len(times()) == 2
        await CLOCK.advance(2)
    assert exceeded(Rate(2, per=10), times()) == []
