"""The shapes in which a remote worker says how attempts ended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Annotated, Final, TypeAlias

from msgspec import UNSET, Meta, Struct, UnsetType, field

from ropewalk.http.errors import APIError
from ropewalk.http.jobs.shapes import JobSubmission
from ropewalk.http.remote_workers.shapes import Loss, Text, WorkerCall
from ropewalk.http.wire import Duration, ErrorCategory, JobState, Json, Name, Timestamp, Whole

OUTCOMES_MAX: Final = 500


class WorkError(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Why an attempt failed."""

    message: Text
    code: Name | UnsetType | None = UNSET
    category: ErrorCategory | UnsetType = UNSET
    """It follows from the status if it is left out."""
    stack_trace: Text | UnsetType | None = UNSET
    context: Mapping[str, str] = {}


class Reducer(StrEnum):
    LAST = "LAST"
    FINAL = "FINAL"
    LIST = "LIST"
    COUNT = "COUNT"
    SUM = "SUM"
    MIN = "MIN"
    MAX = "MAX"
    MERGE = "MERGE"


class ContributionSpec(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How the output becomes a part of the value of the group."""

    reducer: Reducer


class SuspensionKind(StrEnum):
    SLEEP = "SLEEP"
    SIGNAL = "SIGNAL"


class _Outcome(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="status"):
    job_id: Name
    fence: Name
    duration_ms: Whole | UnsetType = UNSET
    """How long the handler ran."""


class Completed(_Outcome, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="COMPLETED"):
    output: Json = None
    children: Annotated[list[JobSubmission], Meta(max_length=1000)] = []
    continuation: JobSubmission | UnsetType | None = UNSET
    contribution: ContributionSpec | UnsetType | None = UNSET


class Retry(_Outcome, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="RETRY"):
    error: WorkError
    after: Duration | UnsetType | None = UNSET
    """The next attempt waits this long, instead of the backoff."""


class TimedOut(_Outcome, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="TIMED_OUT"):
    error: WorkError | UnsetType | None = UNSET
    after: Duration | UnsetType | None = UNSET


class Crashed(_Outcome, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="CRASHED"):
    error: WorkError


class Failed(_Outcome, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="FAILED"):
    error: WorkError


class Expired(_Outcome, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="EXPIRED"):
    error: WorkError | UnsetType | None = UNSET


class Deferred(_Outcome, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="DEFERRED"):
    delay: Duration | UnsetType = UNSET
    at: Timestamp | UnsetType = UNSET


class Suspended(_Outcome, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="SUSPENDED"):
    position: Whole
    name: Name
    kind: SuspensionKind
    signal: Name | UnsetType | None = UNSET
    span: Duration | UnsetType | None = field(default=UNSET, name="for")


class Cancelled(_Outcome, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="CANCELLED"):
    error: WorkError | UnsetType | None = UNSET


class Released(_Outcome, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="RELEASED"):
    delay: Duration = 0


Outcome: TypeAlias = (
    Completed | Retry | TimedOut | Crashed | Failed | Expired | Deferred | Suspended | Cancelled | Released
)


class Settle(WorkerCall, frozen=True, kw_only=True, forbid_unknown_fields=True):
    outcomes: Annotated[list[Outcome], Meta(max_length=OUTCOMES_MAX)]
    """They are independent of one another, and written in one commit."""


class SettledOutcome(Struct, frozen=True, kw_only=True):
    job_id: str
    fence: str
    accepted: bool
    state: JobState | None
    """The state after the move. None if the outcome was not accepted."""
    reason: Loss | UnsetType = UNSET
    """Why the lease is lost."""
    error: APIError | UnsetType = UNSET
    """Why the outcome was refused although the worker still holds the lease."""


class SettleAnswer(Struct, frozen=True, kw_only=True):
    outcomes: Sequence[SettledOutcome]
    """In the order of the request."""
