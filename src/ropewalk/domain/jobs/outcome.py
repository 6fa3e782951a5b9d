"""How an attempt ended, as the worker saw it. transition.decide turns it into a settlement."""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct

from ropewalk.domain.failure import ErrorInfo
from ropewalk.domain.time import Instant, Span
from ropewalk.domain.workflow.completion import CompletionPlan, Suspension


class Completed(Struct, frozen=True, gc=False):
    """The handler returned."""

    result: bytes | None
    plan: CompletionPlan | None = None


class Errored(Struct, frozen=True):
    """Any error not otherwise classified, a timeout included; `after_us` replaces the backoff."""

    error: ErrorInfo
    after_us: Span | None = None


class Crashed(Struct, frozen=True):
    """The handler's own process died under it: counts an attempt and a crash, like a lost worker."""

    error: ErrorInfo


class Aborted(Struct, frozen=True):
    """A permanent error: no further attempt."""

    error: ErrorInfo


class Misfit(Struct, frozen=True):
    """The arguments do not fit the code of this worker."""

    error: ErrorInfo
    delay_us: Span | None = None
    """How long the job waits for a worker whose code they may fit; None where it fails for good."""


class Deferred(Struct, frozen=True):
    """Not now. Exactly one of the two is set."""

    delay_us: Span | None = None
    at: Instant | None = None


class Suspended(Struct, frozen=True):
    """The handler sleeps, or waits for a signal."""

    suspension: Suspension


class Expired(Struct, frozen=True):
    """The job's deadline passed while it ran."""


class Cancelled(Struct, frozen=True):
    """A cancellation reached the handler."""

    error: ErrorInfo | None = None


class Released(Struct, frozen=True):
    """Given back: drained, declined, or never started."""

    delay_us: Span = 0


NotCompleted: TypeAlias = Errored | Crashed | Aborted | Misfit | Deferred | Suspended | Expired | Cancelled | Released
Outcome: TypeAlias = Completed | NotCompleted
