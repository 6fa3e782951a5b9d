"""The log of `ropewalk worker`: one line for each event."""

from __future__ import annotations

import logging
import multiprocessing
from collections.abc import AsyncGenerator, AsyncIterator, Collection
from contextlib import asynccontextmanager
from typing import Final

from ropewalk.app import App
from ropewalk.cli import render
from ropewalk.domain.failure import ErrorInfo
from ropewalk.domain.jobs.record import DEFAULT_TENANT
from ropewalk.logging import JsonFormatter, TextFormatter
from ropewalk.observe.events import Event
from ropewalk.runtime.system import SystemRuntime

LEVELS: Final = ("debug", "info", "warning", "error")
FORMATS: Final = ("text", "json")
FORMAT: Final = "%(asctime)s %(levelname)s %(message)s"
FORMAT_OF_SEVERAL: Final = "%(asctime)s %(levelname)s %(processName)s: %(message)s"
LEVEL_OF: Final = {
    "progress": logging.DEBUG,  # handlers may report progress very often
    "failed": logging.ERROR,
    "dead_lettered": logging.ERROR,
    "expired": logging.ERROR,
    "lease_lost": logging.WARNING,
    "reclaimed": logging.WARNING,
    "backlog": logging.WARNING,
}

logger = logging.getLogger("ropewalk.worker")


def start_logging(
    level: str, *, form: str = "text", name: str | None = None, secret_keys: Collection[str] = ()
) -> None:
    """Log to stderr, unless the module of the app has configured logging itself.

    `name` is the name of one of several processes, which appears in every line; in a format of your own it is
    `%(processName)s`.
    """
    if name is not None:
        multiprocessing.current_process().name = name
    handler = logging.StreamHandler()
    if form == "json":
        handler.setFormatter(JsonFormatter(secret_keys=secret_keys))
    else:
        handler.setFormatter(TextFormatter(FORMAT if name is None else FORMAT_OF_SEVERAL, secret_keys=secret_keys))
    logging.basicConfig(level=level.upper(), handlers=[handler])
    logger.setLevel(level.upper())


@asynccontextmanager
async def log_events(app: App) -> AsyncGenerator[None]:
    """Log the events of the app while the block runs; if only warnings are logged, successes cost nothing."""
    runtime = SystemRuntime()
    failures_only = not logger.isEnabledFor(logging.INFO)
    task = runtime.spawn(_log(app.events(every_tenant=True, failures_only=failures_only)), name="ropewalk-log")
    try:
        yield
        await runtime.sleep(0.02)  # the last events have not reached the task yet
    finally:
        task.cancel()
        await task.finished()


async def _log(events: AsyncIterator[Event]) -> None:
    shown: tuple[str, int] | None = None
    async for event in events:
        if logger.isEnabledFor(level := level_of(event)):
            attempt = event.job_id, event.attempt
            logger.handle(record_of(event, level, with_traceback=attempt != shown))
            shown = attempt if event.error is not None else None


def level_of(event: Event) -> int:
    """Return the level of an event: a failure that is retried is a warning, and a final failure is an error."""
    return logging.WARNING if event.will_retry else LEVEL_OF.get(event.kind, logging.INFO)


def record_of(event: Event, level: int, *, with_traceback: bool = True) -> logging.LogRecord:
    """Return a log record with a line for people, the facts of the event as fields, and the traceback of a failure.

    The last failure of a job causes two events, one of the attempt and one of the job; its traceback is logged once.
    """
    fields: dict[str, object] = {
        "job_event": event.kind,
        "job_id": event.job_id,
        "job_type": event.type,
        "job_attempt": event.attempt,
        "job_queue": event.queue,
        "job_tenant": event.tenant,
        "will_retry": event.will_retry,
        "schedule": event.schedule,
        "fire_time": None if event.fire_time is None else event.fire_time.isoformat(),
        "error": None if event.error is None else _error(event.error),
    }
    record = logger.makeRecord(logger.name, level, __file__, 0, "%s", (line_of(event),), None, extra=fields)
    if with_traceback and event.error is not None and event.error.traceback:
        record.exc_text = render.safe_lines(event.error.traceback.rstrip())
    return record


def line_of(event: Event) -> str:
    """Return an event as one line of `name=value` pairs."""
    fields = [event.kind, f"type={event.type}", f"job={event.job_id}", f"attempt={event.attempt}"]
    if event.tenant != DEFAULT_TENANT:
        fields.append(f"tenant={event.tenant}")
    if event.will_retry is not None:
        fields.append(f"will_retry={'yes' if event.will_retry else 'no'}")
    if event.schedule is not None:
        fields.append(f"schedule={event.schedule!r}")
    if event.fire_time is not None:
        fields.append(f"fire_time={event.fire_time.isoformat()}")
    if event.percent is not None:
        fields.append(f"percent={event.percent:.0f}")
    if event.message is not None:
        fields.append(f"message={event.message!r}")
    if event.error is not None:
        fields.append(f"error={_error(event.error)!r}")
    return render.safe(" ".join(fields))


def _error(error: ErrorInfo) -> str:
    return f"{error.type or error.category.value}: {error.message}"
