"""OpenTelemetry traces: `App(tracing=OpenTelemetry())`. It needs `pip install "ropewalk[otel]"`, the API alone.

The call that enqueues a job is a producer span, whose context is stored with the job. An attempt is a consumer span
under it, in any process and at any later time, and the jobs that the attempt queues are under the attempt. All names
follow the conventions for messaging.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final, assert_never

from msgspec import Struct
from opentelemetry import context, trace
from opentelemetry.trace import (
    INVALID_SPAN,
    INVALID_SPAN_CONTEXT,
    NonRecordingSpan,
    Span,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    TraceFlags,
    TracerProvider,
    TraceState,
)
from opentelemetry.util.types import AttributeValue

from ropewalk.domain import checks
from ropewalk.domain.failure import ErrorInfo
from ropewalk.domain.ids import TRACEPARENT_LENGTH, traceparent
from ropewalk.domain.jobs.outcome import (
    Aborted,
    Cancelled,
    Completed,
    Crashed,
    Deferred,
    Errored,
    Expired,
    Misfit,
    Outcome,
    Released,
    Suspended,
)
from ropewalk.domain.jobs.record import JobRecord, NewJob
from ropewalk.ports.tracing import AttemptSpan, FireSpan

if TYPE_CHECKING:
    from _collections_abc import dict_items, dict_keys, dict_values

SYSTEM: Final = "ropewalk"
"""The name of the messaging system in the attributes of spans."""

_NOTHING: Final = context.Context()
[_SPAN_KEY] = trace.set_span_in_context(INVALID_SPAN, _NOTHING)
"""The key under which the API keeps the current span. Setting it directly takes half the time of the API's function."""


class OpenTelemetry:
    """Implements the protocol Tracing. Without a provider it uses the one that is global when this object is made."""

    def __init__(self, tracer_provider: TracerProvider | None = None) -> None:
        if tracer_provider is not None:
            checks.with_methods(tracer_provider, "tracer_provider", ("get_tracer",), "a TracerProvider")
        provider = trace.get_tracer_provider() if tracer_provider is None else tracer_provider
        self._tracer = trace.get_tracer("ropewalk", tracer_provider=provider)
        self.passed_on = PassedOn if _drops_what_was_dropped(provider) else None
        self.enter, self.leave = _in_and_out()

    def sending(self, jobs: Sequence[NewJob]) -> AbstractContextManager[str | None]:
        """The span of a call that enqueues these jobs; it yields the trace that is stored with them."""
        return self._sending(jobs)

    def firing(self, schedule: str, job: NewJob) -> FireSpan:
        """The span of a fire of a schedule, which is the root of a trace."""
        span = self._tracer.start_span(
            f"enqueue {job.queue}",
            context=_NOTHING,  # each fire begins a trace of its own
            kind=SpanKind.PRODUCER,
            attributes={**_common(job, "enqueue", "send"), **_message(job), "ropewalk.schedule": schedule},
        )
        return Firing(span)

    def attempt(self, job: JobRecord, worker: str) -> AttemptSpan:
        """The span of an attempt, under the span that enqueued the job."""
        # The current span is never its parent: the slot in which it runs has nothing to do with who enqueued the job.
        parent = _NOTHING if job.trace is None else _sent_in(job.trace)
        span = self._tracer.start_span(
            f"run {job.queue}",
            context=parent,
            kind=SpanKind.CONSUMER,
            attributes={
                **_common(job, "run", "process"),
                **_message(job),
                "messaging.client.id": worker,
                "ropewalk.attempt": job.attempt,
            },
        )
        return Recorded(span)

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
        with self._tracer.start_as_current_span(name, kind=SpanKind.PRODUCER, attributes=attributes) as span:
            yield _sent_with(span)


def _drops_what_was_dropped(provider: TracerProvider) -> bool:
    """Whether the provider's sampler never records a span whose remote parent was not recorded.

    Then spans of such attempts need not be started, which would take several times as long as everything else. The
    description of the SDK's parent-based samplers says how they are set up; for any other sampler the answer is False.
    """
    describe = getattr(getattr(provider, "sampler", None), "get_description", None)
    described = "" if describe is None else str(describe())
    if described == "AlwaysOffSampler":
        return True
    nested = described.count("remoteParentNotSampled:") > 1
    return (
        described.startswith("ParentBased{") and not nested and "remoteParentNotSampled:AlwaysOffSampler," in described
    )


def _in_and_out() -> tuple[Callable[[Any], Any], Callable[[Any], object]]:
    """The functions that make a context the current one and undo it.

    By default the API keeps the current context in a context variable. Setting this variable directly takes little more
    than half the time of the API's function, and an attempt whose trace is dropped costs little else.
    """
    token = context.attach(_NOTHING)
    context.detach(token)
    variable: ContextVar[Any] | None = getattr(token, "var", None)
    return (context.attach, context.detach) if variable is None else (variable.set, variable.reset)


class Firing:
    """Implements the protocol FireSpan.

    A span that is not ended is not exported. So a scheduler leaves no span if another one wrote the fire before it.
    """

    def __init__(self, span: Span) -> None:
        self._span = span
        self.trace = _sent_with(span)

    def fired(self) -> None:
        """End the span, because the fire has been written."""
        self._span.end()


# The span of an attempt and the context in which its handler runs are one object, so that entering it costs no more.


class Recorded(context.Context):
    """Implements the protocol AttemptSpan: the span of an attempt, and the context of its handler."""

    __slots__ = ("_span", "trace")

    def __init__(self, span: Span) -> None:
        super().__init__({**context.get_current(), _SPAN_KEY: span})
        self._span = span
        self.trace = _sent_with(span)

    def ended(self, outcome: Outcome) -> None:
        """End the span, with the outcome of the attempt and its error."""
        self._span.set_attribute("ropewalk.outcome", type(outcome).__name__.lower())
        error = _error(outcome)
        if error is not None:
            self._record(error)
        self._span.end()

    def _record(self, error: ErrorInfo) -> None:
        """Add the error as an exception event, as the conventions say; it may have been raised in another process."""
        kind = error.type or error.code or error.category.value
        facts = {"exception.type": kind, "exception.message": error.message, "exception.stacktrace": error.traceback}
        self._span.add_event("exception", {name: value for name, value in facts.items() if value is not None})
        self._span.set_attribute("error.type", kind)
        self._span.set_status(Status(StatusCode.ERROR, error.message))


class PassedOn(Struct, gc=False):
    """The context of a handler whose trace is not recorded, so that what it calls does not begin a trace of its own.

    It only has the methods of a Context, because it is made without running a Python function. The span that enqueued
    the job is put into it on first use, and most handlers never use it.
    """

    sent_with: str
    """The trace that is stored with the job."""
    filled: context.Context | None = None
    """The real context, once somebody has used it."""

    # The API calls `get` and `copy`; other code may read the context as a dict.

    def get(self, key: str, default: object = None) -> object:
        return self._context().get(key, default)

    def copy(self) -> dict[str, object]:
        return self._context().copy()

    def __getitem__(self, key: str) -> object:
        return self._context()[key]

    def __contains__(self, key: object) -> bool:
        return key in self._context()

    def __iter__(self) -> Iterator[str]:
        return iter(self._context())

    def __len__(self) -> int:
        return len(self._context())

    def keys(self) -> dict_keys[str, object]:
        return self._context().keys()

    def values(self) -> dict_values[str, object]:
        return self._context().values()

    def items(self) -> dict_items[str, object]:
        return self._context().items()

    def _context(self) -> context.Context:
        if self.filled is None:
            self.filled = _sent_in(self.sent_with)
        return self.filled


def _sent_in(sent_with: str) -> context.Context:
    return context.Context({_SPAN_KEY: NonRecordingSpan(_sender(sent_with))})


def _sender(sent_with: str) -> SpanContext:
    """The context of the span that enqueued a job."""
    found = traceparent(sent_with)
    if found is None:
        return INVALID_SPAN_CONTEXT
    trace_id, span_id, flags = found
    tracestate = sent_with[TRACEPARENT_LENGTH + 1 :]
    return SpanContext(
        int(trace_id, 16),
        int(span_id, 16),
        is_remote=True,
        trace_flags=TraceFlags(int(flags, 16)),
        trace_state=TraceState.from_header([tracestate]) if tracestate else None,
    )


def _error(outcome: Outcome) -> ErrorInfo | None:
    match outcome:
        case Errored(error) | Crashed(error) | Aborted(error) | Misfit(error):
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


def _sent_with(span: Span) -> str | None:
    """The trace of a span in the form of domain/ids.py: the traceparent, and after a space the tracestate."""
    current = span.get_span_context()
    if not current.is_valid:
        return None
    traceparent = f"00-{current.trace_id:032x}-{current.span_id:016x}-{current.trace_flags:02x}"
    return f"{traceparent} {current.trace_state.to_header()}" if current.trace_state else traceparent
