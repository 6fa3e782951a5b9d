"""O7: spans of enqueues and attempts hang together across stores, retries and children; off, nothing is imported."""

from __future__ import annotations

import logging
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from typing import Any

import pytest
from opentelemetry import context, trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import (
    ALWAYS_OFF,
    ALWAYS_ON,
    DEFAULT_ON,
    ParentBased,
    Sampler,
    TraceIdRatioBased,
)
from opentelemetry.trace import SpanKind, StatusCode

from ropewalk import Abort, App, Context, Result, Retry, State, job, schedule
from ropewalk.domain.jobs.flags import UNRECORDED
from ropewalk.domain.jobs.outcome import Released
from ropewalk.domain.jobs.record import JobRecord
from ropewalk.integrations.otel import OpenTelemetry
from ropewalk.ports.store.capabilities import SCHEDULES
from ropewalk.ports.tracing import Tracing
from ropewalk.testing import FakeRuntime
from ropewalk.worker.services.scheduler import Scheduler
from tests.apps import MakeApp, on_embedded_stores
from tests.domain.records import a_job


@job
async def leaf(n: int) -> str:
    return format(trace.get_current_span().get_span_context().span_id, "016x")


@job
def in_a_thread() -> str:
    return format(trace.get_current_span().get_span_context().span_id, "016x")


@job
async def root(ctx: Context) -> Result[None, str]:
    await ctx.spawn(leaf(1))
    return ctx.queue(leaf(2))


@job
async def unlucky(ctx: Context) -> int:
    if ctx.attempt == 1:
        raise Retry(after=0) from ValueError("not yet")
    raise Abort("never")


@job
async def logs(ctx: Context) -> None:
    ctx.log.warning("here")


DROPPED = f"00-{'1' * 32}-{'2' * 16}-00"


class Traces:
    def __init__(self, **options: Any) -> None:
        self.exporter = InMemorySpanExporter()
        self.provider = TracerProvider(shutdown_on_exit=False, **options)
        self.provider.add_span_processor(SimpleSpanProcessor(self.exporter))

    @property
    def tracing(self) -> Tracing:
        return OpenTelemetry(self.provider)

    def spans(self, kind: SpanKind | None = None) -> Sequence[ReadableSpan]:
        return [span for span in self.exporter.get_finished_spans() if kind is None or span.kind is kind]


def ids(span: ReadableSpan) -> tuple[int, int]:
    context = span.get_span_context()
    assert context is not None
    return context.trace_id, context.span_id


def parent_of(span: ReadableSpan) -> tuple[int, int] | None:
    return None if span.parent is None else (span.parent.trace_id, span.parent.span_id)


async def test_an_attempt_hangs_under_its_enqueue(make_app: MakeApp) -> None:
    """O7: through the store, and in the handler it is the current span."""
    traces = Traces()
    app = make_app(leaf, in_a_thread, tracing=traces.tracing)
    async with app.running():
        with traces.provider.get_tracer("web").start_as_current_span("request") as request:
            seen = await app.enqueue(leaf(1), id="one", correlation_id="c").result(timeout=10)
        in_thread = await app.enqueue(in_a_thread()).result(timeout=10)
    [sent, *_] = traces.spans(SpanKind.PRODUCER)
    [ran, threaded] = traces.spans(SpanKind.CONSUMER)
    assert parent_of(sent) == (request.get_span_context().trace_id, request.get_span_context().span_id)
    assert parent_of(ran) == ids(sent)
    assert seen == format(ids(ran)[1], "016x") and in_thread == format(ids(threaded)[1], "016x")
    assert dict(ran.attributes or {}) == {
        "messaging.system": "ropewalk",
        "messaging.destination.name": "default",
        "messaging.operation.name": "run",
        "messaging.operation.type": "process",
        "messaging.message.id": "one",
        "messaging.message.body.size": 7,
        "messaging.message.conversation_id": "c",
        "messaging.client.id": (ran.attributes or {})["messaging.client.id"],
        "ropewalk.job.type": "leaf",
        "ropewalk.tenant": "default",
        "ropewalk.attempt": 1,
        "ropewalk.outcome": "completed",
    }
    assert (sent.name, ran.name) == ("enqueue default", "run default")


async def test_children_hang_under_the_attempt_that_queued_them(make_app: MakeApp) -> None:
    """O7: spawned at once or written with the completion."""
    traces = Traces()
    app = make_app(leaf, root, tracing=traces.tracing)
    async with app.running():
        await app.enqueue(root()).group(timeout=10)
    spans = {str((span.attributes or {})["ropewalk.job.type"]): span for span in traces.spans(SpanKind.CONSUMER)}
    leaves = [s for s in traces.spans(SpanKind.CONSUMER) if (s.attributes or {})["ropewalk.job.type"] == "leaf"]
    assert [parent_of(each) for each in leaves] == [ids(spans["root"])] * 2
    assert len(traces.spans(SpanKind.PRODUCER)) == 1


async def test_every_attempt_is_a_span_with_its_error(make_app: MakeApp) -> None:
    """O7: retries carry the context; errors are recorded."""
    traces = Traces()
    app = make_app(unlucky, tracing=traces.tracing)
    async with app.running():
        handle = await app.enqueue(unlucky())
        await app.wait(handle.id, timeout=10)
    [sent] = traces.spans(SpanKind.PRODUCER)
    first, second = traces.spans(SpanKind.CONSUMER)
    assert parent_of(first) == parent_of(second) == ids(sent)
    assert [(each.attributes or {})["ropewalk.attempt"] for each in (first, second)] == [1, 2]
    for span in (first, second):
        assert span.status.status_code is StatusCode.ERROR
        assert [event.name for event in span.events] == ["exception"]
    assert (second.attributes or {})["ropewalk.outcome"] == "aborted"


async def test_a_batch_is_one_producer_span(make_app: MakeApp) -> None:
    traces = Traces()
    app = make_app(leaf, tracing=traces.tracing)
    async with app:
        await app.enqueue_many([leaf(n) for n in range(3)])
        async with app.worker() as worker:
            await worker.idle()
    [sent] = traces.spans(SpanKind.PRODUCER)
    assert (sent.attributes or {})["messaging.batch.message_count"] == 3
    assert [parent_of(each) for each in traces.spans(SpanKind.CONSUMER)] == [ids(sent)] * 3


@on_embedded_stores
async def test_a_fire_of_a_schedule_is_a_producer_span(make_app: MakeApp) -> None:
    """O7: each begins a trace, and all attempts at its job are in it."""
    traces, runtime = Traces(), FakeRuntime()
    timed = schedule("s", every=10, job=unlucky())
    app = make_app(unlucky, tracing=traces.tracing, schedules=[timed], runtime=runtime)
    with traces.provider.get_tracer("main").start_as_current_span("whoever starts the worker"):
        async with app.running():
            await runtime.advance(seconds=25)
    first, second = traces.spans(SpanKind.PRODUCER)
    assert [(span.name, (span.attributes or {})["ropewalk.schedule"]) for span in (first, second)] == [
        ("enqueue default", "s")
    ] * 2
    assert parent_of(first) is parent_of(second) is None and ids(first)[0] != ids(second)[0]
    tried = Counter(parent_of(span) for span in traces.spans(SpanKind.CONSUMER))
    assert tried == {ids(first): 2, ids(second): 2}


@on_embedded_stores
async def test_who_comes_second_to_a_fire_leaves_no_span(make_app: MakeApp) -> None:
    """O7: two schedulers saw it due, one of them enqueued the job."""
    traces, reported = Traces(), list[str]()
    runtime = FakeRuntime()
    app = make_app(leaf, tracing=traces.tracing, runtime=runtime, on_error=lambda _, phase: reported.append(phase))
    async with app, app.worker(scheduler=False) as worker:
        await app.create_schedule("s", every=10, job=leaf(1))
        await runtime.advance(seconds=10)
        schedulers = [Scheduler(worker._started.worker_context, app._app_state.fires) for _ in range(2)]
        found = await SCHEDULES.of(app._app_state.store).due_schedules(after=None, limit=10)
        assert [await each._fire(found) for each in schedulers] == [True, True]
        await worker.idle()
    [fired], [ran] = traces.spans(SpanKind.PRODUCER), traces.spans(SpanKind.CONSUMER)
    assert (parent_of(ran), reported) == (ids(fired), [])


async def test_a_trace_nobody_records_stays_unrecorded(make_app: MakeApp) -> None:
    """O7: what a handler calls does not begin a trace of its own."""
    traces = Traces(sampler=ALWAYS_OFF)
    app = make_app(leaf, tracing=traces.tracing)
    async with app.running():
        seen = await app.enqueue(leaf(1), id="one").result(timeout=10)
        stored = (await app._app_state.store.get("default", ["one"])).jobs["one"].trace
    assert traces.spans() == []
    assert stored is not None
    _, _, span_id, flags = stored.split("-")
    assert (seen, int(flags, 16) & 1) == (span_id, 0)


@pytest.mark.parametrize(
    ("sampler", "recorded"),
    [
        (DEFAULT_ON, False),
        (ParentBased(TraceIdRatioBased(1.0)), False),
        (ALWAYS_OFF, False),
        (ALWAYS_ON, True),
        (TraceIdRatioBased(1.0), True),
        (ParentBased(ALWAYS_OFF, remote_parent_not_sampled=ALWAYS_ON), True),
        (ParentBased(DEFAULT_ON, remote_parent_not_sampled=ALWAYS_ON), True),
    ],
    ids=lambda value: value.get_description() if isinstance(value, Sampler) else "",
)
def test_what_the_sender_dropped_is_for_the_sampler_to_decide(sampler: Sampler, recorded: bool) -> None:
    """O7: those that always drop it are not asked, and that is all the difference."""
    traces = Traces(sampler=sampler)
    traces.tracing.attempt(a_job(trace=DROPPED), "w").ended(Released())
    assert [parent_of(span) for span in traces.spans()] == [(int("1" * 32, 16), int("2" * 16, 16))] * recorded
    assert (traces.tracing.passed_on is None) == recorded


@pytest.mark.parametrize(("flags", "asked"), [("00", 0), ("02", 0), ("01", 1), ("03", 1)])
async def test_of_what_is_passed_on_nobody_is_asked(make_app: MakeApp, flags: str, asked: int) -> None:
    """O7: a dropped trace costs next to nothing."""
    tracing = Counting(f"00-{'1' * 32}-{'2' * 16}-{flags}")
    app = make_app(leaf, tracing=tracing)
    async with app.running():
        seen = await app.enqueue(leaf(1)).result(timeout=10)
    assert (tracing.asked, seen != "2" * 16) == (asked, bool(asked))


class Counting(OpenTelemetry):
    """All jobs are sent with the same trace."""

    def __init__(self, sent_with: str) -> None:
        super().__init__(Traces().provider)
        self.sent_with = sent_with
        self.asked = 0

    def sending(self, jobs: object) -> Any:
        return nullcontext(self.sent_with)

    def attempt(self, job: JobRecord, worker: str) -> Any:
        self.asked += 1
        return super().attempt(job, worker)


@pytest.mark.parametrize(
    "carried",
    [
        lambda here: here,
        lambda here: context.set_value("key", "value", here),
        lambda here: context.Context(dict(here)),
        lambda here: context.Context({**here}),
        lambda here: context.Context(here.items()),
        lambda here: context.Context(zip(here.keys(), here.values(), strict=True)),
        lambda here: context.Context({key: here[key] for key in here if key in here}),
    ],
)
def test_a_context_nobody_records_can_be_carried_on(carried: Callable[[context.Context], context.Context]) -> None:
    """O7: into a thread that did not inherit it, with something put in, or copied as a dict."""
    tracing = Traces().tracing
    entered = tracing.enter(span_of(tracing, DROPPED))
    here = context.get_current()
    tracing.leave(entered)
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(span_in, carried(here)).result() == "2" * 16
    assert len(here) == 1


def span_of(tracing: Tracing, sent_with: str) -> Any:
    """As the engine makes it."""
    job = a_job(trace=sent_with)
    if tracing.passed_on is not None and job.flags & UNRECORDED:
        return tracing.passed_on(sent_with)
    return tracing.attempt(job, "w")


def span_in(carried: context.Context) -> str:
    token = context.attach(carried)
    try:
        return format(trace.get_current_span().get_span_context().span_id, "016x")
    finally:
        context.detach(token)


@pytest.mark.parametrize("flags", ["00", "01"])
async def test_the_state_of_a_trace_travels_with_it(flags: str) -> None:
    """O7: into what the handler calls, recorded or not."""
    traces, sent_with = Traces(), f"00-{'1' * 32}-{'2' * 16}-{flags} vendor=x,other=y"
    tracing = traces.tracing
    entered = tracing.enter(span_of(tracing, sent_with))
    here = trace.get_current_span().get_span_context()
    tracing.leave(entered)
    assert (format(here.trace_id, "032x"), here.trace_flags & 1) == ("1" * 32, int(flags))
    assert here.trace_state.to_header() == "vendor=x,other=y"
    assert not trace.get_current_span().get_span_context().is_valid


@pytest.mark.parametrize("sent_with", ["", "nonsense", f"00-{'0' * 32}-{'2' * 16}-01", f"ff-{'1' * 32}-{'2' * 16}-01"])
def test_a_context_of_another_form_begins_a_trace(sent_with: str) -> None:
    """O7: as if there were none."""
    traces = Traces()
    traces.tracing.attempt(a_job(trace=sent_with), "w").ended(Released())
    [span] = traces.spans()
    assert span.parent is None


async def test_log_lines_name_the_trace(make_app: MakeApp, caplog: pytest.LogCaptureFixture) -> None:
    """O8"""
    traces = Traces()
    app = make_app(logs, tracing=traces.tracing)
    with caplog.at_level(logging.WARNING, logger="ropewalk.job"):
        async with app.running():
            await app.enqueue(logs()).result(timeout=10)
    [span] = traces.spans(SpanKind.CONSUMER)
    [record] = [each for each in caplog.records if each.name == "ropewalk.job"]
    named = vars(record)["job_trace_id"], vars(record)["job_span_id"]
    assert named == (format(ids(span)[0], "032x"), format(ids(span)[1], "016x"))


class OnlyFirst(OpenTelemetry):
    """Traces one attempt and no more."""

    def attempt(self, job: JobRecord, worker: str) -> Any:
        if job.id != "first":
            raise RuntimeError("no more")
        return super().attempt(job, worker)


class Elsewhere:
    """A runtime context (by shape) that is no context variable, as OTEL_PYTHON_CONTEXT may name one."""

    def __init__(self) -> None:
        self._stack = [context.Context()]

    def attach(self, entered: context.Context) -> int:
        self._stack.append(entered)
        return len(self._stack)

    def get_current(self) -> context.Context:
        return self._stack[-1]

    def detach(self, token: int) -> None:
        assert token == len(self._stack)
        self._stack.pop()


@pytest.mark.parametrize("flags", ["00", "01"])
def test_the_current_context_may_be_kept_anywhere(flags: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """O7: by whatever the API was told to keep it."""
    monkeypatch.setattr(context, "_RUNTIME_CONTEXT", Elsewhere())
    tracing = Traces().tracing
    entered = tracing.enter(span_of(tracing, f"00-{'1' * 32}-{'2' * 16}-{flags}"))
    inside = trace.get_current_span().get_span_context()
    tracing.leave(entered)
    assert format(inside.trace_id, "032x") == "1" * 32
    assert not trace.get_current_span().get_span_context().is_valid


def test_what_was_current_around_the_worker_stays() -> None:
    """O7: an attempt that is recorded adds its span to it."""
    token = context.attach(context.set_value("around", "the worker"))
    tracing = Traces().tracing
    entered = tracing.enter(tracing.attempt(a_job(trace=None), "w"))
    assert (context.get_value("around"), trace.get_current_span().is_recording()) == ("the worker", True)
    tracing.leave(entered)
    context.detach(token)


async def test_a_span_is_left_with_its_handler(make_app: MakeApp) -> None:
    """O7: what runs next in the same slot does not find it."""
    app = make_app(leaf, tracing=OnlyFirst(Traces().provider), on_error=lambda *_: None)
    async with app, app.worker(concurrency=1):
        assert int(await app.enqueue(leaf(1), id="first").result(timeout=10), 16)
        assert not int(await app.enqueue(leaf(2)).result(timeout=10), 16)


class Broken:
    passed_on = None

    def sending(self, jobs: object) -> Any:
        raise RuntimeError("sending")

    def firing(self, schedule: str, job: object) -> Any:
        raise RuntimeError("firing")

    def attempt(self, job: object, worker: str) -> Any:
        raise RuntimeError("attempt")

    def enter(self, span: object, /) -> Any:
        raise AssertionError("there is none")

    def leave(self, entered: object, /) -> None:
        raise AssertionError("nothing was entered")


class BrokenSpan:
    trace = "00-" + "1" * 32 + "-" + "3" * 16 + "-01"
    passed_on = None

    def sending(self, jobs: object) -> Any:
        return nullcontext("00-" + "1" * 32 + "-" + "2" * 16 + "-01")

    def firing(self, schedule: str, job: object) -> BrokenSpan:
        return self

    def fired(self) -> None:
        raise RuntimeError("fired")

    def attempt(self, job: object, worker: str) -> BrokenSpan:
        return self

    def enter(self, span: object, /) -> Any:
        raise RuntimeError("enter")

    def leave(self, entered: object, /) -> None:
        raise AssertionError("nothing was entered")

    def ended(self, outcome: object) -> None:
        raise RuntimeError("ended")


class NoWayOut(BrokenSpan):
    def enter(self, span: object, /) -> Any:
        return "entered"

    def leave(self, entered: object, /) -> None:
        raise RuntimeError(f"leave {entered}")


@pytest.mark.parametrize(("tracing", "times"), [(Broken(), 2), (BrokenSpan(), 2), (NoWayOut(), 2)])
async def test_tracing_that_raises_disturbs_nothing(make_app: MakeApp, tracing: Any, times: int) -> None:
    """O1: it is reported."""
    reported: list[str] = []
    app = make_app(leaf, tracing=tracing, on_error=lambda _, phase: reported.append(phase))
    async with app.running():
        await app.enqueue(leaf(1)).result(timeout=10)
    assert reported == ["tracing"] * times


@on_embedded_stores
@pytest.mark.parametrize("tracing", [Broken(), BrokenSpan()])
async def test_nor_does_it_keep_a_schedule_from_firing(make_app: MakeApp, tracing: Any) -> None:
    """O1"""
    reported: list[str] = []
    runtime, timed = FakeRuntime(), schedule("s", every=10, job=leaf(1))
    app = make_app(
        leaf, tracing=tracing, schedules=[timed], runtime=runtime, on_error=lambda _, at: reported.append(at)
    )
    async with app.running():
        await runtime.advance(seconds=15)
        [fired] = (await app.search()).jobs
    assert (fired.state, set(reported)) == (State.COMPLETED, {"tracing"})


def test_nothing_is_imported_unless_asked_for() -> None:
    """O7: off costs nothing."""
    code = "import sys, ropewalk; assert not [name for name in sys.modules if name.startswith('opentelemetry')]"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_it_is_a_tracing_by_shape() -> None:
    tracing: Tracing = OpenTelemetry()
    assert App("memory://", tracing=tracing).settings.tracing is tracing
