"""The job types of the demo: ordinary handlers, with the trouble they run into written in.

`ropewalk worker ropewalk.cli.demo.jobs:app` serves them, on the store that $ROPEWALK_URL names.
"""

from __future__ import annotations

import asyncio
import os
import time
from dataclasses import dataclass
from typing import Final

from ropewalk import Abort, App, Backoff, Context, LeaseLost, job

STEP_SECONDS: Final = 0.15
"""of work: every handler here takes at least one"""
MEDIA_STEP_SECONDS: Final = 0.2
"""of the two long ones: there must be time to kill a worker in the middle"""
REFUSED: Final = "late write refused"


@dataclass(frozen=True)
class Processed:
    file: str
    resumed_from: int
    """percent that an earlier attempt had already done"""


@dataclass(frozen=True)
class Crunched:
    primes: int
    pid: int


class MailServerBusy(Exception):
    pass


class LedgerClosed(Exception):
    pass


@job
async def resize_image(ctx: Context, file: str) -> None:
    for percent in range(0, 101, 10):
        ctx.progress(percent)
        await work()


@job(backoff=Backoff.constant(0.5))
async def send_email(ctx: Context, to: str) -> str:
    await work()
    if ctx.attempt < 3:
        raise MailServerBusy("451 try again later")
    return "250 accepted"


@job
async def refund(order: int, cents: int) -> str:
    await work()
    return f"{cents} cents back for order {order}"


@job(on_failure=refund)
async def charge_card(order: int, cents: int) -> None:
    await work()
    raise Abort(LedgerClosed(f"charged, but order {order} cannot be booked"))


@job(executor="process")
def crunch(ctx: Context, upto: int) -> Crunched:
    """In a process of its own: the worker's loop never waits for it, and it can be killed."""
    primes = 0
    for number in range(2, upto):
        if number % 5_000 == 0:
            ctx.progress(100 * number / upto)
        primes += all(number % divisor for divisor in range(2, int(number**0.5) + 1))
    return Crunched(primes, os.getpid())


@job
async def nightly_digest(day: str) -> str:
    await work()
    return f"digest of {day}"


@job
async def encode_video(ctx: Context, file: str) -> Processed:
    """Goes on where the last attempt got to."""
    begun_at = done = int(ctx.last_checkpoint or 0)
    while done < 100:
        await work(MEDIA_STEP_SECONDS)
        done += 10
        ctx.progress(done)
        await ctx.checkpoint(done)
    return Processed(file, begun_at)


@job
def transcribe(ctx: Context, file: str) -> Processed:
    """The same in a thread, which nobody can stop from outside: only the store can refuse what it says."""
    begun_at = done = int(ctx.last_checkpoint or 0)
    while done < 100:
        time.sleep(MEDIA_STEP_SECONDS)  # noqa: TID251 # in place of real work
        done += 10
        ctx.progress(done)
        try:
            ctx.sync.checkpoint(done)
        except LeaseLost as lost:
            ctx.log.warning("%s: %s", REFUSED, lost.reason)
            raise
    return Processed(file, begun_at)


async def work(seconds: float = STEP_SECONDS) -> None:
    await asyncio.sleep(seconds)  # noqa: TID251 # in place of real work


TYPES: Final = (
    resize_image,
    send_email,
    charge_card,
    refund,
    crunch,
    nightly_digest,
    encode_video,
    transcribe,
)

app = App(jobs=TYPES)
