"""How closely an app is watched, and how long it takes to work off jobs that are there."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased

from benchmarks.payload import TEXT
from benchmarks.subjects.subject import StoreName
from ropewalk import App, Context, Event, Filter, State, job
from ropewalk.integrations.otel import OpenTelemetry

CONCURRENCY: Final = 100
WARM_UP_JOBS: Final = 1000


@job
async def work(number: int, text: str) -> int:
    return number


@job
async def logging_work(ctx: Context, number: int, text: str) -> int:
    ctx.log.info("working", extra={"number": number})
    return number


@dataclass(frozen=True, slots=True)
class Level:
    name: str
    about: str
    options: Callable[[], dict[str, Any]]
    handler: Any = field(default=work)


def _traced(ratio: float) -> OpenTelemetry:
    provider = TracerProvider(sampler=ParentBased(TraceIdRatioBased(ratio)), shutdown_on_exit=False)
    provider.add_span_processor(SpanProcessor())  # spans are made and ended; exporting is another program's cost
    return OpenTelemetry(provider)


def _heard(_: Event) -> None:
    """A hook that does nothing: what telling it costs."""


OFF: Final = Level("off", "nothing is on", lambda: {"metrics": False})
LEVELS: Final = (
    OFF,
    Level("metrics", "counters and histograms", lambda: {"metrics": True}),
    Level("events", "metrics, and a hook that hears every event", lambda: {"on_event": _heard}),
    Level("sampled", "metrics, and one trace in a hundred", lambda: {"tracing": _traced(0.01)}),
    Level("all", "metrics, events, and one trace in a hundred", lambda: {"on_event": _heard, "tracing": _traced(0.01)}),
    Level("traced", "metrics, and every job traced", lambda: {"tracing": _traced(1.0)}),
    Level("logs", "metrics, and every job keeps a log line", dict[str, Any], logging_work),
)


async def drain(level: Level, store: StoreName, jobs: int, parent: Path | None) -> float:
    """Seconds of processor time a job took, in all threads: steadier than the clock where others work, too."""
    directory = Path(tempfile.mkdtemp(prefix="rw-", dir=parent))
    url = "memory://" if store == "memory" else f"sqlite:///{directory / 'jobs.db'}"
    app = App(url, jobs=[work, logging_work], **level.options())
    try:
        async with app:
            await _served(app, level, WARM_UP_JOBS)
            seconds = await _served(app, level, jobs)
            completed = await app.count(Filter(states=(State.COMPLETED,)))
            assert completed == WARM_UP_JOBS + jobs, f"{completed} of {WARM_UP_JOBS + jobs} jobs completed"
        return seconds / jobs
    finally:
        shutil.rmtree(directory)


async def _served(app: App, level: Level, jobs: int) -> float:
    for start in range(0, jobs, 1000):
        numbers = range(start, min(jobs, start + 1000))
        await app.enqueue_many(level.handler(number=number, text=TEXT) for number in numbers)
    began = time.process_time()
    async with app.worker(concurrency=CONCURRENCY) as worker:
        await worker.idle()
        return time.process_time() - began
