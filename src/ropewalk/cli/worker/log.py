"""The log of a worker: a line for everything that happens."""

from __future__ import annotations

import logging
import multiprocessing
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from ropewalk.app import App
from ropewalk.cli import render
from ropewalk.domain.jobs.record import DEFAULT_TENANT
from ropewalk.observe.events import Event
from ropewalk.runtime.system import SystemRuntime

LEVELS: Final = ("debug", "info", "warning", "error")
FORMAT: Final = "%(asctime)s %(levelname)s %(message)s"
FORMAT_OF_SEVERAL: Final = "%(asctime)s %(levelname)s %(processName)s: %(message)s"

logger = logging.getLogger("ropewalk.worker")


def start_logging(level: str, *, name: str | None = None) -> None:
    """To stderr, unless the app's own module has set logging up: then it stays as it is there.

    One of several processes has a name, in every line of its log; `%(processName)s` has it in formats of your own.
    """
    if name is not None:
        multiprocessing.current_process().name = name
    logging.basicConfig(level=level.upper(), format=FORMAT if name is None else FORMAT_OF_SEVERAL)
    logger.setLevel(level.upper())


@asynccontextmanager
async def log_events(app: App) -> AsyncGenerator[None]:
    """Log what happens in here. Below the level it costs nothing: nobody listens."""
    if not logger.isEnabledFor(logging.INFO):
        yield
        return
    runtime = SystemRuntime()
    task = runtime.spawn(_log(app.events(every_tenant=True)), name="ropewalk-log")
    try:
        yield
        await runtime.sleep(0.02)  # the last events are still on their way through the loop
    finally:
        task.cancel()
        await task.finished()


async def _log(events: AsyncIterator[Event]) -> None:
    async for event in events:
        # Progress comes as often as a handler likes: it would drown the rest.
        logger.log(logging.DEBUG if event.kind == "progress" else logging.INFO, "%s", line_of(event))


def line_of(event: Event) -> str:
    fields = [event.kind, f"type={event.type}", f"job={event.job_id}", f"attempt={event.attempt}"]
    if event.tenant != DEFAULT_TENANT:
        fields.append(f"tenant={event.tenant}")
    if event.will_retry is not None:
        fields.append(f"will_retry={'yes' if event.will_retry else 'no'}")
    if event.percent is not None:
        fields.append(f"percent={event.percent:.0f}")
    if event.message is not None:
        fields.append(f"message={event.message!r}")
    if event.error is not None:
        fields.append(f"error={f'{event.error.type or event.error.category.value}: {event.error.message}'!r}")
    return render.safe(" ".join(fields))
