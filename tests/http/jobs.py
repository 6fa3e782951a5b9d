"""Job types of the tests of the service."""

from __future__ import annotations

from typing import Final

from ropewalk import Context, job


@job
async def add(a: int, b: int) -> int:
    return a + b


@job(max_attempts=1)
async def fail(message: str = "no luck") -> None:
    raise ValueError(message)


@job
async def stay(ctx: Context, seconds: float = 60.0) -> str:
    await ctx.sleep(seconds)
    return "stayed"


@job
async def spread(ctx: Context, count: int) -> None:
    for number in range(count):
        await ctx.spawn(add(number, 1))


ALL_JOBS: Final = (add, fail, stay, spread)
