"""The jobs the torture is done to. Each leaves a line when it starts and one when it comes to its end."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from pathlib import Path

from ropewalk import Abort, Backoff, Context, job
from tests.torture.history import Recorder

PATIENT = 50
"""attempts and crashes: so many that being killed from outside never condemns an innocent job"""

recorder: Recorder | None = None


@job(max_attempts=PATIENT, max_crashes=PATIENT)
async def quick(ctx: Context) -> None:
    started(ctx)
    effect(ctx)


@job(max_attempts=PATIENT, max_crashes=PATIENT)
async def nap(ctx: Context, seconds: float) -> float:
    started(ctx)
    await asyncio.sleep(seconds)
    effect(ctx)
    return seconds


@job(max_attempts=PATIENT, max_crashes=PATIENT, backoff=Backoff.constant(0.2))
async def stumble(ctx: Context) -> int:
    """Fails in its first attempt."""
    started(ctx)
    if ctx.attempt == 1:
        raise ConnectionError("stumbled")
    effect(ctx)
    return ctx.attempt


@job(max_attempts=PATIENT, max_crashes=PATIENT)
async def clean_up(ctx: Context, order: int) -> int:
    """Compensates `book`."""
    started(ctx)
    await asyncio.sleep(0.02)
    effect(ctx)
    return order


@job(max_attempts=PATIENT, max_crashes=PATIENT, on_failure=clean_up)
async def book(ctx: Context, order: int) -> None:
    """Fails for good, with a compensation."""
    started(ctx)
    await asyncio.sleep(0.05)
    raise Abort(f"order {order} cannot be booked")


@job
async def innocent(ctx: Context, seconds: float) -> None:
    """Built-in limits: three attempts, three crashes."""
    started(ctx)
    await asyncio.sleep(seconds)
    effect(ctx)


@job
async def linger(ctx: Context, until: str) -> None:
    """Runs until that file is there; with the built-in limits."""
    started(ctx)
    while not Path(until).exists():
        await asyncio.sleep(0.05)
    effect(ctx)


@job(max_attempts=1)
async def once(ctx: Context, seconds: float) -> None:
    """May start a single time."""
    started(ctx)
    await asyncio.sleep(seconds)
    effect(ctx)


@job
async def poison(ctx: Context) -> None:
    """Takes its worker with it, whenever it runs."""
    started(ctx)
    os.kill(os.getpid(), signal.SIGKILL)
    await asyncio.Event().wait()


@job
async def listen(ctx: Context, seconds: float) -> None:
    """Says why it is cancelled, if it is."""
    started(ctx)
    try:
        await asyncio.sleep(seconds)
    except asyncio.CancelledError:
        heard(ctx)
        raise


@job
def listen_in_thread(ctx: Context, seconds: float) -> None:
    """The same for a handler that nobody can stop: it looks."""
    started(ctx)
    end = time.monotonic() + seconds
    while not ctx.cancelled and time.monotonic() < end:
        time.sleep(0.05)
    heard(ctx)


@job
async def serve(ctx: Context, seconds: float) -> None:
    """Says for whom it starts, and when."""
    assert recorder is not None
    recorder.put("started", tenant=ctx.tenant, at=time.monotonic())
    await asyncio.sleep(seconds)


ALL = (quick, nap, stumble, clean_up, book, innocent, linger, once, poison, listen, listen_in_thread)


def started(ctx: Context) -> None:
    assert recorder is not None
    recorder.put("started", ctx.id, fence=ctx.fence, attempt=ctx.attempt)


def effect(ctx: Context) -> None:
    assert recorder is not None
    recorder.put("effect", ctx.id, fence=ctx.fence, attempt=ctx.attempt)


def heard(ctx: Context) -> None:
    assert recorder is not None
    recorder.put("heard", ctx.id, fence=ctx.fence, reason=ctx.cancellation.reason.value if ctx.cancellation else None)
