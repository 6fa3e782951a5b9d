"""How closely an app is watched, and how long it takes to work off jobs that are there."""

from __future__ import annotations

import asyncio
import gc
import tempfile
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased

from benchmarks.payload import TEXT
from benchmarks.server import Server
from benchmarks.subjects.subject import StoreName
from ropewalk import App, Context, Event, Filter, State, job
from ropewalk.integrations.otel import OpenTelemetry

CONCURRENCY: Final = 100
WARM_UP_JOBS: Final = 1000
RATIO: Final = 0.01


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
    hears: bool = False
    ratio: float | None = None
    """of traces that are recorded; None without tracing"""
    metrics: bool = True
    handler: Any = field(default=work)


OFF: Final = Level("off", "nothing is on", metrics=False)
LEVELS: Final = (
    Level("metrics", "counters and histograms"),
    Level("events", "metrics, and a hook that hears every event", hears=True),
    Level("sampled", "metrics, and traces of which one in a hundred is recorded", ratio=RATIO),
    Level("all", "metrics, events, and traces of which one in a hundred is recorded", hears=True, ratio=RATIO),
    Level("traced", "metrics, events, and every job recorded", hears=True, ratio=1.0),
    Level("logs", "metrics, and every job keeps a log line", handler=logging_work),
)


class Discarding(SpanExporter):
    """Where spans would leave the process: how much that costs is another program's figure."""

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        return SpanExportResult.SUCCESS


def _heard(_: Event) -> None:
    """A hook that does nothing: what telling it costs."""


class Cost(NamedTuple):
    """Of one job, in seconds."""

    cpu: float
    """of all threads of this process: steadier than the clock where others work, too"""
    wall: float


async def drain(level: Level, jobs: int, place: AbstractContextManager[str]) -> Cost:
    provider = TracerProvider(sampler=ParentBased(TraceIdRatioBased(level.ratio or 0.0)), shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(Discarding()))
    with place as url:
        app = App(
            url,
            jobs=[work, logging_work],
            metrics=level.metrics,
            on_event=_heard if level.hears else None,
            tracing=None if level.ratio is None else OpenTelemetry(provider),
        )
        try:
            async with app:
                await _served(app, level.handler, WARM_UP_JOBS)
                cost = await _served(app, level.handler, jobs)
                completed = await app.count(Filter(states=(State.COMPLETED,)))
                assert completed == WARM_UP_JOBS + jobs, f"{completed} of {WARM_UP_JOBS + jobs} jobs completed"
            return cost
        finally:
            provider.shutdown()


@contextmanager
def fresh(store: StoreName, running: Server | None, parent: Path | None) -> Generator[str]:
    """The URL of an empty store."""
    if running is not None:
        with running.fresh_database() as dsn:
            yield dsn
        return
    with tempfile.TemporaryDirectory(prefix="rw-", dir=parent) as directory:
        yield "memory://" if store == "memory" else f"sqlite:///{directory}/jobs.db"


async def _served(app: App, handler: Callable[..., Any], jobs: int) -> Cost:
    for start in range(0, jobs, 1000):
        numbers = range(start, min(jobs, start + 1000))
        # One by one: each job has a trace of its own, as most have.
        await asyncio.gather(*(app.enqueue(handler(number=number, text=TEXT)) for number in numbers))
    gc.collect()
    gc.freeze()  # what is there already is not looked through while the time is taken
    began, computed = time.perf_counter(), time.process_time()
    async with app.worker(concurrency=CONCURRENCY) as worker:
        await worker.idle()
        took = Cost((time.process_time() - computed) / jobs, (time.perf_counter() - began) / jobs)
    gc.unfreeze()
    return took
