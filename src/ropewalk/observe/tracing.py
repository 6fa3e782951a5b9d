"""Spans for attempts, submissions and fires of schedules, if the app traces. An error of the tracing system is reported
and changes nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from types import TracebackType
from typing import TypeAlias

from msgspec import structs

from ropewalk.domain.jobs.outcome import Outcome
from ropewalk.domain.jobs.record import NewJob
from ropewalk.domain.user_calls import as_error
from ropewalk.observe.events import EventHub
from ropewalk.ports.store.submission import Submission
from ropewalk.ports.tracing import AttemptSpan, FireSpan, Tracing

PHASE = "tracing"
"""The phase under which errors of the tracing system are reported."""

Raised: TypeAlias = tuple[type[BaseException] | None, BaseException | None, TracebackType | None]
"""The arguments that a `with` statement passes to `__exit__`."""


def end_attempt_span(span: AttemptSpan, outcome: Outcome, events: EventHub) -> None:
    """Ends the span of an attempt with its outcome."""
    try:
        span.ended(outcome)
    except BaseException as error:
        events.report(as_error(error), PHASE)


def begin_fire_span(schedule: str, job: NewJob, tracing: Tracing | None, events: EventHub) -> FireSpan | None:
    """Begins the span of a fire whose job is about to be written; None without a tracing system.

    Another worker may write the job first. `end_fire_span` says that this process wrote it.
    """
    if tracing is None:
        return None
    try:
        return tracing.firing(schedule, job)
    except BaseException as error:
        events.report(as_error(error), PHASE)
        return None


def end_fire_span(span: FireSpan, events: EventHub) -> None:
    """Records that the job of a fire was written by this process."""
    try:
        span.fired()
    except BaseException as error:
        events.report(as_error(error), PHASE)


class Sending:
    """`with Sending(...) as submissions:` opens a span for sending them. Their jobs get the trace context of the
    span."""

    def __init__(self, submissions: Sequence[Submission], tracing: Tracing, events: EventHub) -> None:
        self._submissions = submissions
        self._tracing = tracing
        self._events = events
        self._span: AbstractContextManager[str | None] | None = None

    def __enter__(self) -> Sequence[Submission]:
        try:
            span = self._tracing.sending([new for each in self._submissions for new in each.jobs])
            trace = span.__enter__()
        except BaseException as error:
            self._events.report(as_error(error), PHASE)
            return self._submissions
        self._span = span
        return [_carrying(trace, each) for each in self._submissions]

    def __exit__(self, *raised: *Raised) -> None:
        if self._span is None:
            return
        try:
            self._span.__exit__(*raised)
        except BaseException as error:
            if error is not raised[1]:
                self._events.report(as_error(error), PHASE)


def _carrying(trace: str | None, submission: Submission) -> Submission:
    """Returns the submission with this trace context in each of its jobs."""
    return structs.replace(submission, jobs=[structs.replace(new, trace=trace) for new in submission.jobs])
