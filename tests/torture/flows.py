"""Jobs that hang together: they queue others, spawn others, wait for others. Written like those of jobs.py."""

from __future__ import annotations

import asyncio

from ropewalk import Backoff, Context, Result, job
from tests.torture.jobs import PATIENT, effect, started

STUMBLES_EVERY = 7
"""leaves: one in so many fails in its first attempt"""
WRAPPED_UP = 1_000
"""what wrapping up adds to the sum of its group"""


@job(max_attempts=PATIENT, max_crashes=PATIENT, backoff=Backoff.constant(0.05))
async def leaf(ctx: Context, number: int) -> Result[int, int]:
    """Adds its number to the sum that is the value of its group."""
    started(ctx)
    if number % STUMBLES_EVERY == STUMBLES_EVERY - 1 and ctx.attempt == 1:
        raise ConnectionError("stumbled")
    effect(ctx)
    return ctx.result(number, append="sum")


@job(max_attempts=PATIENT, max_crashes=PATIENT)
async def wrap_up(ctx: Context) -> Result[int, int]:
    """Comes after all leaves of its fan."""
    started(ctx)
    effect(ctx)
    return ctx.result(WRAPPED_UP, append="sum")


@job(max_attempts=PATIENT, max_crashes=PATIENT)
async def fan(ctx: Context, width: int) -> Result[None, int]:
    """Its leaves are queued by its completion."""
    started(ctx)
    effect(ctx)
    return ctx.queue(*(leaf(number) for number in range(width))).next(wrap_up())


@job(max_attempts=PATIENT, max_crashes=PATIENT)
async def brood(ctx: Context, width: int) -> None:
    """Its leaves are spawned while it runs, by every attempt, and there once."""
    started(ctx)
    await ctx.spawn_many(leaf(number) for number in range(width))
    await asyncio.sleep(0.02)
    effect(ctx)


@job(max_attempts=PATIENT, max_crashes=PATIENT)
async def join(ctx: Context) -> None:
    """Waits for whatever it is told to wait for."""
    started(ctx)
    effect(ctx)


ALL = (leaf, wrap_up, fan, brood, join)
