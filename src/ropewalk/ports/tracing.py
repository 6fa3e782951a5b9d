"""What the library reports to a tracing system: submissions, fires of schedules, and attempts.

None of these calls may raise or block. `ropewalk.integrations.otel` implements them for OpenTelemetry.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from ropewalk.domain.jobs.outcome import Outcome
from ropewalk.domain.jobs.record import JobRecord, NewJob


class AttemptSpan(Protocol):
    """The span of one attempt, which begins when the handler may begin."""

    @property
    def trace(self) -> str | None:
        """The trace context (domain.ids) for what the attempt queues and logs.

        None if nobody records the span: then the context of the job is used, and `ended` is not called.
        """
        ...

    def ended(self, outcome: Outcome) -> None:
        """The attempt ended with this outcome."""
        ...


class FireSpan(Protocol):
    """The span of one fire of a schedule. It is recorded only if this process was the first to write the job."""

    @property
    def trace(self) -> str | None:
        """The trace context for the job of the fire."""
        ...

    def fired(self) -> None:
        """This process wrote the job of the fire, so the span is to be recorded."""
        ...


class Tracing(Protocol):
    """A tracing system, as `App(tracing=...)` takes it."""

    def sending(self, jobs: Sequence[NewJob]) -> AbstractContextManager[str | None]:
        """Surrounds a submission and returns the trace context for its jobs."""
        ...

    def firing(self, schedule: str, job: NewJob) -> FireSpan:
        """Begins the span of a fire, whose job the schedule is about to submit."""
        ...

    def attempt(self, job: JobRecord, worker: str) -> AttemptSpan:
        """Begins the span of an attempt, whose handler is about to run. `job.trace` is the context of the sender."""
        ...

    @property
    def passed_on(self) -> Callable[[Any], Any] | None:
        """A function that turns the `job.trace` of a sender that did not record it into an argument for `enter`.

        None if the attempt might be recorded nevertheless: then `attempt` is called for such a job, too.
        """
        ...

    # These two belong to the tracing system and not to a span, so that they can be built-in functions: every attempt
    # calls them.

    def enter(self, span: Any, /) -> Any:
        """Makes the span of an attempt the current one, here and in everything that is called from here."""
        ...

    def leave(self, entered: Any, /) -> object:
        """Makes the previous span the current one again. `entered` is the return value of `enter`."""
        ...
