"""Outcomes: how an attempt ended, as the worker saw it. `transition.decide` turns an outcome into a settlement."""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct

from ropewalk.domain.failure import ErrorInfo
from ropewalk.domain.time import Instant, Span
from ropewalk.domain.workflow.completion import CompletionPlan, Suspension


class Completed(Struct, frozen=True, gc=False):
    """The handler returned."""

    result: bytes | None
    """The encoded result."""
    plan: CompletionPlan | None = None
    """The jobs and the contribution that come with the completion."""


class Errored(Struct, frozen=True):
    """The attempt failed with an error or a timeout, and the job may be tried again."""

    error: ErrorInfo
    after_us: Span | None = None
    """The job waits this long for its next attempt, instead of the backoff."""


class Crashed(Struct, frozen=True):
    """The process of the handler died during the attempt. This counts as an attempt and a crash, like the loss of a
    worker."""

    error: ErrorInfo


class Aborted(Struct, frozen=True):
    """The attempt failed with a permanent error, after which there is no further attempt."""

    error: ErrorInfo


class Misfit(Struct, frozen=True):
    """The arguments do not fit the code of this worker."""

    error: ErrorInfo
    delay_us: Span | None = None
    """The job waits this long for another worker, whose code they may fit; None if the job fails for good."""


class Deferred(Struct, frozen=True):
    """The handler asked to run later: after `delay_us` or at the instant `at`, of which exactly one is set."""

    delay_us: Span | None = None
    at: Instant | None = None


class Suspended(Struct, frozen=True):
    """The handler sleeps, or waits for a signal."""

    suspension: Suspension


class Expired(Struct, frozen=True):
    """The deadline of the job passed while the handler ran."""


class Cancelled(Struct, frozen=True):
    """The handler ended because the job was cancelled."""

    error: ErrorInfo | None = None


class Released(Struct, frozen=True):
    """The worker gave the job back, because it drains, declined the job, or never started it."""

    delay_us: Span = 0
    """The job is ready again after this long."""


NotCompleted: TypeAlias = Errored | Crashed | Aborted | Misfit | Deferred | Suspended | Expired | Cancelled | Released
Outcome: TypeAlias = Completed | NotCompleted
