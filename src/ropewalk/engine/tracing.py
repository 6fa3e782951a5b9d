"""Attempts and submissions as spans, where the app traces. A tracing system that raises is reported and left alone."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import TYPE_CHECKING

from msgspec import structs

from ropewalk.domain.outcome import Outcome
from ropewalk.engine.events import EventHub
from ropewalk.ports.exchange import Submission
from ropewalk.ports.tracing import AttemptSpan, Tracing

if TYPE_CHECKING:
    from ropewalk.engine.attempt import Attempt
    from ropewalk.engine.workbench import Workbench

PHASE = "tracing"


def began(attempt: Attempt, tracing: Tracing, bench: Workbench) -> None:
    """What the attempt queues and logs from now on belongs to its span."""
    try:
        span = tracing.attempt(attempt.job, bench.owner)
        attempt.job.trace = span.trace or attempt.job.trace  # our copy: the stored job keeps what it was sent with
    except Exception as error:
        bench.events.report(error, PHASE)
        return
    attempt.span = span


def enter(span: AttemptSpan, bench: Workbench) -> Callable[[], object] | None:
    """Around the handler. The answer undoes it."""
    try:
        return span.enter()
    except Exception as error:
        bench.events.report(error, PHASE)
        return None


def ended(attempt: Attempt, outcome: Outcome, bench: Workbench) -> None:
    span, attempt.span = attempt.span, None
    if span is None:
        return
    try:
        span.end(outcome)
    except Exception as error:
        bench.events.report(error, PHASE)


class Sending:
    """`with Sending(...) as submission:` — the submission whose jobs carry the span's context."""

    def __init__(self, submission: Submission, tracing: Tracing, events: EventHub) -> None:
        self._submission = submission
        self._tracing = tracing
        self._events = events
        self._stack = ExitStack()

    def __enter__(self) -> Submission:
        try:
            trace = self._stack.enter_context(self._tracing.sending(self._submission.jobs))
        except Exception as error:
            self._events.report(error, PHASE)
            return self._submission
        jobs = [structs.replace(new, trace=trace) for new in self._submission.jobs]
        return structs.replace(self._submission, jobs=jobs)

    def __exit__(self, *raised: object) -> None:
        try:
            self._stack.__exit__(*raised)  # type: ignore[arg-type]  # what a with statement gives
        except Exception as error:
            if error is not raised[1]:
                self._events.report(error, PHASE)
