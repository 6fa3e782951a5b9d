"""An app as a user would write it: in a module of its own, on the store that $ROPEWALK_URL names."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Annotated
from uuid import UUID

from ropewalk import App, Context, Redrive, Secret, job
from ropewalk.policies import Balanced, Unlimited


@job
async def add(a: int, b: int) -> int:
    return a + b


@job(max_attempts=1)
async def divide(a: int, b: int) -> float:
    return a / b


@job
async def linger(ctx: Context, here: str) -> str:
    """Says that it runs, and runs until it is told to go."""
    ctx.progress(50, "half way")
    Path(here, "lingering").write_text(str(os.getpid()))
    while not Path(here, "go").exists():
        await asyncio.sleep(0.02)
    return "gone"


@job
def deaf_thread(here: str) -> None:
    Path(here, "lingering").touch()
    threading.Event().wait()


@job
async def deaf_task(here: str) -> None:
    Path(here, "lingering").touch()
    while True:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            continue


@job
async def block_the_loop(here: str) -> None:
    Path(here, "lingering").touch()
    time.sleep(3600)


@job
def inherited() -> str:
    """What a program that a handler starts has of its worker: descriptors, and words in the environment."""
    tell = "import os; print([fd for fd in os.listdir('/dev/fd') if int(fd) > 3], 'ROPEWALK_PARENT_LINK' in os.environ)"
    return subprocess.run(
        [sys.executable, "-c", tell], capture_output=True, text=True, check=True, close_fds=False
    ).stdout


@job
async def sign_in(ctx: Context, user: str, number: Annotated[str, Secret], api_key: str) -> None:
    ctx.log.info("signing in", extra={"user": user, "token": "t"})
    if user == "eve":
        raise PermissionError("she is not let in")


@dataclass
class Line:
    price: Decimal
    due: date


@job(max_attempts=1)
async def bill(  # every kind of value that JSON has no word for
    *, amount: Decimal, day: date, at: datetime, customer: UUID, seal: bytes, marks: set[int], lines: list[Line]
) -> str:
    if amount < 0:
        raise ValueError(f"a bill of {amount}")
    return f"{amount}"


TYPES = (add, bill, divide, sign_in, inherited, linger, deaf_thread, deaf_task, block_the_loop)

app = App(jobs=TYPES)
fast = app.worker(
    queues=["fast"],
    types=[divide, add],
    concurrency=Balanced(3),
    redrive=Redrive(types=[divide], every=0.2, max_times=1),
)
unbounded = app.worker(types=[add], concurrency=Unlimited())
several = app.worker(types=[add], concurrency=4, processes=2)
impatient = app.worker(grace=0.1)
not_an_app = object()
