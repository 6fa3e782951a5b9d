"""How jobs are handed in: one after another, by a hundred callers at once, in batches, or a while apart.

Timed where the submitting happens, which for a peer is another process in an environment of its own: therefore this
needs nothing but the standard library, and peers/node/pace.mjs says the same again for Node.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, Literal, Protocol, TypeAlias, assert_never

Pace: TypeAlias = Literal["one", "hundred", "bulk", "apart"]

CALLERS: Final = 100
BATCH: Final = 1_000
APART_SECONDS: Final = 0.02


class Submitting(Protocol):
    async def submit(self, number: int) -> None:
        """Queue one job; returns when it is durable."""
        ...

    async def submit_many(self, numbers: range) -> None:
        """Queue many in one batch; returns when they are durable."""
        ...


@dataclass(frozen=True, slots=True)
class Submitted:
    seconds: float
    asked_ns: list[int] = field(default_factory=list)
    """when each was asked for, by the clock of the board; only of those handed in apart"""


async def submit(queue: Submitting, pace: Pace, numbers: range) -> Submitted:
    began = time.perf_counter()
    asked_ns: list[int] = []
    match pace:
        case "one":
            for number in numbers:
                await queue.submit(number)
        case "hundred":
            left = iter(numbers)
            await asyncio.gather(*(_caller(queue, left) for _ in range(CALLERS)))
        case "bulk":
            for start in range(0, len(numbers), BATCH):
                await queue.submit_many(numbers[start : start + BATCH])
        case "apart":
            asked_ns = [await _after_a_while(queue, number) for number in numbers]
        case _:
            assert_never(pace)
    return Submitted(time.perf_counter() - began, asked_ns)


async def _caller(queue: Submitting, left: Iterator[int]) -> None:
    for number in left:
        await queue.submit(number)


async def _after_a_while(queue: Submitting, number: int) -> int:
    await asyncio.sleep(APART_SECONDS)
    asked_ns = time.monotonic_ns()
    await queue.submit(number)
    return asked_ns
