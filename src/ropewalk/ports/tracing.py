"""What the engine tells a tracing system: jobs being sent, attempts being run. None of it may raise or block.

`ropewalk.integrations.otel` speaks OpenTelemetry.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from ropewalk.domain.jobs.outcome import Outcome
from ropewalk.domain.jobs.record import JobRecord, NewJob


class AttemptSpan(Protocol):
    """One attempt, from the moment its handler may begin."""

    @property
    def trace(self) -> str | None:
        """The context (domain.ids) for whatever is queued or logged from inside.

        None where nobody records it: then that is what the job carries, and it is not told how it ended.
        """
        ...

    def ended(self, outcome: Outcome) -> None: ...


class FireSpan(Protocol):
    """A fire of a schedule, of which nobody hears unless this process was the first to write its job."""

    @property
    def trace(self) -> str | None:
        """The context the job is to carry."""
        ...

    def fired(self) -> None: ...


class Tracing(Protocol):
    def sending(self, jobs: Sequence[NewJob]) -> AbstractContextManager[str | None]:
        """Around a submission: gives the context the jobs are to carry."""
        ...

    def firing(self, schedule: str, job: NewJob) -> FireSpan:
        """A schedule is about to enqueue the job of one fire."""
        ...

    def attempt(self, job: JobRecord, worker: str) -> AttemptSpan:
        """A handler is about to run; `job.trace` is what the job carries."""
        ...

    @property
    def passed_on(self) -> Callable[[Any], Any] | None:
        """Makes of `job.trace`, where the sender did not have that recorded, what `enter` takes.

        None where such a job might be recorded all the same: then `attempt` is asked.
        """
        ...

    # Of the whole and not of a span: what is asked for every attempt can be one call of something built in then.

    def enter(self, span: Any, /) -> Any:
        """Make the span of an attempt the current one, here and in what is called from here."""
        ...

    def leave(self, entered: Any, /) -> object:
        """As it was before; `entered` is what `enter` answered."""
        ...
