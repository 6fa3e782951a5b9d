"""Every pace hands in every job once, in the way it is named after."""

from __future__ import annotations

import asyncio

from benchmarks import pace

NUMBERS = range(7, 7 + 2 * pace.BATCH + 5)


class Taken:
    """A queue that writes down what it was given; a submission lasts until the loop comes round again."""

    def __init__(self) -> None:
        self.ones: list[int] = []
        self.batches: list[range] = []
        self.at_once = self.at_once_max = 0

    async def submit(self, number: int) -> None:
        self.at_once += 1
        self.at_once_max = max(self.at_once_max, self.at_once)
        await asyncio.sleep(0)
        self.at_once -= 1
        self.ones.append(number)

    async def submit_many(self, numbers: range) -> None:
        self.batches.append(numbers)


async def test_one_after_another() -> None:
    taken = Taken()
    submitted = await pace.submit(taken, "one", NUMBERS)
    assert taken.ones == list(NUMBERS)
    assert taken.at_once_max == 1
    assert submitted.seconds > 0


async def test_a_hundred_at_once() -> None:
    taken = Taken()
    await pace.submit(taken, "hundred", NUMBERS)
    assert sorted(taken.ones) == list(NUMBERS)
    assert taken.at_once_max == pace.CALLERS


async def test_in_batches() -> None:
    taken = Taken()
    await pace.submit(taken, "bulk", NUMBERS)
    assert [number for batch in taken.batches for number in batch] == list(NUMBERS)
    assert [len(batch) for batch in taken.batches] == [pace.BATCH, pace.BATCH, 5]


async def test_apart_says_when_each_was_asked_for() -> None:
    taken = Taken()
    submitted = await pace.submit(taken, "apart", NUMBERS[:3])
    assert taken.ones == list(NUMBERS[:3])
    steps = [later - sooner for sooner, later in zip(submitted.asked_ns, submitted.asked_ns[1:], strict=False)]
    assert len(submitted.asked_ns) == 3
    assert all(step >= pace.APART_SECONDS * 1e9 * 0.9 for step in steps)
