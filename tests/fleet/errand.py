"""An app as a user would write it, in a module, for workers in processes of their own."""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from pathlib import Path
from typing import Any

from ropewalk import App, Context, JobType, job
from ropewalk.policies import Balanced, Offer


@job
async def who() -> int:
    return os.getpid()


@job
async def linger(ctx: Context, here: str) -> str:
    """Says that it runs, and runs until it is told to go."""
    Path(here, "lingering").write_text(str(os.getpid()))
    while not Path(here, "go").exists():
        await asyncio.sleep(0.02)
    return "gone"


@job
def deaf(here: str) -> None:
    Path(here, "lingering").touch()
    threading.Event().wait()


def anything(offer: Offer) -> bool:
    return True


if "BREAK" in os.environ:
    1 / 0  # noqa: B018 # as a deployment breaks a module
if "ROPEWALK_URL" in os.environ:  # in a process that a test started: its server is not durable, which is logged
    logging.getLogger("ropewalk.postgres").setLevel("ERROR")
TYPES: list[JobType[..., Any, Any]] = [who, linger, deaf]
app = App(os.environ.get("ROPEWALK_URL", "sqlite:///nowhere.db"), jobs=TYPES, allow_weaker_durability=True)
workers = app.worker(processes=2, concurrency=Balanced(3), accept=anything, lease=1, grace=1)
