"""The job types of the demo: ordinary handlers, some of which fail on purpose.

`ropewalk worker ropewalk.cli.demo.jobs:app` runs them, on the store that $ROPEWALK_URL names.
"""

from __future__ import annotations

import asyncio
import os
import time
from dataclasses import dataclass
from typing import Final

from ropewalk import Abort, App, Backoff, Context, LeaseLost, job

STEP_SECONDS: Final = 0.15
"""How long one step of work takes; every handler makes at least one."""
MEDIA_STEP_SECONDS: Final = 0.2
"""How long a step of the two long jobs takes, so that there is time to kill a worker in the middle."""
REFUSED: Final = "late write refused"
"""What `transcribe` logs when it writes through a lease that it has lost."""


@dataclass(frozen=True)
class Processed:
    """The result of `encode_video` and `transcribe`."""

    file: str
    resumed_from: int
    """The percentage that an earlier attempt had already done."""


@dataclass(frozen=True)
class Crunched:
    """The result of `crunch`: how many primes it found, and in which process it ran."""

    primes: int
    pid: int


class MailServerBusy(Exception):
    """The error of `send_email`, which is retried."""


class LedgerClosed(Exception):
    """The error of `charge_card`, which is not retried."""


@job
async def resize_image(ctx: Context, file: str) -> None:
    """Report progress and succeed."""
    for percent in range(0, 101, 10):
        ctx.progress(percent)
        await work()


@job(backoff=Backoff.constant(0.5))
async def send_email(ctx: Context, to: str) -> str:
    """Fail twice, and succeed in the third attempt."""
    await work()
    if ctx.attempt < 3:
        raise MailServerBusy("451 try again later")
    return "250 accepted"


@job
async def refund(order: int, cents: int) -> str:
    """Undo `charge_card`, whose compensation this is."""
    await work()
    return f"{cents} cents back for order {order}"


@job(on_failure=refund)
async def charge_card(order: int, cents: int) -> None:
    """Fail for good."""
    await work()
    raise Abort(LedgerClosed(f"charged, but order {order} cannot be booked"))


@job(executor="process")
def crunch(ctx: Context, upto: int) -> Crunched:
    """Compute in a process of its own, for which the event loop of the worker never waits."""
    primes = 0
    for number in range(2, upto):
        if number % 5_000 == 0:
            ctx.progress(100 * number / upto)
        primes += all(number % divisor for divisor in range(2, int(number**0.5) + 1))
    return Crunched(primes, os.getpid())


@job
async def nightly_digest(day: str) -> str:
    """Succeed, after the delay with which it is enqueued."""
    await work()
    return f"digest of {day}"


@job
async def encode_video(ctx: Context, file: str) -> Processed:
    """Continue from the checkpoint of the last attempt."""
    begun_at = done = int(ctx.last_checkpoint or 0)
    while done < 100:
        await work(MEDIA_STEP_SECONDS)
        done += 10
        ctx.progress(done)
        await ctx.checkpoint(done)
    return Processed(file, begun_at)


@job
def transcribe(ctx: Context, file: str) -> Processed:
    """Continue from the checkpoint of the last attempt, in a thread, which cannot be stopped from outside.

    Only the store can refuse the writes of such a handler after its lease was lost.
    """
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
    """Stand for real work by sleeping."""
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
