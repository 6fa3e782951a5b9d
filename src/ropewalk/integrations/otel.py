"""OpenTelemetry traces: `App(tracing=OpenTelemetry())`. Needs `pip install "ropewalk[otel]"`, the API alone.

An enqueue is a producer span; its context travels in the job. An attempt is a consumer span under it, in whatever
process and however much later; what it queues hangs under the attempt. Names follow the messaging conventions.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import lru_cache
from typing import Final, assert_never

from opentelemetry import context, trace
from opentelemetry.trace import Span, SpanKind, Status, StatusCode, TracerProvider
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from opentelemetry.util.types import AttributeValue

from ropewalk.domain.failure import ErrorInfo
from ropewalk.domain.job import JobRecord, NewJob
from ropewalk.domain.outcome import (
    Aborted,
    Cancelled,
    Completed,
    Crashed,
    Deferred,
    Errored,
    Expired,
    Outcome,
    Released,
    Suspended,
)

SYSTEM: Final = "ropewalk"

_propagator: Final = TraceContextTextMapPropagator()


class OpenTelemetry:
    """A Tracing (by shape). Without a provider, the global one as it is when the app is made."""

    def __init__(self, tracer_provider: TracerProvider | None = None) -> None:
        self._tracer = trace.get_tracer("ropewalk", tracer_provider=tracer_provider)

    def sending(self, jobs: Sequence[NewJob]) -> AbstractContextManager[str | None]:
        return self._sending(jobs)

    def attempt(self, job: JobRecord, worker: str) -> OtelAttempt | Unsampled:
        parent = _parent(job.trace)
        if not parent.wanted:
            return parent.unsampled
        span = self._tracer.start_span(
            f"run {job.queue}",
            context=parent.context,
            kind=SpanKind.CONSUMER,
            attributes={
                **_common(job, "run", "process"),
                **_message(job),
                "messaging.client.id": worker,
                "ropewalk.attempt": job.attempt,
            },
        )
        return OtelAttempt(span)

    @contextmanager
    def _sending(self, jobs: Sequence[NewJob]) -> Generator[str | None]:
        if not jobs:
            yield None
            return
        attributes = _common(jobs[0], "enqueue", "send")
        if len(jobs) == 1:
            attributes |= _message(jobs[0])
        else:
            attributes["messaging.batch.message_count"] = len(jobs)
        name = f"enqueue {jobs[0].queue}"
        with self._tracer.start_as_current_span(name, kind=SpanKind.PRODUCER, attributes=attributes):
            yield _injected(context.get_current())


class OtelAttempt:
    """An AttemptSpan (by shape)."""

    def __init__(self, span: Span) -> None:
        self._span = span
        self._context = trace.set_span_in_context(span)
        self.trace = _injected(self._context)

    def enter(self) -> Callable[[], object]:
        token = context.attach(self._context)
        return lambda: context.detach(token)

    def end(self, outcome: Outcome) -> None:
        self._span.set_attribute("ropewalk.outcome", type(outcome).__name__.lower())
        error = _error(outcome)
        if error is not None:
            self._record(error)
        self._span.end()

    def _record(self, error: ErrorInfo) -> None:
        """As the conventions want an exception; it may have been raised in another process."""
        kind = error.type or error.code or error.category.value
        told = {"exception.type": kind, "exception.message": error.message, "exception.stacktrace": error.traceback}
        self._span.add_event("exception", {name: value for name, value in told.items() if value is not None})
        self._span.set_attribute("error.type", kind)
        self._span.set_status(Status(StatusCode.ERROR, error.message))


class Unsampled:
    """An AttemptSpan (by shape) of a trace nobody records: what the handler calls must not begin one of its own."""

    trace = None

    def __init__(self, parent: context.Context) -> None:
        self._context = parent

    def enter(self) -> Callable[[], object]:
        token = context.attach(self._context)
        return lambda: context.detach(token)

    def end(self, outcome: Outcome) -> None:
        """There is nothing to record."""


class Parent:
    """What a job was sent with."""

    def __init__(self, sent_with: str | None) -> None:
        names = ("traceparent", "tracestate")
        carrier = dict(zip(names, (sent_with or "").split(" ", 1), strict=False))
        # Never the current context: a slot of a worker has nothing to do with who enqueued the job.
        self.context = _propagator.extract(carrier, context.Context())
        sender = trace.get_current_span(self.context).get_span_context()
        self.wanted = not sender.is_valid or sender.trace_flags.sampled
        """the decision not to record was made for the whole trace"""
        self.unsampled = Unsampled(self.context)


_parent: Final = lru_cache(maxsize=1024)(Parent)
"""jobs enqueued together have the same"""


def _error(outcome: Outcome) -> ErrorInfo | None:
    match outcome:
        case Errored(error) | Crashed(error) | Aborted(error):
            return error
        case Completed() | Deferred() | Suspended() | Released() | Expired() | Cancelled():
            return None
        case _:
            assert_never(outcome)


def _common(job: NewJob | JobRecord, operation: str, kind: str) -> dict[str, AttributeValue]:
    return {
        "messaging.system": SYSTEM,
        "messaging.destination.name": job.queue,
        "messaging.operation.name": operation,
        "messaging.operation.type": kind,
        "ropewalk.job.type": job.type,
        "ropewalk.tenant": job.tenant,
    }


def _message(job: NewJob | JobRecord) -> Mapping[str, AttributeValue]:
    attributes: dict[str, AttributeValue] = {
        "messaging.message.id": job.id,
        "messaging.message.body.size": len(job.input),
    }
    if job.correlation_id is not None:
        attributes["messaging.message.conversation_id"] = job.correlation_id
    if job.workflow_id is not None:
        attributes["ropewalk.workflow_id"] = job.workflow_id
    return attributes


def _injected(current: context.Context) -> str | None:
    """As domain.trace has it: traceparent, and tracestate after a space."""
    carrier: dict[str, str] = {}
    _propagator.inject(carrier, current)
    return " ".join(carrier[name] for name in ("traceparent", "tracestate") if name in carrier) or None
